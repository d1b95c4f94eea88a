// SPDX-License-Identifier: MIT

/// A name of the bus protocol: valid by construction.
///
/// A literal in our own source traps when it is wrong; everything that comes from elsewhere goes through `init(_:)`.
/// `T("literal")` is a literal too.
///
/// <https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-names>
public protocol ValidatedName: Hashable, Comparable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// The name as it goes over the wire.
    var text: String { get }
    /// Checks a name; nil when the specification does not allow it.
    init?(_ text: String)
}

extension ValidatedName {
    /// Takes a name that is written in the source.
    ///
    /// - Precondition: it is valid.
    public init(static literal: StaticString) {
        guard let name = Self(literal.description) else { preconditionFailure("invalid \(Self.self): \(literal)") }
        self = name
    }

    /// Takes a name that is written in the source.
    public init(stringLiteral literal: StaticString) { self.init(static: literal) }

    /// The name as it goes over the wire.
    public var description: String { text }

    /// Orders by the bytes of the name.
    public static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}

/// Where an object is: `/org/example/Thing`.
public struct ObjectPath: ValidatedName {
    /// The path as it goes over the wire.
    public let text: String
    /// Checks a path; nil when the specification does not allow it.
    public init?(_ text: String) {
        guard Self.isValid(text.utf8) else { return nil }
        self.init(validated: text)
    }
    /// Takes a path that is known to be valid.
    init(validated text: String) { self.text = text }

    /// `/`.
    public static let root: ObjectPath = "/"

    /// Elements of letters, digits and underscores, each after a slash. Paths have no greatest length.
    private static func isValid(_ bytes: String.UTF8View) -> Bool {
        var previous = UInt8.zero
        for (index, byte) in bytes.enumerated() {
            if index == 0 {
                guard byte == slash else { return false }
            } else {
                guard byte == slash ? previous != slash : isWordByte(byte) else { return false }
            }
            previous = byte
        }
        return previous != 0 && (previous != slash || bytes.count == 1)
    }

    /// The path one level up; nil for the root.
    public var parent: ObjectPath? {
        guard self != .root, let index = text.lastIndex(of: "/") else { return nil }
        return index == text.startIndex ? .root : ObjectPath(validated: String(text[..<index]))
    }

    /// The path of a child, or nil when `element` cannot be one.
    public func appending(_ element: String) -> ObjectPath? {
        ObjectPath(self == .root ? "/" + element : text + "/" + element)
    }

    /// Whether this is `ancestor` or lies below it.
    public func isInside(_ ancestor: ObjectPath) -> Bool {
        self == ancestor || text.hasPrefix(ancestor.prefixOfDescendants)
    }

    /// What the paths of all descendants begin with.
    var prefixOfDescendants: String { self == .root ? "/" : text + "/" }
}

/// The name of a connection: its unique name (`:1.42`), or one that it asked for (`org.example.Thing`).
public struct BusName: ValidatedName {
    /// The name as it goes over the wire.
    public let text: String
    /// Checks a name; nil when the specification does not allow it.
    public init?(_ text: String) {
        guard Self.isValid(text.utf8) else { return nil }
        self.init(validated: text)
    }
    /// Takes a name that is known to be valid.
    init(validated text: String) { self.text = text }

    /// The bus itself.
    public static let bus: BusName = "org.freedesktop.DBus"

    /// Whether the bus gave the name; such a name never comes again.
    public var isUnique: Bool { text.utf8.first == colon }

    /// Two or more elements, of which only those of a unique name begin with a digit.
    private static func isValid(_ bytes: String.UTF8View) -> Bool {
        let isUnique = bytes.first == colon
        return areValidElements(isUnique ? bytes.dropFirst() : bytes[...], dashes: true, leadingDigits: isUnique) && bytes.count <= 255
    }
}

/// The name of an interface, or of an error.
public struct InterfaceName: ValidatedName {
    /// The name as it goes over the wire.
    public let text: String
    /// Checks a name; nil when the specification does not allow it.
    public init?(_ text: String) {
        guard Self.isValid(text.utf8) else { return nil }
        self.init(validated: text)
    }
    /// Takes a name that is known to be valid.
    init(validated text: String) { self.text = text }

    /// Two or more elements of letters, digits and underscores, none of which begins with a digit.
    private static func isValid(_ bytes: String.UTF8View) -> Bool {
        areValidElements(bytes[...], dashes: false, leadingDigits: false) && bytes.count <= 255
    }
}

/// The name of a method, a signal or a property.
public struct MemberName: ValidatedName {
    /// The name as it goes over the wire.
    public let text: String
    /// Checks a name; nil when the specification does not allow it.
    public init?(_ text: String) {
        guard Self.isValid(text.utf8) else { return nil }
        self.init(validated: text)
    }
    /// Takes a name that is known to be valid.
    init(validated text: String) { self.text = text }

    /// Letters, digits and underscores, not beginning with a digit.
    private static func isValid(_ bytes: String.UTF8View) -> Bool {
        guard let first = bytes.first, !isDigit(first), bytes.count <= 255 else { return false }
        return bytes.allSatisfy(isWordByte)
    }
}

private let slash = UInt8(ascii: "/")
private let colon = UInt8(ascii: ":")

private func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

private func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): true
    default: isDigit(byte)
    }
}

private func areValidElements(_ bytes: Substring.UTF8View, dashes: Bool, leadingDigits: Bool) -> Bool {
    let elements = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return elements.count >= 2
        && elements.allSatisfy { element in
            guard let first = element.first, leadingDigits || !isDigit(first) else { return false }
            return element.allSatisfy { isWordByte($0) || (dashes && $0 == UInt8(ascii: "-")) }
        }
}
