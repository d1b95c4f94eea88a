// SPDX-License-Identifier: MIT
import Glibc

/// One entry of the journal, as its socket takes it.
///
/// Spec: [the journal's native protocol](https://systemd.io/JOURNAL_NATIVE_PROTOCOL/).
struct JournalRecord {
    private(set) var bytes: [UInt8] = []

    /// - Parameters:
    ///   - message: the whole line, as people read it.
    ///   - track: `VITRINE_TRACK`.
    ///   - fields: each becomes `VITRINE_` and its key.
    init(_ message: String, _ level: LogLevel, area: String, track: String?, _ fields: LogFields) {
        add("MESSAGE", message)
        add("PRIORITY", "\(level.rawValue)")
        add("SYSLOG_IDENTIFIER", JournalRecord.program)
        add("VITRINE_AREA", area)
        if let track { add("VITRINE_TRACK", track) }
        for (key, value) in fields.entries { add("VITRINE_" + key.uppercased().map { $0 == "-" ? "_" : $0 }, value) }
    }

    private static let program = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "vitrine"

    private mutating func add(_ name: String, _ value: String) {
        bytes += name.utf8
        if value.utf8.contains(UInt8(ascii: "\n")) {
            // A line break would end the field: its length is said before it.
            bytes.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.utf8.count).littleEndian) { bytes += $0 }
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value.utf8
        bytes.append(UInt8(ascii: "\n"))
    }
}

/// The journal's socket for records. It needs no connection: the journal may start anew.
///
/// Thread: any.
struct JournalSocket: Sendable {
    private let socket: FileDescriptor
    private let path: String

    /// Nil where no socket is to be had.
    init?(path: String = "/run/systemd/journal/socket") {
        guard let socket = try? FileDescriptor.datagramSocket() else { return nil }
        (self.socket, self.path) = (socket, path)
    }

    /// Sends a record, without waiting.
    ///
    /// - Returns: whether the journal has it. It takes none that is too large, or while it does not run or has too much to do.
    func send(_ record: JournalRecord) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(path.utf8)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout.size(ofValue: address))
        let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
        let sent = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                sendto(socket.raw, record.bytes, record.bytes.count, flags, generic, length)
            }
        }
        return sent == record.bytes.count
    }
}
