// SPDX-License-Identifier: MIT
import Frames
import Loop

/// The pointer over a composed picture, where it comes beside the pixels: that of the source in which it moved last.
///
/// Thread: capture.
final class ComposedPointer {
    private let pool: FramePool
    private let bitmap: CursorBitmap
    /// The source whose pointer is shown.
    private weak var holder: Input?
    /// What is shown: of which source, in which of its states, where, and under which view.
    private var last: (source: ObjectIdentifier, serial: UInt64, place: PixelRect, part: PixelRect, view: CaptureView)?
    /// The bitmap that is in the pool, whole; nil when it is not.
    private var shownBitmap: (source: ObjectIdentifier, serial: UInt64)?

    /// - Throws: when there is no memory for the bitmap.
    init(_ pool: FramePool) throws(Errno) {
        self.pool = pool
        bitmap = try CursorBitmap()
        try pool.prepareCursor()
    }

    /// Another one has shown its pointer in the pool.
    func forgetShown() { (last, shownBitmap) = (nil, nil) }

    /// Shows the pointer over the present picture, or hides it: where there is none, where none of it lies in the picture, and where it points at something
    /// masked.
    ///
    /// - Parameter part: of the whole, which is the picture.
    func show(over part: PixelRect, _ view: CaptureView, _ sources: [(input: Input, place: PixelRect)]) {
        for (input, _) in sources where input.pool.takeCursor(input.reader, into: input.cursor) {
            if input.cursor.cursor.isVisible { holder = input }
        }
        if holder?.cursor.cursor.isVisible != true { holder = sources.first { $0.input.cursor.cursor.isVisible }?.input }
        guard let holder, holder.hasPicture, let place = sources.first(where: { $0.input === holder })?.place, !part.isEmpty else {
            return hide()
        }
        let cursor = holder.cursor.cursor
        let source = ObjectIdentifier(holder)
        if let last, last.source == source, last.serial == cursor.serial, last.place == place, last.part == part, last.view == view {
            return
        }
        last = (source, cursor.serial, place, part, view)
        // A source that is made smaller keeps its pointer's bitmap: only the place moves.
        let (x, y) = (cursor.x * place.width / holder.size.width + place.x, cursor.y * place.height / holder.size.height + place.y)
        let point = PixelRect(x: x - 1, y: y - 1, width: 3, height: 3)
        let area = PixelRect(
            x: x - cursor.hotspotX - part.x, y: y - cursor.hotspotY - part.y, width: cursor.size.width, height: cursor.size.height)
        let isMasked = view.masks.contains { !$0.intersection(point).isEmpty }
        if isMasked || area.intersection(PixelRect(part.size)).isEmpty { return pool.hideCursor() }
        show(cursor, holder, area, part, view)
    }

    private func hide() {
        last = nil
        pool.hideCursor()
    }

    /// - Parameter area: of the bitmap in the picture.
    private func show(_ cursor: Cursor, _ holder: Input, _ area: PixelRect, _ part: PixelRect, _ view: CaptureView) {
        let covered = view.masks.indices.map { view.mask($0, of: part) }.filter { !$0.intersection(area).isEmpty }
        let source = ObjectIdentifier(holder)
        let isShown = covered.isEmpty && shownBitmap?.source == source && shownBitmap?.serial == cursor.bitmapSerial
        if !isShown {
            let isLoaded = bitmap.load(holder.cursor.pixels, size: cursor.size, strideBytes: cursor.strideBytes, format: .bgra)
            if !isLoaded { return pool.hideCursor() }
            for var mask in covered {
                (mask.x, mask.y) = (mask.x - area.x, mask.y - area.y)
                bitmap.clear(mask)
            }
            shownBitmap = covered.isEmpty ? (source, cursor.bitmapSerial) : nil
        }
        pool.showCursor(
            x: area.x + cursor.hotspotX, y: area.y + cursor.hotspotY, hotspotX: cursor.hotspotX, hotspotY: cursor.hotspotY, bitmap,
            isNew: !isShown)
    }
}
