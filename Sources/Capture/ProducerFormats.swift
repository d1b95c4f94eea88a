// SPDX-License-Identifier: MIT
import CPipeWire
import Frames

/// What a producer offers, collected to say in words why nothing could be agreed on: PipeWire itself tells the consumer nothing of it.
struct ProducerFormats {
    /// In words, each once, in the producer's order.
    private(set) var names: [String] = []
    /// Whether any of them can be read.
    private(set) var hasCommon = false
    /// Whether any of them can be read in shared memory.
    private(set) var hasSharedMemory = false

    /// The sizes of all offers.
    private var sizes: Set<PixelSize> = []
    /// The size, when there is but one; nil when the consumer may choose.
    var onlySize: PixelSize? { sizes.count == 1 ? sizes.first : nil }

    /// Adds one offer.
    mutating func add(_ param: UnsafePointer<spa_pod>) {
        guard let kind = Negotiation.kind(param) else { return }
        guard kind == (SPA_MEDIA_TYPE_video.rawValue, SPA_MEDIA_SUBTYPE_raw.rawValue) else {
            // A camera may offer compressed pictures beside plain ones.
            insert("encoded video")
            return
        }
        for size in ProducerFormats.values(param, SPA_FORMAT_VIDEO_size.rawValue, ofType: SPA_TYPE_Rectangle) ?? [] where sizes.count < 4 {
            // Width and height, as they lie in memory.
            sizes.insert(PixelSize(width: Int(UInt32(truncatingIfNeeded: size)), height: Int(size >> 32)))
        }
        let modifiers = ProducerFormats.values(param, SPA_FORMAT_VIDEO_modifier.rawValue, ofType: SPA_TYPE_Long)
        let isReadable = modifiers?.contains(Negotiation.linear) ?? true
        for format in ProducerFormats.values(param, SPA_FORMAT_VIDEO_format.rawValue, ofType: SPA_TYPE_Id) ?? [] {
            let number = spa_video_format(UInt32(truncatingIfNeeded: format))
            if PixelFormat(spaFormat: number) != nil && isReadable {
                hasCommon = true
                if modifiers == nil { hasSharedMemory = true }
            }
            insert(ProducerFormats.name(number) + (isReadable ? "" : " in tiled DMA-BUF"))
        }
    }

    private mutating func insert(_ name: String) {
        // A peer's list may be long; a message is not.
        if !names.contains(name) && names.count < 16 { names.append(name) }
    }

    /// The values that a property may have; nil when it is not there. PipeWire puts the best of a choice before all others, so it comes twice.
    private static func values(_ param: UnsafePointer<spa_pod>, _ key: UInt32, ofType type: Int) -> [UInt64]? {
        guard let property = spa_pod_find_prop(param, nil, key) else { return nil }
        // The value follows the property's key and flags.
        let value = UnsafeRawPointer(property) + MemoryLayout<spa_pod_prop>.size - MemoryLayout<spa_pod>.size
        var (count, choice): (UInt32, UInt32) = (0, 0)
        let width = type == SPA_TYPE_Id ? 4 : 8
        guard let first = spa_pod_get_values(value.assumingMemoryBound(to: spa_pod.self), &count, &choice),
            first.pointee.type == UInt32(type), first.pointee.size == width
        else { return [] }
        let body = UnsafeRawPointer(first) + MemoryLayout<spa_pod>.size
        return (0..<Int(count)).map { index in
            width == 8
                ? body.loadUnaligned(fromByteOffset: index * width, as: UInt64.self)
                : UInt64(body.loadUnaligned(fromByteOffset: index * width, as: UInt32.self))
        }
    }

    private static func name(_ format: spa_video_format) -> String {
        cpw_video_format_name(format.rawValue).map { String(cString: $0) } ?? "video format \(format.rawValue)"
    }
}
