// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Loop

/// What one of the producer's buffers is good for.
enum BufferContent {
    /// A picture, within the buffer's bounds.
    case picture
    case corrupted
    case cursorOnly
    /// Bounds that do not fit the memory.
    case invalid
}

/// Where the picture lies in a buffer's memory.
struct PictureBounds {
    var offset: Int
    var strideBytes: Int
}

/// Reads what a producer wrote beside its pixels. All of it is another process's: nothing is believed before it was checked.
///
/// Nothing here allocates: it runs in the process callback.
struct BufferReading {
    let buffer: UnsafeMutablePointer<pw_buffer>

    private var spa: UnsafePointer<spa_buffer>? { buffer.pointee.buffer.map { UnsafePointer($0) } }

    private var data: spa_data? {
        guard let spa, spa.pointee.n_datas > 0, let datas = spa.pointee.datas else { return nil }
        return datas[0]
    }

    /// The memory that was mapped for it.
    var mapped: MappedBuffer? {
        buffer.pointee.user_data.map { Unmanaged<MappedBuffer>.fromOpaque($0).takeUnretainedValue() }
    }

    private var header: spa_meta_header? { meta(SPA_META_Header, spa_meta_header.self)?.pointee }

    /// The producer's number of the frame; nil when it does not count.
    var sequence: UInt64? { header?.seq }

    private func meta<Meta>(_ type: spa_meta_type, _: Meta.Type) -> UnsafePointer<Meta>? {
        guard let spa, let pointer = spa_buffer_find_meta_data(spa, type.rawValue, MemoryLayout<Meta>.size) else { return nil }
        return UnsafePointer(pointer.assumingMemoryBound(to: Meta.self))
    }

    /// Decides what the buffer is good for.
    ///
    /// A cursor-only buffer has no bytes, whatever its header says. A DMA-BUF's number of bytes means nothing; there, compositors mark the stale
    /// pixels beside a new cursor as corrupted.
    func content(_ size: PixelSize) -> BufferContent {
        guard let data, let chunk = data.chunk?.pointee else { return .invalid }
        if chunk.size == 0 && data.type != SPA_DATA_DmaBuf.rawValue { return .cursorOnly }
        if let header, header.flags & UInt32(SPA_META_HEADER_FLAG_CORRUPTED) != 0 { return .corrupted }
        if UInt32(bitPattern: chunk.flags) & UInt32(SPA_CHUNK_FLAG_CORRUPTED) != 0 {
            return meta(SPA_META_Cursor, spa_meta_cursor.self).map { $0.pointee.id != 0 } ?? false ? .cursorOnly : .corrupted
        }
        return bounds(size) == nil ? .invalid : .picture
    }

    /// Where the picture lies; nil when it would not lie within the memory.
    func bounds(_ size: PixelSize) -> PictureBounds? {
        guard let data, let chunk = data.chunk?.pointee, let mapped, !mapped.isBroken else { return nil }
        // The header asks for the offset modulo the size.
        let offset = data.maxsize > 0 ? Int(chunk.offset % data.maxsize) : Int(chunk.offset)
        let row = size.width * PixelFormat.bytesPerPixel
        let stride = chunk.stride == 0 ? row : Int(chunk.stride)
        // Both factors are below 2^31: the product fits.
        guard stride >= row, offset + stride * (size.height - 1) + row <= mapped.bytes.count else { return nil }
        return PictureBounds(offset: offset, strideBytes: stride)
    }

    /// The part that is to be shown; nil is all.
    var crop: PixelRect? {
        guard let region = meta(SPA_META_VideoCrop, spa_meta_region.self)?.pointee.region else { return nil }
        return region.size.width == 0 || region.size.height == 0 ? nil : PixelRect(region)
    }

    var transform: Transform {
        meta(SPA_META_VideoTransform, spa_meta_videotransform.self).flatMap { Transform(rawValue: $0.pointee.transform) } ?? .normal
    }

    /// What is said of the pointer; nil when nothing is.
    var cursor: CursorReading? {
        guard let spa, let meta = spa_buffer_find_meta(spa, SPA_META_Cursor.rawValue), let start = meta.pointee.data else { return nil }
        return CursorReading(UnsafeRawBufferPointer(start: start, count: Int(meta.pointee.size)))
    }

    /// Adds what changed, in pixels of memory. A producer that names nothing has not said that nothing changed, unless it sent no pixels.
    func foldDamage(into damage: inout Damage, hasPixels: Bool) {
        guard let spa, let meta = spa_buffer_find_meta(spa, SPA_META_VideoDamage.rawValue), let regions = meta.pointee.data else {
            if hasPixels { damage = .everything }
            return
        }
        let count = Int(meta.pointee.size) / MemoryLayout<spa_meta_region>.stride
        let list = regions.assumingMemoryBound(to: spa_meta_region.self)
        var index = 0
        while index < count, list[index].region.size.width != 0, list[index].region.size.height != 0 {
            damage.insert(PixelRect(list[index].region))
            index += 1
        }
        if index == 0 && hasPixels { damage = .everything }
    }

    /// When the producer showed the picture: what it says, if that can be, else when the buffer came.
    func time(arrival: Instant, last: Instant) -> Instant {
        let earliest = arrival + .seconds(-5)
        let latest = arrival + .seconds(1)
        if let header, header.pts > 0 {
            let time = Instant(nanoseconds: header.pts)
            if time > last && time >= earliest && time <= latest { return time }
        }
        return max(arrival, Instant(nanoseconds: last.nanoseconds + 1))
    }
}

extension PixelRect {
    /// A producer's rectangle.
    fileprivate init(_ region: spa_region) {
        self.init(x: Int(region.position.x), y: Int(region.position.y), width: Int(region.size.width), height: Int(region.size.height))
    }
}
