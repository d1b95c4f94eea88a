// SPDX-License-Identifier: MIT

/// The types of a row of values: none, one or several single complete types.
///
/// <https://dbus.freedesktop.org/doc/dbus-specification.html#type-system>
public struct Signature: ValidatedName {
    /// The type codes.
    public let text: String
    /// Checks a signature; nil when the specification does not allow it.
    public init?(_ text: String) {
        guard Self.isValid(text.utf8) else { return nil }
        self.init(validated: text)
    }
    /// Takes a signature that is known to be valid.
    init(validated text: String) { self.text = text }

    /// No values at all.
    public static let empty: Signature = ""
    /// What options are carried in.
    public static let options: Signature = "a{sv}"

    /// At most 255 codes, 32 arrays and 32 structures deep, and every container closed.
    private static func isValid(_ bytes: String.UTF8View) -> Bool {
        guard bytes.count <= 255 else { return false }
        var scanner = SignatureScanner(bytes[...])
        while !scanner.isAtEnd {
            guard scanner.skipType(arrays: 0, structures: 0) else { return false }
        }
        return true
    }

    /// Whether there is exactly one complete type.
    public var isSingle: Bool { completeTypes.count == 1 }

    /// The single complete types, one after another.
    public var completeTypes: [Signature] {
        var types: [Signature] = []
        var scanner = SignatureScanner(text.utf8[...])
        while !scanner.isAtEnd {
            let rest = scanner.rest
            guard scanner.skipType(arrays: 0, structures: 0) else { return types }
            types.append(Signature(validated: String(Substring(rest[..<scanner.rest.startIndex]))))
        }
        return types
    }

    /// The signature of both, one after the other; for signatures whose sum is known to be short.
    init(joining parts: some Sequence<Signature>) { text = parts.map(\.text).joined() }
}

/// Walks over type codes without trusting them.
private struct SignatureScanner {
    var rest: Substring.UTF8View

    init(_ codes: Substring.UTF8View) { rest = codes }

    var isAtEnd: Bool { rest.isEmpty }

    /// Steps over one complete type; false when there is none.
    mutating func skipType(arrays: Int, structures: Int) -> Bool {
        guard let code = rest.popFirst() else { return false }
        switch code {
        case UInt8(ascii: "v"):
            return true
        case UInt8(ascii: "a"):
            guard arrays < 32 else { return false }
            if rest.first == UInt8(ascii: "{") { return skipEntry(arrays: arrays + 1, structures: structures) }
            return skipType(arrays: arrays + 1, structures: structures)
        case UInt8(ascii: "("):
            guard structures < 32, rest.first != UInt8(ascii: ")") else { return false }
            while rest.first != UInt8(ascii: ")") {
                guard skipType(arrays: arrays, structures: structures + 1) else { return false }
            }
            rest.removeFirst()
            return true
        default:
            return isBasic(code)
        }
    }

    private mutating func skipEntry(arrays: Int, structures: Int) -> Bool {
        rest.removeFirst()
        guard structures < 32, let key = rest.popFirst(), isBasic(key) else { return false }
        return skipType(arrays: arrays, structures: structures + 1) && rest.popFirst() == UInt8(ascii: "}")
    }

    private func isBasic(_ code: UInt8) -> Bool { "ybnqiuxtdsogh".utf8.contains(code) }
}
