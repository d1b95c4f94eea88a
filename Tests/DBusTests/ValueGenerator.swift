// SPDX-License-Identifier: MIT
import DBus

/// A connection that somebody may let go of.
final class Holder {
    var connection: Connection?
    init(_ connection: Connection) { self.connection = connection }
}

/// Makes values of all types and shapes, always the same ones for a seed.
struct ValueGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    private mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 16
    }

    private mutating func below(_ bound: UInt64) -> Int { Int(next() % bound) }

    /// A value with at most five containers in each other.
    mutating func value() -> Value { value(of: type(depth: 0), depth: 0) }

    private mutating func type(depth: Int) -> Signature {
        let basic = Array("ybnqiuxtdsog")
        func signature(_ text: String) -> Signature { Signature(text) ?? "y" }
        switch depth < 5 ? below(10) : 0 {
        case 6: return signature("a\(type(depth: depth + 1))")
        case 7: return signature("a{\(basic[below(12)])\(type(depth: depth + 1))}")
        case 8: return signature("(\((0...below(4)).map { _ in type(depth: depth + 1).text }.joined()))")
        case 9: return "v"
        default: return signature(String(basic[below(12)]))
        }
    }

    private mutating func value(of type: Signature, depth: Int) -> Value {
        let bits = next()
        switch type.text.first {
        case "b": return .bool(bits & 1 == 1)
        case "n": return .int16(Int16(truncatingIfNeeded: bits))
        case "q": return .uint16(UInt16(truncatingIfNeeded: bits))
        case "i": return .int32(Int32(truncatingIfNeeded: bits))
        case "u": return .uint32(UInt32(truncatingIfNeeded: bits))
        case "x": return .int64(Int64(truncatingIfNeeded: bits))
        case "t": return .uint64(bits)
        case "d": return .double(Double(bits) / 3)
        case "s": return .string(String(repeating: "aü🖥\n", count: below(9)))
        case "o": return .objectPath(ObjectPath("/a\(bits)/b") ?? .root)
        case "g": return .signature(type)
        case "v": return .variant(value(of: self.type(depth: depth + 1), depth: depth + 1))
        case "(":
            let fields = Signature(String(type.text.dropFirst().dropLast()))?.completeTypes ?? []
            return .structure(fields.map { value(of: $0, depth: depth + 1) })
        case "a": return array(of: type.text.dropFirst(), depth: depth)
        default: return .byte(UInt8(truncatingIfNeeded: bits))
        }
    }

    private mutating func array(of element: Substring, depth: Int) -> Value {
        let count = below(4)
        guard element.first == "{" else {
            let element = Signature(String(element)) ?? "y"
            return .array(of: element, (0..<count).map { _ in value(of: element, depth: depth + 1) })
        }
        let types = Signature(String(element.dropFirst().dropLast()))?.completeTypes ?? ["y", "y"]
        let entries = (0..<count).map { _ in
            Value.Entry(key: value(of: types[0], depth: depth + 1), value: value(of: types[1], depth: depth + 1))
        }
        return .dictionary(key: types[0], value: types[1], entries)
    }
}
