// SPDX-License-Identifier: MIT
import Glibc

/// Small reads of the file system, for diagnoses. They may block: never use them on a loop that serves others.
public enum Files {
    /// The bytes of a file, such as one of `/proc`, which has no size.
    ///
    /// - Parameter limit: bytes after which reading stops.
    public static func contents(of path: String, limit: Int = 1 << 20) throws(Errno) -> [UInt8] {
        let file = FileDescriptor(owning: try Errno.check { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) })
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while contents.count < limit {
            let count = try Errno.check { read(file.raw, &chunk, chunk.count) }
            if count == 0 { break }
            contents += chunk.prefix(count)
        }
        return contents
    }

    /// The names in a directory, without `.` and `..`, in no order.
    public static func names(in path: String) throws(Errno) -> [String] {
        guard let directory = opendir(path) else { throw Errno.last }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: entry.pointee.d_name)) {
                    String(cString: $0)
                }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Connects to a socket of the file system and hangs up again: whether somebody listens there.
    ///
    /// - Throws: `ENOENT` when there is no such file, `ECONNREFUSED` when nobody listens, `ENAMETOOLONG` when no address holds the path.
    public static func probeSocket(_ path: String) throws(Errno) {
        let socket = FileDescriptor(
            owning: try Errno.check { Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0) })
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw Errno(ENAMETOOLONG) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout.size(ofValue: address))
        try withUnsafePointer(to: address) { pointer throws(Errno) in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic throws(Errno) in
                _ = try Errno.check { connect(socket.raw, generic, length) }
            }
        }
    }
}
