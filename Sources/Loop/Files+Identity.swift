// SPDX-License-Identifier: MIT
import Glibc

extension Files {
    /// The device and the number of a file, which together are its identity.
    public struct Identity: Equatable, Sendable {
        let device: UInt64
        let inode: UInt64

        init(_ status: stat) { (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino)) }
    }

    /// The text of a file, with bytes that are not UTF-8 replaced; nil when it cannot be read.
    public static func text(of path: String) -> String? {
        (try? contents(of: path)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The text of a regular file that no symbolic link stands for; nil when there is no such file.
    public static func ownText(of path: String) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return text(of: path)
    }

    /// Whether another process holds a lock on a file (`fcntl(2)`).
    public static func isLocked(_ path: String) -> Bool {
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard number >= 0 else { return false }
        let file = FileDescriptor(owning: number)
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        return fcntl(file.raw, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Whether a file was changed at most so many seconds ago.
    public static func isYoung(_ path: String, seconds: Int) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mtim.tv_sec + seconds >= time(nil)
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
        return Identity(status)
    }
}
