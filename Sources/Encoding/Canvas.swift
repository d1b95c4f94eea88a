// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop

/// The picture that an encoding shows, of a size that never changes: what is drawn on it is scaled to fit.
///
/// It outlives the frames that were drawn, so that a key frame can be made of a screen that has not changed for an hour.
final class Canvas {
    let size: PixelSize
    private var shown: Picture
    /// Where a picture of another size is scaled to, before it is compared.
    private var scratch: Picture?
    private let overlay = CursorOverlay()
    /// The size of the picture that was drawn last.
    private var source: PixelSize?

    init(size: PixelSize) throws(EncodingError) {
        self.size = size
        shown = try Canvas.makePicture(size)
        Conversion.fillBlack(shown.planes)
    }

    var planes: I420Planes { shown.planes }

    /// Draws a picture and the pointer over it, and selects in `blocks` those that look different now.
    ///
    /// - Parameters:
    ///   - source: nil when only the pointer may be another.
    ///   - damage: what may differ from what is shown, in pixels of the source.
    func draw(
        _ source: I420Planes?, _ damage: Damage, _ cursor: CursorImage, selecting blocks: inout BlockMap
    ) throws(EncodingError) {
        blocks.selectNothing()
        self.source = source?.size ?? self.source
        let place = self.source.flatMap { overlay.place(cursor, over: $0, on: size) }
        let isLifted = overlay.drawn != place || (source.map { covers(place, $0.size, damage) } ?? false)
        if isLifted { try overlay.lift(off: shown.planes, next: place) }
        if let source { try draw(source, damage, selecting: &blocks) }
        if isLifted { try overlay.put(cursor, place, on: shown.planes, selecting: &blocks) }
    }

    /// Where the pointer lies, were it drawn; nil when nothing of it is to be seen.
    func place(_ cursor: CursorImage) -> PixelRect? {
        source.flatMap { overlay.place(cursor, over: $0, on: size) }?.area
    }

    /// Whether a pointer lies over something that may differ.
    private func covers(_ place: CursorOverlay.Place?, _ source: PixelSize, _ damage: Damage) -> Bool {
        guard let place, !damage.isEmpty else { return false }
        // A picture that is scaled is drawn as a whole.
        if source != size { return true }
        let blocks = place.blocks(of: size)
        var isCovered = false
        damage.forEach(in: size) { if !$0.intersection(blocks).isEmpty { isCovered = true } }
        return isCovered
    }

    private func draw(_ source: I420Planes, _ damage: Damage, selecting blocks: inout BlockMap) throws(EncodingError) {
        if damage.isEmpty { return }
        if source.size == size {
            damage.forEach(in: size) { copyChanges(of: source, in: $0, to: shown.planes, selecting: &blocks) }
            return
        }
        let scaled: Picture
        if let scratch { scaled = scratch } else { scaled = try Canvas.makePicture(size) }
        scratch = scaled
        Conversion.fit(source, into: scaled.planes)
        copyChanges(of: scaled.planes, in: PixelRect(size), to: shown.planes, selecting: &blocks)
    }

    /// Draws the picture that stands for a missing one.
    func drawPlaceholder() throws(EncodingError) {
        overlay.forget()
        do throws(Errno) { shown = try Picture.placeholder(size: size) } catch { throw .outOfMemory(size) }
    }

    /// All samples, without padding.
    func packed() -> [UInt8] {
        let planes = shown.planes
        let chroma = size.chroma
        let count = size.width * size.height + 2 * chroma.width * chroma.height
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            guard var target = buffer.baseAddress else { return }
            for (plane, stride, size) in [
                (planes.luma, planes.lumaStride, size), (planes.blue, planes.chromaStride, chroma),
                (planes.red, planes.chromaStride, chroma),
            ] {
                for row in 0..<size.height {
                    target.update(from: plane + row * stride, count: size.width)
                    target += size.width
                }
            }
            initialized = count
        }
    }

    static func makePicture(_ size: PixelSize) throws(EncodingError) -> Picture {
        do throws(Errno) { return try Picture(size: size) } catch { throw .outOfMemory(size) }
    }

    /// Copies what differs within a rectangle, whole rows of blocks at a time.
    private func copyChanges(of source: I420Planes, in rect: PixelRect, to target: I420Planes, selecting blocks: inout BlockMap) {
        guard !rect.isEmpty else { return }
        let columns = (rect.x / 16)..<((rect.x + rect.width + 15) / 16)
        let rows = (rect.y / 16)..<((rect.y + rect.height + 15) / 16)
        let width = blocks.columns
        let chroma = size.chroma
        blocks.selected.withUnsafeMutableBufferPointer { selected in
            guard let selected = selected.baseAddress else { return }
            for row in rows {
                let flags = selected + row * width
                copyRows(
                    source.luma, source.lumaStride, target.luma, target.lumaStride, size, row: row, columns: columns, side: 16, flags)
                copyRows(
                    source.blue, source.chromaStride, target.blue, target.chromaStride, chroma, row: row, columns: columns, side: 8, flags)
                copyRows(
                    source.red, source.chromaStride, target.red, target.chromaStride, chroma, row: row, columns: columns, side: 8, flags)
            }
        }
    }
}

/// Compares and copies one row of blocks of one plane; sets the flag of each block that differs.
private func copyRows(
    _ source: UnsafeMutablePointer<UInt8>, _ sourceStride: Int, _ target: UnsafeMutablePointer<UInt8>, _ targetStride: Int,
    _ size: PixelSize, row: Int, columns: Range<Int>, side: Int, _ flags: UnsafeMutablePointer<UInt8>
) {
    let left = columns.lowerBound * side
    let right = min(columns.upperBound * side, size.width)
    guard left < right else { return }
    for y in (row * side)..<min((row + 1) * side, size.height) {
        let from = source + y * sourceStride
        let to = target + y * targetStride
        if memcmp(from + left, to + left, right - left) == 0 { continue }
        for column in columns where flags[column] == 0 {
            let start = column * side
            let count = min(side, right - start)
            if count > 0 && memcmp(from + start, to + start, count) != 0 { flags[column] = 1 }
        }
        memcpy(to + left, from + left, right - left)
    }
}
