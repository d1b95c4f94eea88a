// SPDX-License-Identifier: MIT
import Glibc

/// What the program was started with, and its standard error.
public enum Environment {
    /// The value of a variable; nil when it is not set.
    public static func value(of name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Writes to standard error, as it is.
    public static func complain(_ text: String) {
        var bytes = Array(text.utf8)
        bytes.withUnsafeMutableBytes { buffer in _ = write(2, buffer.baseAddress, buffer.count) }
    }
}
