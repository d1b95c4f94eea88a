// SPDX-License-Identifier: MIT
import CLinux
import Glibc

/// An open file descriptor that this object owns: closed when the last reference goes.
public final class FileDescriptor: Sendable {
    /// The number, valid for as long as this object lives. Never close it elsewhere.
    public let raw: Int32

    /// Takes ownership of an open descriptor.
    public init(owning raw: Int32) { self.raw = raw }

    deinit { close(raw) }

    /// A second descriptor of the same open file, close-on-exec, for a C library that takes ownership of the number.
    public func duplicateRaw() throws(Errno) -> Int32 {
        try Errno.check { fcntl(raw, F_DUPFD_CLOEXEC, 3) }
    }

    /// Makes reads and writes return at once.
    public func setNonBlocking() throws(Errno) {
        let flags = try Errno.check { fcntl(raw, F_GETFL) }
        try Errno.check { fcntl(raw, F_SETFL, flags | O_NONBLOCK) }
    }

    /// A pipe, both ends close-on-exec and blocking.
    public static func pipe() throws(Errno) -> (reading: FileDescriptor, writing: FileDescriptor) {
        let ends = try pair { clinux_pipe($0) }
        return (reading: ends.0, writing: ends.1)
    }

    /// Two connected local sockets that keep messages apart, both close-on-exec and blocking.
    public static func messageSockets() throws(Errno) -> (FileDescriptor, FileDescriptor) { try pair { clinux_seqpacket_pair($0) } }

    /// A local socket for messages to an address, close-on-exec.
    static func datagramSocket() throws(Errno) -> FileDescriptor { FileDescriptor(owning: try Errno.check { clinux_datagram_socket() }) }

    private static func pair(_ make: (UnsafeMutablePointer<Int32>) -> Int32) throws(Errno) -> (FileDescriptor, FileDescriptor) {
        var ends: (Int32, Int32) = (-1, -1)
        try withUnsafeMutablePointer(to: &ends) { pointer throws(Errno) in
            try pointer.withMemoryRebound(to: Int32.self, capacity: 2) { numbers throws(Errno) in
                _ = try Errno.check { make(numbers) }
            }
        }
        return (FileDescriptor(owning: ends.0), FileDescriptor(owning: ends.1))
    }
}

extension FileDescriptor {
    /// Memory without a name in the file system: an empty, close-on-exec `memfd_create(2)` that can be sealed.
    ///
    /// - Parameter name: shown in `/proc`.
    public static func makeMemory(_ name: String) throws(Errno) -> FileDescriptor {
        let flags = UInt32(CLINUX_MFD_CLOEXEC | CLINUX_MFD_ALLOW_SEALING)
        return FileDescriptor(owning: try Errno.check { clinux_memfd_create(name, flags) })
    }

    /// Takes rights over memory away, for good and for everybody.
    public func seal(_ seals: Int) throws(Errno) { try Errno.check { clinux_add_seals(raw, Int32(seals)) } }

    /// A descriptor that any thread can ring and one loop watches: a non-blocking `eventfd(2)`.
    public static func makeBell() throws(Errno) -> FileDescriptor {
        FileDescriptor(owning: try Errno.check { clinux_eventfd() })
    }

    /// Rings a bell. It never blocks, and allocates nothing.
    public func ring() { eventfd_write(raw, 1) }

    /// Takes all rings of a bell, so that the next one is seen again.
    public func silence() {
        var count: eventfd_t = 0
        eventfd_read(raw, &count)
    }
}
