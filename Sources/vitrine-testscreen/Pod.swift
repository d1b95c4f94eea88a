// SPDX-License-Identifier: MIT
import CPipeWire

/// A POD, the form in which PipeWire passes parameters: just the kinds that a video source offers.
///
/// Spec: <https://docs.pipewire.org/page_spa_pod.html>
enum Pod {
    case id(UInt32)
    case int(Int32)
    case long(Int64)
    case rectangle(UInt32, UInt32)
    case fraction(UInt32, UInt32)
    /// The default first, then what it may be.
    case choice(spa_choice_type, [Pod])
    case object(type: Int, id: spa_param_type, [(key: UInt32, value: Pod)])

    /// Calls `body` with the POD in memory.
    static func withPointers<Result>(_ pods: [Pod], _ body: (UnsafeMutablePointer<UnsafePointer<spa_pod>?>, UInt32) -> Result) -> Result {
        var words: [UInt64] = []
        var starts: [Int] = []
        for pod in pods {
            starts.append(words.count)
            var bytes = pod.bytes
            bytes.append(contentsOf: repeatElement(0, count: -bytes.count & 7))
            for index in stride(from: 0, to: bytes.count, by: 8) {
                words.append(bytes[index..<index + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) })
            }
        }
        return words.withUnsafeBytes { memory in
            var pointers = starts.map { start in memory.baseAddress.map { UnsafePointer<spa_pod>(OpaquePointer($0 + start * 8)) } }
            return pointers.withUnsafeMutableBufferPointer { buffer in
                // An empty array has no address; no parameters need none.
                guard let base = buffer.baseAddress else {
                    var none: UnsafePointer<spa_pod>?
                    return body(&none, 0)
                }
                return body(base, UInt32(buffer.count))
            }
        }
    }

    private var bytes: [UInt8] {
        let body = body
        return Pod.word(UInt32(body.count)) + Pod.word(type) + body
    }

    private var type: UInt32 {
        let type =
            switch self {
            case .id: SPA_TYPE_Id
            case .int: SPA_TYPE_Int
            case .long: SPA_TYPE_Long
            case .rectangle: SPA_TYPE_Rectangle
            case .fraction: SPA_TYPE_Fraction
            case .choice: SPA_TYPE_Choice
            case .object: SPA_TYPE_Object
            }
        return UInt32(type)
    }

    private var body: [UInt8] {
        switch self {
        case .id(let value): return Pod.word(value)
        case .int(let value): return Pod.word(UInt32(bitPattern: value))
        case .long(let value): return Pod.word(UInt32(truncatingIfNeeded: value)) + Pod.word(UInt32(truncatingIfNeeded: value >> 32))
        case .rectangle(let first, let second), .fraction(let first, let second): return Pod.word(first) + Pod.word(second)
        case .choice(let kind, let values):
            let (size, type) = (UInt32(values.first?.body.count ?? 0), values.first?.type ?? 0)
            return [kind.rawValue, 0, size, type].flatMap(Pod.word) + values.flatMap(\.body)
        case .object(let type, let id, let properties):
            var bytes = Pod.word(UInt32(type)) + Pod.word(id.rawValue)
            for (key, value) in properties {
                // Only who understands DMA-BUF modifiers may take a format that has one.
                let flags = key == SPA_FORMAT_VIDEO_modifier.rawValue ? SPA_POD_PROP_FLAG_MANDATORY : 0
                bytes += Pod.word(key) + Pod.word(UInt32(flags)) + value.bytes
                bytes += repeatElement(0, count: -bytes.count & 7)
            }
            return bytes
        }
    }

    private static func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
}
