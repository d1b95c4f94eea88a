// SPDX-License-Identifier: MIT
import CLinux

/// Rings, for a loop that watches it, when the other end of a local socket has read a message, or may have.
///
/// `poll(2)` says of a socket that it can be written to, which one with unread messages can be too: it cannot wait for one of them to be read. But the
/// kernel announces anew that it can whenever a message was read, and an edge-triggered `epoll(7)` passes each announcement on. Of a socket that has been
/// full it does so from when three quarters of it are free.
public final class ReadingBell: Sendable {
    private let epoll: FileDescriptor

    /// A bell that rings once at first, unless the socket is full: what was read before it was there is not missed.
    public init(_ socket: FileDescriptor) throws(Errno) {
        epoll = FileDescriptor(owning: try Errno.check { clinux_epoll() })
        try Errno.check { clinux_epoll_add_write_edges(epoll.raw, socket.raw) }
    }

    /// What is watched for reading.
    public var rawDescriptor: Int32 { epoll.raw }

    /// Takes all rings, so that the next one is seen again.
    public func silence() { _ = clinux_epoll_take(epoll.raw) }
}
