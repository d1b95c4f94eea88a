// SPDX-License-Identifier: MIT

extension Value {
    /// The value for people and logs, in the manner of GVariant's text but without its type prefixes. Always one line.
    public var text: String {
        switch self {
        case .byte(let value): "\(value)"
        case .bool(let value): "\(value)"
        case .int16(let value): "\(value)"
        case .uint16(let value): "\(value)"
        case .int32(let value): "\(value)"
        case .uint32(let value): "\(value)"
        case .int64(let value): "\(value)"
        case .uint64(let value): "\(value)"
        case .double(let value): "\(value)"
        case .string(let value): quoted(value)
        case .objectPath(let value): quoted(value.text)
        case .signature(let value): quoted(value.text)
        case .descriptor(let value): "fd \(value.raw)"
        case .array(_, let elements): "[\(elements.map(\.text).joined(separator: ", "))]"
        case .dictionary(_, _, let entries): "{\(entries.map { "\($0.key.text): \($0.value.text)" }.joined(separator: ", "))}"
        case .structure(let fields): "(\(fields.map(\.text).joined(separator: ", "))\(fields.count == 1 ? "," : ""))"
        case .variant(let value): "<\(value.text)>"
        }
    }
}

extension Value: CustomStringConvertible {
    /// The same as ``text``.
    public var description: String { text }
}

/// Quotes a string so that nothing in it can steer a terminal or look like another line.
private func quoted(_ string: String) -> String {
    var text = "'"
    for scalar in string.unicodeScalars {
        switch scalar {
        case "'", "\\": text += "\\\(scalar)"
        case "\n": text += "\\n"
        case "\t": text += "\\t"
        default:
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
    return text + "'"
}
