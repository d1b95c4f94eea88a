// SPDX-License-Identifier: MIT
public import CPipeWire

/// A parameter in the form that PipeWire passes them: the kinds that sources and consumers of video need.
///
/// Spec: [SPA POD](https://docs.pipewire.org/page_spa_pod.html)
public indirect enum Pod {
    case id(UInt32)
    case int(Int32)
    case long(Int64)
    case rectangle(width: UInt32, height: UInt32)
    case fraction(UInt32, UInt32)
    /// One of those; the first is the best.
    case oneOf([Pod])
    /// From the least to the greatest; best the first.
    case range(best: Pod, least: Pod, greatest: Pod)
    /// Any of the bits.
    case flags(Int32)
    case object(type: Int, id: spa_param_type, [Property])

    /// What an object says of one thing.
    public struct Property {
        let key: UInt32
        let value: Pod
        let isMandatory: Bool

        /// - Parameter isMandatory: whether only those may take the object that know the property.
        public init(key: UInt32, value: Pod, isMandatory: Bool = false) {
            (self.key, self.value, self.isMandatory) = (key, value, isMandatory)
        }
    }

    /// Bytes for all parameters of one call.
    private static let memoryBytes = 16_384

    /// Calls `body` with the parameters in memory.
    public static func withParameters<Result>(_ pods: [Pod], _ body: (UnsafeMutablePointer<UnsafePointer<spa_pod>?>, UInt32) -> Result)
        -> Result
    {
        withUnsafeTemporaryAllocation(byteCount: memoryBytes, alignment: 8) { memory in
            var builder = spa_pod_builder()
            spa_pod_builder_init(&builder, memory.baseAddress, UInt32(memory.count))
            var pointers = pods.map { pod in UnsafePointer(pod.write(&builder)) }
            return pointers.withUnsafeMutableBufferPointer { pointers in
                // An empty list has no address; no parameters need none.
                var nothing: UnsafePointer<spa_pod>?
                guard let base = pointers.baseAddress else { return body(&nothing, 0) }
                return body(base, UInt32(pointers.count))
            }
        }
    }

    /// - Returns: the object; nil for values.
    @discardableResult
    private func write(_ builder: inout spa_pod_builder) -> UnsafeMutablePointer<spa_pod>? {
        switch self {
        case .id(let value): spa_pod_builder_id(&builder, value)
        case .int(let value): spa_pod_builder_int(&builder, value)
        case .long(let value): spa_pod_builder_long(&builder, value)
        case .rectangle(let width, let height): spa_pod_builder_rectangle(&builder, width, height)
        case .fraction(let numerator, let denominator): spa_pod_builder_fraction(&builder, numerator, denominator)
        case .oneOf(let values): Pod.write(&builder, SPA_CHOICE_Enum, values.prefix(1) + values)
        case .range(let best, let least, let greatest): Pod.write(&builder, SPA_CHOICE_Range, [best, least, greatest])
        case .flags(let bits): Pod.write(&builder, SPA_CHOICE_Flags, [.int(bits)])
        case .object(let type, let id, let properties):
            var frame = spa_pod_frame()
            spa_pod_builder_push_object(&builder, &frame, UInt32(type), id.rawValue)
            for property in properties {
                spa_pod_builder_prop(&builder, property.key, property.isMandatory ? UInt32(SPA_POD_PROP_FLAG_MANDATORY) : 0)
                property.value.write(&builder)
            }
            return spa_pod_builder_pop(&builder, &frame)?.assumingMemoryBound(to: spa_pod.self)
        }
        return nil
    }

    private static func write(_ builder: inout spa_pod_builder, _ kind: spa_choice_type, _ values: [Pod]) {
        var frame = spa_pod_frame()
        spa_pod_builder_push_choice(&builder, &frame, kind.rawValue, 0)
        for value in values { value.write(&builder) }
        spa_pod_builder_pop(&builder, &frame)
    }
}
