// SPDX-License-Identifier: MIT
import Glibc

/// Finds what differs between two pictures, for producers that do not say it.
enum Comparison {
    /// Rows that are looked at together: a row of macroblocks.
    private static let bandRows = 16

    /// The parts in which two pictures of the same size differ; none when they are the same picture.
    ///
    /// A picture of which all differs costs little more than the first row of each band.
    static func damage(_ old: I420Planes, _ new: I420Planes) -> Damage {
        precondition(old.size == new.size, "pictures of different sizes")
        var damage = Damage()
        var run = PixelRect(x: 0, y: 0, width: 0, height: 0)
        for top in stride(from: 0, to: new.size.height, by: bandRows) {
            let rect = difference(old, new, top, min(bandRows, new.size.height - top))
            if rect.isEmpty { continue }
            // Bands below each other that are about as wide are one rectangle.
            let joined = run.union(rect)
            if run.isEmpty || (run.y + run.height == top && joined.area * 4 <= (run.area + rect.area) * 5) {
                run = joined
            } else {
                damage.insert(run)
                run = rect
            }
        }
        damage.insert(run)
        return damage
    }

    /// Columns and rows of one band that differ, in whole chroma samples.
    private static func difference(_ old: I420Planes, _ new: I420Planes, _ top: Int, _ rows: Int) -> PixelRect {
        var columns = Columns(width: new.size.width)
        let width = new.size.width
        for row in top..<(top + rows) where !columns.isWide {
            columns.widen(old.luma + row * old.lumaStride, new.luma + row * new.lumaStride, width, scale: 1)
        }
        for row in (top / 2)..<((top + rows + 1) / 2) where !columns.isWide {
            columns.widen(old.blue + row * old.chromaStride, new.blue + row * new.chromaStride, new.size.chroma.width, scale: 2)
            columns.widen(old.red + row * old.chromaStride, new.red + row * new.chromaStride, new.size.chroma.width, scale: 2)
        }
        if columns.isEmpty { return PixelRect(x: 0, y: 0, width: 0, height: 0) }
        // The rows that were not looked at may differ beside these columns.
        if columns.isWide { return PixelRect(x: 0, y: top, width: width, height: rows) }
        return PixelRect(x: columns.first, y: top, width: columns.end - columns.first, height: rows)
    }

    /// The columns from the first to the last that differ.
    private struct Columns {
        /// Bytes that are compared at once.
        private static let step = 64
        let width: Int
        var first: Int
        var end = 0

        init(width: Int) { (self.width, first) = (width, width) }

        var isEmpty: Bool { end <= first }
        /// So wide that it is not worth looking for how wide.
        var isWide: Bool { (end - first) * 8 >= width * 7 }

        mutating func widen(_ old: UnsafePointer<UInt8>, _ new: UnsafePointer<UInt8>, _ count: Int, scale: Int) {
            guard memcmp(old, new, count) != 0 else { return }
            var left = 0
            while left * scale < first {
                let bytes = min(Columns.step, count - left)
                if bytes <= 0 || memcmp(old + left, new + left, bytes) != 0 { break }
                left += bytes
            }
            first = min(first, left * scale)
            var right = count
            while right * scale > end {
                let start = max(0, (right - 1) / Columns.step * Columns.step)
                if memcmp(old + start, new + start, right - start) != 0 { break }
                right = start
            }
            end = max(end, min(width, right * scale))
        }
    }
}
