// SPDX-License-Identifier: MIT
import Frames

/// What is hidden of one source of several, in the source's own pixels: hidden it stays, wherever in the picture the source moves.
///
/// What reaches the right or the lower edge of a source goes on beyond it, so that a source that grows shows nothing there.
struct HiddenParts: Equatable {
    /// Further than any source reaches.
    private static let endless = 1 << 20

    private let parts: [PixelRect]

    /// What masks of the whole picture hide of a source.
    ///
    /// - Parameters:
    ///   - place: of the source, in pixels of the whole.
    ///   - size: of the source, in its own pixels.
    init(below masks: [PixelRect], _ place: PixelRect, _ size: PixelSize) {
        self.init(masks.map { $0.intersection(place) }, of: place, size)
    }

    /// What a crop of the whole picture leaves out of a source.
    init(outside crop: PixelRect?, _ place: PixelRect, _ size: PixelSize) {
        self.init(crop.map { HiddenParts.outside($0.intersection(place), of: place) } ?? [], of: place, size)
    }

    private init(_ hidden: [PixelRect], of place: PixelRect, _ size: PixelSize) {
        parts = hidden.filter { !$0.isEmpty }.map { rect in
            let columns = HiddenParts.span(rect.x - place.x, rect.width, of: place.width, in: size.width)
            let rows = HiddenParts.span(rect.y - place.y, rect.height, of: place.height, in: size.height)
            return PixelRect(x: columns.lowerBound, y: rows.lowerBound, width: columns.count, height: rows.count)
        }
    }

    /// The same as masks of the whole, for a source that lies there now.
    func masks(at place: PixelRect, _ size: PixelSize) -> [PixelRect] {
        parts.map { part in
            let (left, right) = HiddenParts.scaled(part.x, part.x + part.width, by: place.width, size.width)
            let (top, bottom) = HiddenParts.scaled(part.y, part.y + part.height, by: place.height, size.height)
            return PixelRect(x: place.x + left, y: place.y + top, width: right - left, height: bottom - top).intersection(place)
        }
    }

    /// The four parts of a place around what is visible of it.
    private static func outside(_ visible: PixelRect, of place: PixelRect) -> [PixelRect] {
        if visible.isEmpty { return [place] }
        let (right, bottom) = (visible.x + visible.width, visible.y + visible.height)
        return [
            PixelRect(x: place.x, y: place.y, width: visible.x - place.x, height: place.height),
            PixelRect(x: right, y: place.y, width: place.x + place.width - right, height: place.height),
            PixelRect(x: visible.x, y: place.y, width: visible.width, height: visible.y - place.y),
            PixelRect(x: visible.x, y: bottom, width: visible.width, height: place.y + place.height - bottom),
        ]
    }

    private static func span(_ start: Int, _ length: Int, of whole: Int, in side: Int) -> Range<Int> {
        let (low, high) = scaled(start, start + length, by: side, whole)
        return low..<(start + length >= whole ? endless : high)
    }

    /// Whole pixels around a span that is measured anew.
    private static func scaled(_ start: Int, _ end: Int, by new: Int, _ old: Int) -> (start: Int, end: Int) {
        (start * new / old, (end * new + old - 1) / old)
    }
}
