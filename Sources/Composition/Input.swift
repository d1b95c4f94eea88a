// SPDX-License-Identifier: MIT
import Frames

/// One source of a composed picture: the pool it is captured into, and the picture of it that is shown.
///
/// Thread: capture.
final class Input {
    let pool: FramePool
    let reader: FramePool.ReaderID
    /// What it is taken to measure before its first picture.
    let expected: PixelSize?
    /// Of the picture that is shown.
    private(set) var size = PixelSize(width: 0, height: 0)
    /// What masks and crop hide of it, wherever it lies; of no use while they are not bound to the sources.
    var hidden: (byMasks: HiddenParts, byCrop: HiddenParts)?
    /// The source's pointer, as it was taken last.
    let cursor = CursorImage()
    private var shown: Shown?

    /// Keeps a lease where it can be looked at without being taken: Swift 6.0 does not chain through an optional one.
    private final class Shown {
        private let frame: FrameLease

        init(_ frame: consuming FrameLease) { self.frame = frame }

        func withPlanes(_ body: (I420Planes) -> Void) { frame.withPlanes { body($0) } }
    }

    init(_ pool: FramePool, expected: PixelSize?) {
        (self.pool, self.expected) = (pool, expected.flatMap { $0.isUsable ? $0 : nil })
        reader = pool.addReader(bell: nil, followsCursor: true)
    }

    var hasPicture: Bool { size.isUsable }

    /// Shows a newer picture from now on.
    func accept(_ frame: consuming FrameLease) {
        size = frame.size
        shown = Shown(frame)
    }

    /// Draws parts of the source. One that is made smaller is drawn as a whole, once, since a part of it would not meet the rest without a seam.
    ///
    /// - Parameters:
    ///   - areas: in pixels of the whole.
    ///   - place: where the source lies in the whole.
    ///   - view: the part of the whole that the planes are.
    func draw(_ areas: [PixelRect], at place: PixelRect, _ view: PixelRect, _ planes: I420Planes) {
        guard let shown, areas.contains(where: { !$0.intersection(place).isEmpty }) else { return }
        shown.withPlanes { source in
            if place.size == source.size {
                for area in areas { copy(source, area.intersection(place), at: place, view, planes) }
            } else {
                scale(source, at: place, view, planes)
            }
        }
    }

    private func copy(_ source: I420Planes, _ area: PixelRect, at place: PixelRect, _ view: PixelRect, _ planes: I420Planes) {
        let area = area.intersection(view)
        let from = PixelRect(x: area.x - place.x, y: area.y - place.y, width: area.width, height: area.height)
        let to = PixelRect(x: area.x - view.x, y: area.y - view.y, width: area.width, height: area.height)
        guard let from = source.part(from), let to = planes.part(to) else { return }
        Conversion.copy(from, into: to)
    }

    private func scale(_ source: I420Planes, at place: PixelRect, _ view: PixelRect, _ planes: I420Planes) {
        let visible = place.intersection(view)
        if visible == place {
            let target = PixelRect(x: place.x - view.x, y: place.y - view.y, width: place.width, height: place.height)
            if let target = planes.part(target) { Conversion.scale(source, into: target) }
            return
        }
        // Rare: too large a picture, of which the crop cuts a source. It takes memory of its own for the moment.
        guard let whole = try? Picture(size: place.size) else { return }
        Conversion.scale(source, into: whole.planes)
        copy(whole.planes, visible, at: place, view, planes)
    }

    /// Lets go of the pool.
    func close() {
        shown = nil
        pool.removeReader(reader)
    }
}
