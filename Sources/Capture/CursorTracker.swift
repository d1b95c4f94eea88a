// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Loop

/// What a producer wrote of its pointer into one buffer, in pixels of memory. Checked as far as it goes: nothing in it leads out of the metadata.
struct CursorReading {
    /// What is said of the bitmap.
    enum Bitmap {
        case unchanged
        case invisible
        /// Within the metadata's bytes.
        case pixels(UnsafeRawBufferPointer, PixelSize, strideBytes: Int, PixelFormat)
    }

    /// Whether the pointer is in the picture at all. When not, nothing else has a meaning.
    var isPresent: Bool
    var (x, y) = (0, 0)
    var (hotspotX, hotspotY) = (0, 0)
    var bitmap = Bitmap.unchanged

    /// Reads `SPA_META_Cursor`.
    ///
    /// An id of 0 is documented as "no new cursor data". mutter and KWin, who write the metadata into every buffer, mean by it that the pointer is not in
    /// what is shared: over another window, on another monitor, hidden. Taken by the letter, it would stand still where it left.
    ///
    /// - Parameter bytes: of the metadata, all of them.
    /// - Returns: nil when they are too few.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let cursor = CursorReading.load(spa_meta_cursor.self, bytes, at: 0) else { return nil }
        isPresent = cursor.id != 0
        (x, y) = (Int(cursor.position.x), Int(cursor.position.y))
        (hotspotX, hotspotY) = (Int(cursor.hotspot.x), Int(cursor.hotspot.y))
        if isPresent && cursor.bitmap_offset != 0 { bitmap = CursorReading.bitmap(bytes, at: Int(cursor.bitmap_offset)) }
    }

    /// One that cannot be is as none: the pointer keeps the shape that it has.
    private static func bitmap(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Bitmap {
        guard start >= MemoryLayout<spa_meta_cursor>.size, let bitmap = load(spa_meta_bitmap.self, bytes, at: start) else {
            return .unchanged
        }
        if bitmap.format == SPA_VIDEO_FORMAT_UNKNOWN.rawValue { return .unchanged }
        let size = PixelSize(width: Int(bitmap.size.width), height: Int(bitmap.size.height))
        if bitmap.offset == 0 || size.width == 0 || size.height == 0 { return .invisible }
        // Both are 32 bits: the sum fits.
        let first = start + Int(bitmap.offset)
        guard Int(bitmap.offset) >= MemoryLayout<spa_meta_bitmap>.size, first < bytes.count,
            let format = format(spa_video_format(bitmap.format))
        else { return .unchanged }
        let stride = bitmap.stride == 0 ? size.width * PixelFormat.bytesPerPixel : Int(bitmap.stride)
        return .pixels(UnsafeRawBufferPointer(rebasing: bytes[first...]), size, strideBytes: stride, format)
    }

    /// The formats that a bitmap may have: those with alpha.
    private static func format(_ number: spa_video_format) -> PixelFormat? {
        switch number {
        case SPA_VIDEO_FORMAT_BGRA: .bgra
        case SPA_VIDEO_FORMAT_RGBA: .rgba
        case SPA_VIDEO_FORMAT_ARGB: .argb
        case SPA_VIDEO_FORMAT_ABGR: .abgr
        default: nil
        }
    }

    private static func load<Part>(_: Part.Type, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Part? {
        guard bytes.count >= MemoryLayout<Part>.size, offset <= bytes.count - MemoryLayout<Part>.size else { return nil }
        return bytes.loadUnaligned(fromByteOffset: offset, as: Part.self)
    }
}

/// Keeps what a producer says of its pointer, and shows it in the pool as it lies over the latest picture.
///
/// Nothing here allocates once it was made: it runs in the process callback. Thread: capture.
final class CursorTracker {
    /// Where the latest picture comes from: what decides where a pixel of memory lies in it.
    struct Placement: Equatable {
        /// The part of memory that is the source, before it is turned upright.
        var visible: PixelRect
        var transform: Transform
        /// The part of the upright source that is the picture.
        var part: PixelRect
    }

    private let pool: FramePool
    /// As the producer gave it.
    private let bitmap: CursorBitmap
    /// Upright, without what is masked.
    private let shown: CursorBitmap
    private var reading: CursorReading?
    private var hasBitmap = false
    /// How what is in the pool was turned; nil when it is not the producer's whole bitmap.
    private var shownTransform: Transform?
    /// What was shown last, to see that it is shown still.
    private var (lastPlacement, lastView): (Placement?, CaptureView) = (nil, CaptureView())
    private var isStale = true

    /// - Throws: when there is no memory for the bitmaps.
    init(pool: FramePool) throws(Errno) {
        self.pool = pool
        (bitmap, shown) = (try CursorBitmap(), try CursorBitmap())
        try pool.prepareCursor()
    }

    /// Takes note of what a buffer says, whatever else it is good for. Buffers come in the producer's order.
    func note(_ new: CursorReading) {
        isStale = true
        reading = new
        guard new.isPresent else { return }
        switch new.bitmap {
        case .unchanged: break
        case .invisible: hasBitmap = false
        case .pixels(let bytes, let size, let stride, let format):
            guard bitmap.load(bytes, size: size, strideBytes: stride, format: format) else { break }
            (hasBitmap, shownTransform) = (true, nil)
        }
    }

    /// Another stream has shown its pointer in the pool: this one's is given to it again, bitmap and all.
    func forgetShown() { (isStale, shownTransform) = (true, nil) }

    /// Shows the pointer over the latest picture, or hides it: when there is none, when none of it lies in the picture, and when it points at something
    /// that is masked. What it covers of other masked parts is left out.
    ///
    /// - Parameter placement: of the latest picture; nil when it shows nothing of the source.
    func show(over placement: Placement?, _ view: CaptureView) {
        guard isStale || placement != lastPlacement || view != lastView else { return }
        (isStale, lastPlacement, lastView) = (false, placement, view)
        guard let placement, let reading, reading.isPresent, hasBitmap else { return pool.hideCursor() }
        let (x, y) = (reading.x - reading.hotspotX, reading.y - reading.hotspotY)
        let area = placement.place(PixelRect(x: x, y: y, width: bitmap.size.width, height: bitmap.size.height))
        let point = placement.place(PixelRect(x: reading.x, y: reading.y, width: 1, height: 1))
        guard !area.intersection(PixelRect(placement.part.size)).isEmpty, !placement.isMasked(point, view) else { return pool.hideCursor() }
        var isCut = false
        for index in view.masks.indices where !view.mask(index, of: placement.part).intersection(area).isEmpty { isCut = true }
        let isNew = isCut || shownTransform != placement.transform
        if isNew {
            shown.load(bitmap, undoing: placement.transform)
            shownTransform = isCut ? nil : placement.transform
        }
        if isCut {
            for index in view.masks.indices {
                var mask = view.mask(index, of: placement.part)
                (mask.x, mask.y) = (mask.x - area.x, mask.y - area.y)
                shown.clear(mask)
            }
        }
        pool.showCursor(x: point.x, y: point.y, hotspotX: point.x - area.x, hotspotY: point.y - area.y, shown, isNew: isNew)
    }
}

extension CursorTracker.Placement {
    /// Where a part of memory lies in the picture.
    fileprivate func place(_ rect: PixelRect) -> PixelRect {
        var area = rect
        (area.x, area.y) = (area.x - visible.x, area.y - visible.y)
        area = transform.upright(area, of: visible.size)
        (area.x, area.y) = (area.x - part.x, area.y - part.y)
        return area
    }

    /// Whether a point of the picture, or of the source around it, lies under a mask: those are rounded out to whole chroma samples.
    fileprivate func isMasked(_ point: PixelRect, _ view: CaptureView) -> Bool {
        let around = PixelRect(x: point.x + part.x - 1, y: point.y + part.y - 1, width: 3, height: 3)
        for index in view.masks.indices where !view.masks[index].intersection(around).isEmpty { return true }
        return false
    }
}
