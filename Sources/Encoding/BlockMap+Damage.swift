// SPDX-License-Identifier: MIT
import Frames

extension BlockMap {
    /// Blocks of one row that lie no further apart than this are one rectangle: readers copy one faster than two.
    private static let greatestGap = 3

    /// The selected blocks as rectangles of a picture of that size.
    func damage(in size: PixelSize) -> Damage {
        var damage = Damage.none
        // Rectangles that may go on in the next row: their columns, and the row where they begin.
        var open: [(columns: Range<Int>, top: Int)] = []
        func close(_ part: (columns: Range<Int>, top: Int), before row: Int) {
            let rect = PixelRect(
                x: part.columns.lowerBound * 16, y: part.top * 16, width: part.columns.count * 16, height: (row - part.top) * 16)
            damage.insert(rect.intersection(PixelRect(size)))
        }
        for row in 0..<rows {
            let next = runs(in: row).map { run in open.first { $0.columns == run } ?? (run, row) }
            for part in open where !next.contains(where: { $0 == part }) { close(part, before: row) }
            open = next
        }
        for part in open { close(part, before: rows) }
        return damage
    }

    /// The columns of one row in which blocks are selected.
    private func runs(in row: Int) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        for column in 0..<columns where selected[row * columns + column] != 0 {
            if let last = runs.last, column - last.upperBound <= BlockMap.greatestGap {
                runs[runs.count - 1] = last.lowerBound..<(column + 1)
            } else {
                runs.append(column..<(column + 1))
            }
        }
        return runs
    }
}
