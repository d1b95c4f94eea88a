// SPDX-License-Identifier: MIT

/// What the protocol forbids in a message, found before the library sees it.
///
/// The library would abort over some of it, cut strings short at a NUL, or send what makes the bus hang up.
///
/// Spec: <https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-messages>
struct WireRules {
    /// Bytes of a whole message, of which the header takes at most a few hundred.
    private static let greatestBody = 128 * 1_024 * 1_024 - 4_096
    /// Bytes of an array's elements.
    private static let greatestArray = 64 * 1_024 * 1_024
    /// How many descriptors the kernel passes at once.
    private static let greatestDescriptorCount = 253
    /// How deep containers may lie in each other, variants included.
    private static let greatestDepth = 64

    private var size = 0
    private var descriptorCount = 0

    /// - Throws: `malformed`, with the reason in words.
    static func check(_ values: [Value]) throws(DBusError) {
        var rules = WireRules()
        for value in values { try rules.add(value, depth: 0) }
        guard Signature(values.map(\.signature.text).joined()) != nil else {
            throw .malformed("The message's types are longer than 255 codes, or too deep, or contain an empty structure.")
        }
    }

    private mutating func add(_ value: Value, depth: Int) throws(DBusError) {
        guard depth <= WireRules.greatestDepth else { throw .malformed("The message nests more than 64 containers.") }
        switch value {
        case .byte: size += 1
        case .int16, .uint16: grow(by: 2, alignedTo: 2)
        case .bool, .int32, .uint32: grow(by: 4, alignedTo: 4)
        case .int64, .uint64, .double: grow(by: 8, alignedTo: 8)
        case .objectPath(let path): grow(by: 4 + path.text.utf8.count + 1, alignedTo: 4)
        case .signature(let signature): size += signature.text.utf8.count + 2
        case .string(let text):
            guard !text.utf8.contains(0) else { throw .malformed("The string \(value.text) contains a NUL, which the bus cannot carry.") }
            grow(by: 4 + text.utf8.count + 1, alignedTo: 4)
        case .descriptor:
            grow(by: 4, alignedTo: 4)
            descriptorCount += 1
            guard descriptorCount <= WireRules.greatestDescriptorCount else {
                throw .malformed("The message has more than \(WireRules.greatestDescriptorCount) descriptors.")
            }
        case .structure(let fields):
            grow(by: 0, alignedTo: 8)
            for field in fields { try add(field, depth: depth + 1) }
        case .variant(let content):
            guard Signature(content.signature.text) != nil else { throw .malformed("No variant can have the type \(content.signature).") }
            size += content.signature.text.utf8.count + 2
            try add(content, depth: depth + 1)
        case .array(let element, let elements): try addArray(of: element, elements, depth: depth)
        case .dictionary(let key, let value, let entries): try addDictionary(key, value, entries, depth: depth)
        }
        guard size <= WireRules.greatestBody else { throw .malformed("The message is larger than 128 MiB.") }
    }

    private mutating func addArray(of element: Signature, _ elements: [Value], depth: Int) throws(DBusError) {
        guard element.isSingle else { throw .malformed("No array can have elements of the type \"\(element)\".") }
        let start = openArray(alignment: element.alignment)
        for value in elements {
            try expect(element, value, "an array")
            try add(value, depth: depth + 1)
        }
        try closeArray(start)
    }

    private mutating func addDictionary(
        _ key: Signature, _ value: Signature, _ entries: [Value.Entry], depth: Int
    ) throws(DBusError) {
        guard Signature("a{\(key)\(value)}") != nil, key.isSingle, value.isSingle else {
            throw .malformed("No dictionary can have entries of the type \"{\(key)\(value)}\".")
        }
        let start = openArray(alignment: 8)
        for entry in entries {
            try expect(key, entry.key, "a dictionary")
            try expect(value, entry.value, "a dictionary")
            grow(by: 0, alignedTo: 8)
            try add(entry.key, depth: depth + 2)
            try add(entry.value, depth: depth + 2)
        }
        try closeArray(start)
    }

    private func expect(_ signature: Signature, _ value: Value, _ container: String) throws(DBusError) {
        guard value.signature == signature else {
            throw .malformed("A value of the type \"\(value.signature)\" is in \(container) of \"\(signature)\".")
        }
    }

    private mutating func openArray(alignment: Int) -> Int {
        grow(by: 4, alignedTo: 4)
        grow(by: 0, alignedTo: alignment)
        return size
    }

    private func closeArray(_ start: Int) throws(DBusError) {
        guard size - start <= WireRules.greatestArray else { throw .malformed("An array is larger than 64 MiB.") }
    }

    private mutating func grow(by count: Int, alignedTo alignment: Int) {
        size = (size + alignment - 1) / alignment * alignment + count
    }
}

extension Signature {
    /// How values of the first type are aligned on the wire, in bytes.
    fileprivate var alignment: Int {
        switch text.utf8.first {
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("): 8
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        default: 4
        }
    }
}
