// SPDX-License-Identifier: MIT
import Glibc

extension Files {
    /// The device and the number of a file, which together are its identity.
    public struct Identity: Equatable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    /// The text of a file, with bytes that are not UTF-8 replaced; nil when it cannot be read.
    public static func text(of path: String) -> String? {
        (try? contents(of: path)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Where a symbolic link points; nil when it cannot be read.
    public static func target(of link: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = bytes.withUnsafeMutableBytes { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in text.baseAddress.map { readlink(link, $0, text.count) } ?? -1 }
        }
        guard count >= 0 else { return nil }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// The identity of the file that a path leads to, links followed; nil when it cannot be looked at.
    public static func identity(of path: String) -> Identity? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }
}
