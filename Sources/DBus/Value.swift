// SPDX-License-Identifier: MIT
public import Loop

/// A value of a message, of any type that the bus can carry.
///
/// Spec: <https://dbus.freedesktop.org/doc/dbus-specification.html#type-system>
public enum Value: Sendable {
    /// `y`.
    case byte(UInt8)
    /// `b`.
    case bool(Bool)
    /// `n`.
    case int16(Int16)
    /// `q`.
    case uint16(UInt16)
    /// `i`.
    case int32(Int32)
    /// `u`.
    case uint32(UInt32)
    /// `x`.
    case int64(Int64)
    /// `t`.
    case uint64(UInt64)
    /// `d`.
    case double(Double)
    /// `s`. One with a NUL in it cannot be sent.
    case string(String)
    /// `o`.
    case objectPath(ObjectPath)
    /// `g`.
    case signature(Signature)
    /// `h`. The message carries a duplicate.
    case descriptor(FileDescriptor)
    /// `a` of one complete type, which an empty array has too.
    indirect case array(of: Signature, [Value])
    /// `a{…}`, in the order of the wire.
    indirect case dictionary(key: Signature, value: Signature, [Entry])
    /// `(…)`, with at least one field.
    case structure([Value])
    /// `v`.
    indirect case variant(Value)

    /// A key of a dictionary and what it stands for.
    public struct Entry: Equatable, Sendable {
        /// A value of a basic type.
        public let key: Value
        /// A value of the dictionary's type.
        public let value: Value
        /// Pairs a key with a value.
        public init(key: Value, value: Value) { (self.key, self.value) = (key, value) }
    }

    /// The value's single complete type.
    public var signature: Signature {
        switch self {
        case .byte: .byte
        case .bool: .bool
        case .int16: .int16
        case .uint16: .uint16
        case .int32: .int32
        case .uint32: .uint32
        case .int64: .int64
        case .uint64: .uint64
        case .double: .double
        case .string: .string
        case .objectPath: .objectPath
        case .signature: .signature
        case .descriptor: .descriptor
        case .variant: .variant
        case .array(let element, _): Signature(validated: "a\(element)")
        case .dictionary(let key, let value, _): Signature(validated: "a{\(key)\(value)}")
        case .structure(let fields): Signature(validated: "(\(fields.map(\.signature.text).joined()))")
        }
    }
}

extension Signature {
    // Made once: large messages ask for them once a value.
    fileprivate static let byte: Signature = "y"
    fileprivate static let bool: Signature = "b"
    fileprivate static let int16: Signature = "n"
    fileprivate static let uint16: Signature = "q"
    fileprivate static let int32: Signature = "i"
    fileprivate static let uint32: Signature = "u"
    fileprivate static let int64: Signature = "x"
    fileprivate static let uint64: Signature = "t"
    fileprivate static let double: Signature = "d"
    fileprivate static let string: Signature = "s"
    fileprivate static let objectPath: Signature = "o"
    fileprivate static let signature: Signature = "g"
    fileprivate static let descriptor: Signature = "h"
    fileprivate static let variant: Signature = "v"
}

extension Value: Equatable {
    /// Compares types and contents; descriptors are equal when they are the same object.
    public static func == (left: Value, right: Value) -> Bool {
        switch (left, right) {
        case (.byte(let left), .byte(let right)): left == right
        case (.bool(let left), .bool(let right)): left == right
        case (.int16(let left), .int16(let right)): left == right
        case (.uint16(let left), .uint16(let right)): left == right
        case (.int32(let left), .int32(let right)): left == right
        case (.uint32(let left), .uint32(let right)): left == right
        case (.int64(let left), .int64(let right)): left == right
        case (.uint64(let left), .uint64(let right)): left == right
        case (.double(let left), .double(let right)): left == right
        case (.string(let left), .string(let right)): left == right
        case (.objectPath(let left), .objectPath(let right)): left == right
        case (.signature(let left), .signature(let right)): left == right
        case (.descriptor(let left), .descriptor(let right)): left === right
        case (.array(let leftType, let left), .array(let rightType, let right)): leftType == rightType && left == right
        case (.dictionary(let leftKey, let leftValue, let left), .dictionary(let rightKey, let rightValue, let right)):
            leftKey == rightKey && leftValue == rightValue && left == right
        case (.structure(let left), .structure(let right)): left == right
        case (.variant(let left), .variant(let right)): left == right
        default: false
        }
    }
}

// MARK: - Making values

extension Value {
    /// `a{sv}`: each value is put into a variant. Ordered by key, so that equal options are equal values.
    public static func options(_ options: [String: Value]) -> Value {
        let entries = options.sorted { $0.key < $1.key }.map { Entry(key: .string($0.key), value: .variant($0.value)) }
        return .dictionary(key: "s", value: "v", entries)
    }

    /// `as`.
    public static func strings(_ strings: some Sequence<String>) -> Value { .array(of: "s", strings.map(Value.string)) }

    /// `ao`.
    public static func objectPaths(_ paths: some Sequence<ObjectPath>) -> Value { .array(of: "o", paths.map(Value.objectPath)) }
}

// MARK: - Reading values

extension Value {
    /// The contents when it is a `b`.
    public var asBool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The contents when it is a `y`.
    public var asByte: UInt8? { if case .byte(let value) = self { value } else { nil } }
    /// The contents when it is an `i`.
    public var asInt32: Int32? { if case .int32(let value) = self { value } else { nil } }
    /// The contents when it is a `u`.
    public var asUInt32: UInt32? { if case .uint32(let value) = self { value } else { nil } }
    /// The contents when it is a `t`.
    public var asUInt64: UInt64? { if case .uint64(let value) = self { value } else { nil } }
    /// The contents when it is an `s`.
    public var asString: String? { if case .string(let value) = self { value } else { nil } }
    /// The contents when it is an `o`.
    public var asObjectPath: ObjectPath? { if case .objectPath(let value) = self { value } else { nil } }
    /// The contents when it is an `h`.
    public var asDescriptor: FileDescriptor? { if case .descriptor(let value) = self { value } else { nil } }
    /// The elements when it is an array that is no dictionary.
    public var asArray: [Value]? { if case .array(_, let elements) = self { elements } else { nil } }
    /// The fields when it is a structure.
    public var asStructure: [Value]? { if case .structure(let fields) = self { fields } else { nil } }
    /// What is inside when it is a `v`.
    public var asVariant: Value? { if case .variant(let value) = self { value } else { nil } }

    /// The strings when it is an `as`.
    public var asStrings: [String]? {
        guard case .array(of: "s", let elements) = self else { return nil }
        return elements.compactMap(\.asString)
    }

    /// The paths when it is an `ao`.
    public var asObjectPaths: [ObjectPath]? {
        guard case .array(of: "o", let elements) = self else { return nil }
        return elements.compactMap(\.asObjectPath)
    }

    /// The options when it is an `a{sv}`, taken out of their variants. Of a key that comes twice, the last one counts.
    public var asOptions: [String: Value]? {
        guard case .dictionary(key: "s", value: "v", let entries) = self else { return nil }
        var options: [String: Value] = [:]
        for entry in entries {
            if let key = entry.key.asString, let value = entry.value.asVariant { options[key] = value }
        }
        return options
    }
}
