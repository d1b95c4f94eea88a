// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop

/// A client that writes the bus's bytes by itself: for what no library sends.
///
/// Spec: <https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-messages>
final class RawPeer {
    /// What came, without its body.
    struct Answer: Equatable {
        enum Kind: UInt8 { case call = 1, reply, error, signal }
        let kind: Kind
        /// The serial number of the call that it answers.
        let serial: UInt32?
        let errorName: String?
    }

    static let noReplyExpected: UInt8 = 1

    private(set) var answers: [Answer] = []
    private let loop: EventLoop
    private let socket: FileDescriptor
    private var watch: Watch?
    private var input: [UInt8] = []
    private var serial: UInt32 = 0

    init(_ addressText: String, on loop: EventLoop) throws {
        self.loop = loop
        let path = addressText.dropFirst("unix:path=".count).prefix { $0 != "," }
        socket = FileDescriptor(owning: Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let raw = socket.raw
        try Errno.check {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
            }
        }
        let user = "\(getuid())".utf8.map { String($0, radix: 16) }.joined()
        send(Array("\0AUTH EXTERNAL \(user)\r\n".utf8))
        var byte: UInt8 = 0
        while read(socket.raw, &byte, 1) == 1, byte != UInt8(ascii: "\n") {}
        send(Array("BEGIN\r\n".utf8))
        try socket.setNonBlocking()
        watch = loop.watch(socket.raw, for: .read) { [unowned self] _ in receive() }
        call("org.freedesktop.DBus", "/", "org.freedesktop.DBus", "Hello")
    }

    deinit { watch?.cancel() }

    /// Calls a method without arguments.
    ///
    /// - Returns: the call's serial number.
    @discardableResult
    func call(_ destination: String, _ path: String, _ interface: String?, _ member: String, flags: UInt8 = 0) -> UInt32 {
        serial += 1
        var fields: [UInt8] = []
        func add(_ code: UInt8, _ type: String, _ text: String) {
            pad(&fields, 8)
            fields += [code, 1] + Array(type.utf8) + [0]
            append(UInt32(text.utf8.count), to: &fields)
            fields += Array(text.utf8) + [0]
        }
        add(1, "o", path)
        if let interface { add(2, "s", interface) }
        add(3, "s", member)
        add(6, "s", destination)
        var message: [UInt8] = [UInt8(ascii: "l"), 1, flags, 1]
        append(0, to: &message)
        append(serial, to: &message)
        append(UInt32(fields.count), to: &message)
        message += fields
        pad(&message, 8)
        send(message)
        return serial
    }

    private func send(_ bytes: [UInt8]) { _ = Glibc.send(socket.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

    private func receive() {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(socket.raw, &bytes, bytes.count)
        guard count > 0 else { return watch?.cancel() ?? () }
        input += bytes[..<count]
        while input.count >= 16 {
            let fieldsEnd = 16 + Int(number(12))
            let end = (fieldsEnd + 7) / 8 * 8 + Int(number(4))
            guard input.count >= end else { return }
            answers.append(readAnswer(fieldsEnd))
            input.removeFirst(end)
        }
    }

    private func readAnswer(_ fieldsEnd: Int) -> Answer {
        var (offset, serial, errorName) = (16, UInt32?.none, String?.none)
        while offset < fieldsEnd {
            let (code, type) = (input[offset], input[offset + 2])
            offset += 4
            if type == UInt8(ascii: "g") {
                offset += Int(input[offset]) + 2
            } else {
                let value = number(offset)
                offset += 4
                if code == 5 { serial = value }
                if type != UInt8(ascii: "u") {
                    if code == 4 { errorName = String(decoding: input[offset..<(offset + Int(value))], as: UTF8.self) }
                    offset += Int(value) + 1
                }
            }
            offset = (offset + 7) / 8 * 8
        }
        return Answer(kind: Answer.Kind(rawValue: input[1]) ?? .signal, serial: serial, errorName: errorName)
    }

    private func number(_ offset: Int) -> UInt32 { (0..<4).reduce(0) { $0 | UInt32(input[offset + $1]) << UInt32(8 * $1) } }
    private func append(_ number: UInt32, to bytes: inout [UInt8]) { withUnsafeBytes(of: number.littleEndian) { bytes += $0 } }
    private func pad(_ bytes: inout [UInt8], _ alignment: Int) { while bytes.count % alignment != 0 { bytes.append(0) } }
}
