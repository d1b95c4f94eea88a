// SPDX-License-Identifier: MIT
import CLinux
import Glibc

/// What the program was started with, and its standard error.
public enum Environment {
    /// The value of a variable; nil when it is not set.
    public static func value(of name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Has the allocator give large blocks back to the system as soon as they are freed.
    ///
    /// By itself glibc learns from each freed one to keep the next: megabytes of an encoder that ended would stay. Call it before there are threads.
    public static func returnFreedBlocks() { _ = clinux_set_mmap_threshold(128 * 1024) }

    /// Writes to standard error, as it is.
    public static func complain(_ text: String) {
        var bytes = Array(text.utf8)
        bytes.withUnsafeMutableBytes { buffer in _ = write(2, buffer.baseAddress, buffer.count) }
    }
}
