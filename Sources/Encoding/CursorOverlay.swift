// SPDX-License-Identifier: MIT
import Frames

/// The pointer on a canvas: what it looks like there, and what is beneath it.
///
/// It is drawn over the picture and taken off again before the picture changes below, so that it leaves no trace.
final class CursorOverlay {
    /// A pointer as it lies on a canvas.
    struct Place: Equatable {
        var bitmap: UInt64
        /// Where the scaled bitmap lies; may reach beyond the picture.
        var area: PixelRect
        /// Where the picture lies on the canvas.
        var picture: PixelRect

        /// The blocks of 16 by 16 pixels that it touches, cut to the canvas.
        func blocks(of canvas: PixelSize) -> PixelRect {
            let part = area.intersection(picture)
            let (left, top) = (part.x & ~15, part.y & ~15)
            let (right, bottom) = ((part.x + part.width + 15) & ~15, (part.y + part.height + 15) & ~15)
            return PixelRect(x: left, y: top, width: right - left, height: bottom - top).intersection(PixelRect(canvas))
        }
    }

    /// What is drawn at present.
    private(set) var drawn: Place?
    private let beneath = Patch()
    /// How the blocks looked where it was and where it goes, before anything changed.
    private let (left, entered) = (Patch(), Patch())
    private var scaled: (bitmap: UInt64, size: PixelSize, pixels: [UInt8])?

    /// Where a pointer lies on a canvas.
    ///
    /// - Parameter source: the size of the picture that is shown.
    /// - Returns: nil when nothing of it is to be seen.
    func place(_ image: CursorImage, over source: PixelSize, on canvas: PixelSize) -> Place? {
        let cursor = image.cursor
        guard cursor.isVisible else { return nil }
        let picture = Conversion.letterbox(source, in: canvas)
        func scale(_ length: Int, _ to: Int, _ from: Int) -> Int {
            let product = length * to
            return (product >= 0 ? product + from / 2 : product - from / 2) / from
        }
        let width = max(1, scale(cursor.size.width, picture.width, source.width))
        let height = max(1, scale(cursor.size.height, picture.height, source.height))
        // What it points at stays exact.
        let x = picture.x + scale(cursor.x, picture.width, source.width) - scale(cursor.hotspotX, width, cursor.size.width)
        let y = picture.y + scale(cursor.y, picture.height, source.height) - scale(cursor.hotspotY, height, cursor.size.height)
        let area = PixelRect(x: x, y: y, width: width, height: height)
        return area.intersection(picture).isEmpty ? nil : Place(bitmap: cursor.bitmapSerial, area: area, picture: picture)
    }

    /// Takes the pointer off, and remembers how the blocks looked until now that it leaves or enters.
    func lift(off planes: I420Planes, next: Place?) throws(EncodingError) {
        try left.save(planes, drawn?.blocks(of: planes.size))
        try entered.save(planes, next?.blocks(of: planes.size))
        if drawn != nil { beneath.restore(to: planes) }
        drawn = nil
    }

    /// Puts the pointer on the picture, and selects the blocks that look different than before ``lift(off:next:)``.
    func put(_ image: CursorImage, _ place: Place?, on planes: I420Planes, selecting blocks: inout BlockMap) throws(EncodingError) {
        if let place, let pixels = pixels(image, place.area.size) {
            try beneath.save(planes, place.blocks(of: planes.size))
            Conversion.blend(pixels, in: place.area, onto: planes, clip: place.picture)
            drawn = place
        }
        left.selectChanges(in: planes, &blocks)
        entered.selectChanges(in: planes, &blocks)
    }

    /// There is another picture on the canvas, without a pointer.
    func forget() { drawn = nil }

    private func pixels(_ image: CursorImage, _ size: PixelSize) -> [UInt8]? {
        if let scaled, scaled.bitmap == image.cursor.bitmapSerial, scaled.size == size { return scaled.pixels }
        guard let pixels = Conversion.scale(image.pixels, from: image.cursor.size, to: size) else { return nil }
        scaled = (image.cursor.bitmapSerial, size, pixels)
        return pixels
    }
}

/// A copy of some blocks of a picture.
private final class Patch {
    /// Where they are; empty when there are none. Its corner lies on a block's.
    private var area = PixelRect(x: 0, y: 0, width: 0, height: 0)
    private var picture: Picture?

    private var copy: I420Planes? { picture?.planes.part(PixelRect(area.size)) }

    func save(_ planes: I420Planes, _ blocks: PixelRect?) throws(EncodingError) {
        area = blocks ?? PixelRect(x: 0, y: 0, width: 0, height: 0)
        guard !area.isEmpty else { return }
        if (picture?.size.width ?? 0) < area.width || (picture?.size.height ?? 0) < area.height {
            picture = try Canvas.makePicture(area.size)
        }
        if let part = planes.part(area), let copy { Conversion.copy(part, into: copy) }
    }

    func restore(to planes: I420Planes) {
        if let part = planes.part(area), let copy { Conversion.copy(copy, into: part) }
    }

    /// Selects the blocks that look different in a picture now.
    func selectChanges(in planes: I420Planes, _ blocks: inout BlockMap) {
        for y in stride(from: 0, to: area.height, by: 16) {
            for x in stride(from: 0, to: area.width, by: 16) {
                let index = (area.y + y) / 16 * blocks.columns + (area.x + x) / 16
                let old = picture?.planes.part(PixelRect(x: x, y: y, width: min(16, area.width - x), height: min(16, area.height - y)))
                let new = planes.part(PixelRect(x: area.x + x, y: area.y + y, width: 16, height: 16))
                if blocks.selected[index] == 0, let old, let new, !Conversion.isSame(old, new) { blocks.selected[index] = 1 }
            }
        }
    }
}
