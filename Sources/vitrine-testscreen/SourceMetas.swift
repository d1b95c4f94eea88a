// SPDX-License-Identifier: MIT
import CPipeWire
import Glibc
import Loop

/// What a buffer says about its picture.
struct Announcement {
    /// Of the header.
    var sequence: UInt64
    var isCorrupted = false
    /// What changed since the buffer before.
    var damage: [Rect]
    /// Where the pointer's bitmap lies in the upright picture.
    var pointer: Rect
    /// Whether the pointer's shape goes with it.
    var hasShape = false
}

/// Writes a buffer's metadata, true ones and those that the settings ask for instead.
struct MetadataWriter {
    let settings: Settings
    let layout: SourceBuffer.Layout
    let start: Instant

    func write(_ announcement: Announcement, into buffer: UnsafeMutablePointer<spa_buffer>) {
        writeHeader(announcement, buffer)
        if let crop = settings.crop, let region = find(SPA_META_VideoCrop, spa_meta_region.self, buffer) {
            region.pointee.region = crop.region
        }
        find(SPA_META_VideoTransform, spa_meta_videotransform.self, buffer)?.pointee.transform = settings.transform.rawValue
        writeDamage(announcement.damage, buffer)
        writeCursor(announcement, buffer)
    }

    private func find<Meta>(_ type: spa_meta_type, _: Meta.Type, _ buffer: UnsafeMutablePointer<spa_buffer>) -> UnsafeMutablePointer<Meta>?
    {
        spa_buffer_find_meta_data(buffer, type.rawValue, MemoryLayout<Meta>.size)?.assumingMemoryBound(to: Meta.self)
    }

    private func writeHeader(_ announcement: Announcement, _ buffer: UnsafeMutablePointer<spa_buffer>) {
        guard let header = find(SPA_META_Header, spa_meta_header.self, buffer) else { return }
        let now = Instant.now.nanoseconds
        header.pointee.flags = announcement.isCorrupted ? UInt32(SPA_META_HEADER_FLAG_CORRUPTED) : 0
        header.pointee.offset = 0
        header.pointee.dts_offset = 0
        header.pointee.seq = announcement.sequence
        header.pointee.pts =
            switch settings.timeStamps {
            case .normal: now
            case .invalid: -1
            case .zero: 0
            case .equal: start.nanoseconds
            case .backwards: start.nanoseconds - Int64(clamping: announcement.sequence) * 1_000_000
            case .old: now - 3_600_000_000_000
            }
    }

    private func writeDamage(_ damage: [Rect], _ buffer: UnsafeMutablePointer<spa_buffer>) {
        guard let meta = spa_buffer_find_meta(buffer, SPA_META_VideoDamage.rawValue), let memory = meta.pointee.data else { return }
        let regions = memory.assumingMemoryBound(to: spa_meta_region.self)
        let room = Int(meta.pointee.size) / MemoryLayout<spa_meta_region>.size
        let whole = Rect(layout.agreement.size)
        var report: [spa_region] =
            switch settings.damage {
            case .absent, .empty: []
            case .exact: damage.map { layout.place($0).region }
            case .full: [whole.region]
            case .huge: [Rect(-1_000_000, -1_000_000, 4_000_000, 4_000_000).region]
            case .garbage:
                [
                    spa_region(position: spa_point(x: .max, y: .min), size: spa_rectangle(width: .max, height: .max)),
                    spa_region(position: spa_point(x: -5, y: -5), size: spa_rectangle(width: 3, height: 3)),
                    spa_region(position: spa_point(x: Int32(whole.width), y: 0), size: spa_rectangle(width: 1, height: .max)),
                ]
            }
        // More than there is room for is everything.
        if report.count > room { report = [whole.region] }
        for (index, region) in report.prefix(room).enumerated() { regions[index].region = region }
        if report.count < room { regions[report.count].region = spa_region() }
    }

    private func writeCursor(_ announcement: Announcement, _ buffer: UnsafeMutablePointer<spa_buffer>) {
        guard settings.cursor != .absent, let meta = spa_buffer_find_meta(buffer, SPA_META_Cursor.rawValue),
            let memory = meta.pointee.data, Int(meta.pointee.size) >= MemoryLayout<spa_meta_cursor>.size
        else { return }
        let cursor = memory.assumingMemoryBound(to: spa_meta_cursor.self)
        cursor.pointee = spa_meta_cursor()
        guard settings.cursor != .invalid, settings.cursor != .normal || settings.cursorState != .away else { return }
        let hotspot = settings.cursorHotspot
        let point = layout.place(Rect(announcement.pointer.x + hotspot.x, announcement.pointer.y + hotspot.y, 1, 1))
        // The bitmap is turned as the picture is.
        let turned = shape(hotspot.x, hotspot.y)
        cursor.pointee.id = 1
        cursor.pointee.position = spa_point(x: Int32(clamping: point.x), y: Int32(clamping: point.y))
        cursor.pointee.hotspot = spa_point(x: Int32(clamping: turned.x), y: Int32(clamping: turned.y))
        guard announcement.hasShape || settings.cursor != .normal else { return }
        let place = MemoryLayout<spa_meta_cursor>.size
        let (bitmapBytes, pixelBytes) = (MemoryLayout<spa_meta_bitmap>.size, settings.cursorSize.width * settings.cursorSize.height * 4)
        guard Int(meta.pointee.size) >= place + bitmapBytes else { return }
        cursor.pointee.bitmap_offset = settings.cursor == .outside ? meta.pointee.size &+ 4096 : UInt32(place)
        let bitmap = (memory + place).assumingMemoryBound(to: spa_meta_bitmap.self)
        bitmap.pointee.format = settings.cursorFormat.id
        bitmap.pointee.offset = UInt32(bitmapBytes)
        var size = settings.transform.exchangesSides ? settings.cursorSize.turned : settings.cursorSize
        switch settings.cursor {
        case .hidden: size = Size(0, 0)
        case .normal where settings.cursorState == .hidden: size = Size(0, 0)
        case .huge: size = Size(4096, 4096)
        default:
            // The consumer may have left less room than the shape needs.
            guard Int(meta.pointee.size) >= place + bitmapBytes + pixelBytes else {
                cursor.pointee.bitmap_offset = 0
                return
            }
            paintShape(memory + place + bitmapBytes)
        }
        bitmap.pointee.size = spa_rectangle(width: UInt32(size.width), height: UInt32(size.height))
        bitmap.pointee.stride = Int32(clamping: size.width * 4)
    }

    /// Where a pixel of the upright bitmap lies in that of the metadata.
    private func shape(_ x: Int, _ y: Int) -> (x: Int, y: Int) {
        let placement = settings.transform.placement(of: settings.cursorSize)
        return (
            placement.origin.x + x * placement.right.x + y * placement.down.x,
            placement.origin.y + x * placement.right.y + y * placement.down.y
        )
    }

    /// The colours of a bitmap are multiplied by its alpha.
    private func paintShape(_ memory: UnsafeMutableRawPointer) {
        let (size, alpha) = (settings.cursorSize, settings.cursorShape.alpha)
        let pixels = memory.assumingMemoryBound(to: UInt32.self)
        let width = settings.transform.exchangesSides ? size.height : size.width
        let colour = settings.cursorShape.colour
        func multiplied(_ part: UInt8) -> UInt8 { UInt8(Int(part) * Int(alpha) / 255) }
        let pixel = settings.cursorFormat.pixel(
            Colour(multiplied(colour.red), multiplied(colour.green), multiplied(colour.blue)), rest: alpha)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let place = shape(x, y)
                pixels[place.y * width + place.x] = PointerShape.covers(x, y) ? pixel : 0
            }
        }
    }
}

extension Rect {
    fileprivate var region: spa_region {
        spa_region(
            position: spa_point(x: Int32(clamping: x), y: Int32(clamping: y)),
            size: spa_rectangle(width: UInt32(clamping: width), height: UInt32(clamping: height)))
    }
}
