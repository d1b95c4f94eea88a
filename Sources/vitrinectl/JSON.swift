// SPDX-License-Identifier: MIT

/// A JSON text, written on one line with its members in the order in which they were given.
///
/// [RFC 8259](https://www.rfc-editor.org/rfc/rfc8259). Whole numbers are written out in full; a reader that keeps numbers as
/// 64-bit floats loses digits beyond 2^53, which no value here reaches in practice.
indirect enum JSON: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case string(String)
    case array([JSON])
    case object([Member])

    /// A name and its value.
    struct Member: Equatable, Sendable {
        let name: String
        let value: JSON
    }

    /// An object of members in this order.
    static func members(_ members: KeyValuePairs<String, JSON>) -> JSON { .object(members.map { Member(name: $0.key, value: $0.value) }) }

    /// The text, without a line break.
    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        case .unsigned(let value): String(value)
        case .string(let value): JSON.quoted(value)
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let members): "{" + members.map { "\(JSON.quoted($0.name)):\($0.value.text)" }.joined(separator: ",") + "}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            // JSON wants only those below space escaped. The others break lines or drive terminals.
            case "\u{0}"..<" ", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
