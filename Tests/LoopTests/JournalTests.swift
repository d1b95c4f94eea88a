// SPDX-License-Identifier: MIT
import Glibc
import Testing

@testable import Loop

@Suite struct JournalTests {
    private static let record = JournalRecord(
        "track: /t: broadcast finished; reason=stopped", .warning, area: "track", track: "/t",
        ["reason": "stopped", "pool-use": "", "detail": "two\nlines"])

    @Test func aRecordIsAFieldALine() {
        let bytes = Self.record.bytes
        let program = CommandLine.arguments[0].split(separator: "/").last ?? ""
        let text =
            "MESSAGE=track: /t: broadcast finished; reason=stopped\nPRIORITY=4\nSYSLOG_IDENTIFIER=\(program)\nVITRINE_AREA=track\n"
            + "VITRINE_TRACK=/t\nVITRINE_REASON=stopped\nVITRINE_POOL_USE=\n"
        #expect(bytes.starts(with: text.utf8))
        // What has a line break in it has its length, 64 bits little-endian, in place of the sign.
        #expect(Array(bytes.dropFirst(text.utf8.count)) == Array("VITRINE_DETAIL\n".utf8) + [9, 0, 0, 0, 0, 0, 0, 0] + "two\nlines\n".utf8)
    }

    @Test func whatIsOfNoTrackHasNone() {
        let bytes = JournalRecord("agent: here", .info, area: "agent", track: nil, [:]).bytes
        #expect(!String(decoding: bytes, as: UTF8.self).contains("TRACK"))
    }

    @Test func fieldsStandInALineAsWordsOrQuoted() {
        let fields: LogFields = ["reason": "stopped", "title": "", "detail": "by who started it"]
        #expect(fields.text == "reason=stopped title=\"\" detail=\"by who started it\"")
    }

    @Test func theSocketTakesARecordWhole() throws {
        let path = "/tmp/vitrine-journal-\(getpid())"
        let journal = try Self.listen(path)
        defer { unlink(path) }
        let socket = try #require(JournalSocket(path: path))
        #expect(socket.send(Self.record))
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = recv(journal.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        #expect(Array(buffer.prefix(max(0, count))) == Self.record.bytes)
    }

    @Test func aJournalThatTakesNothingIsTold() throws {
        let path = "/tmp/vitrine-journal-full-\(getpid())"
        let socket = try #require(JournalSocket(path: path))
        #expect(!socket.send(Self.record), "nobody is there")
        let journal = try Self.listen(path)
        defer { unlink(path) }
        // It reads nothing: sooner or later it is full, and nobody waits for it.
        var taken = 0
        while taken < 100_000, socket.send(Self.record) { taken += 1 }
        #expect(taken > 0 && taken < 100_000)
        let long = JournalRecord(String(repeating: "x", count: 1 << 24), .info, area: "a", track: nil, [:])
        #expect(!socket.send(long), "too large for one record")
        #expect(JournalSocket(path: "/" + String(repeating: "x", count: 200))?.send(Self.record) == false)
        _ = journal
    }

    private static func listen(_ path: String) throws -> FileDescriptor {
        unlink(path)
        let socket = try FileDescriptor.datagramSocket()
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let length = socklen_t(MemoryLayout.size(ofValue: address))
        let bound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket.raw, $0, length) }
        }
        try #require(bound == 0)
        return socket
    }
}
