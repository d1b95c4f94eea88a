// SPDX-License-Identifier: MIT
import Glibc
import Loop
import Testing

@Suite struct ReadingBellTests {
    private func rings(_ bell: ReadingBell) -> Bool {
        var watched = pollfd(fd: bell.rawDescriptor, events: Int16(POLLIN), revents: 0)
        defer { bell.silence() }
        return poll(&watched, 1, 0) > 0
    }

    @Test func itRingsForEachMessageThatIsRead() throws {
        let (one, other) = try FileDescriptor.messageSockets()
        var byte: UInt8 = 7
        for _ in 0..<4 { #expect(send(one.raw, &byte, 1, 0) == 1) }
        #expect(recv(other.raw, &byte, 1, 0) == 1)
        let bell = try ReadingBell(one)
        #expect(rings(bell), "what was read before may be news")
        #expect(!rings(bell))
        for _ in 0..<3 {
            #expect(recv(other.raw, &byte, 1, 0) == 1)
            #expect(rings(bell))
            #expect(!rings(bell))
        }
        // Not for what is sent, in either direction.
        #expect(send(one.raw, &byte, 1, 0) == 1 && send(other.raw, &byte, 1, 0) == 1)
        #expect(!rings(bell))
    }

    @Test func itRingsWhenTheOtherEndGoes() throws {
        let (one, other) = try FileDescriptor.messageSockets()
        let bell = try ReadingBell(one)
        #expect(rings(bell))
        shutdown(other.raw, Int32(SHUT_RDWR))
        #expect(rings(bell))
    }
}
