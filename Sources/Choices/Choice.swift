// SPDX-License-Identifier: MIT

/// What a person once chose to share, and may be shared again without a picker.
public struct Choice: Equatable, Sendable {
    /// Whose choice it is: the program that it was granted to, as the agent found out (`app:ID`, `exe:PATH`).
    public let identity: String
    /// The program's own name for it: the option `restore-key`.
    public let name: String
    /// The portal's token: a secret, good for one use. Never shown and never logged.
    public let token: String

    /// A choice of these parts.
    public init(identity: String, name: String, token: String) { (self.identity, self.name, self.token) = (identity, name, token) }

    /// Fields behind each other, percent-encoded where they hold what separates fields and lines.
    var line: String { [identity, name, token].map(Self.encoded).joined(separator: "\t") }

    /// Reads a line; nil when it is none, or holds what no program and no portal can have said.
    init?(line: Substring) {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(Self.decoded)
        guard fields.count == 3, !fields[0].isEmpty, !fields[2].isEmpty, !line.utf8.contains(0) else { return nil }
        self.init(identity: fields[0], name: fields[1], token: fields[2])
    }

    private static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if byte < 0x20 || byte == UInt8(ascii: "%") || byte == 0x7F {
                bytes += [UInt8(ascii: "%"), hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 15)]]
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let hexadecimal = Array("0123456789ABCDEF".utf8)
}
