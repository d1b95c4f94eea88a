// SPDX-License-Identifier: MIT
public import Frames

/// How the pictures of several sources lie in one.
public enum Layout: String, CaseIterable, Sendable {
    /// Rows of as many as there are rows, or one more: two beside each other, four as two by two.
    case grid
    /// All beside each other.
    case row

    /// Sources in one row.
    func columns(_ count: Int) -> Int {
        if self == .row { return max(1, count) }
        var columns = 1
        while columns * columns < count { columns += 1 }
        return columns
    }
}

/// Where each source lies in a composed picture.
///
/// The picture is the smallest one in which every source has its own pixels: each column is as wide as the widest source in it, each row as high as the highest,
/// and a source lies in the middle of its cell, the rest of which is black. A picture that would be too large is made smaller as a whole, and each
/// source keeps its shape.
///
/// Units: pixels. Columns and rows are even, and so are the corners of all sources: whole chroma samples.
public struct Arrangement: Equatable, Sendable {
    /// The greatest width or height, and the most pixels: those of an 8K screen.
    static let greatestSide = PixelSize.greatestSide & ~1
    static let greatestArea = 7_680 * 4_320

    /// Of the whole picture.
    public let size: PixelSize
    /// Of each source, in the order of the sources.
    public let places: [PixelRect]

    /// Lays out sources of those sizes, of which there is at least one.
    public init(_ sources: [PixelSize], _ layout: Layout) {
        let columns = layout.columns(sources.count)
        var scale = Arrangement.scale(sources, columns)
        // Of equal sizes nothing is rounded.
        var sizes = scale == 1 ? sources : sources.map { Arrangement.scaled($0, by: scale) }
        var (widths, heights) = Arrangement.cells(sizes, columns)
        // Sources that are already as small as they can be leave the others less.
        while max(widths.reduce(0, +), heights.reduce(0, +)) > Arrangement.greatestSide {
            scale *= 0.999
            sizes = sources.map { Arrangement.scaled($0, by: scale) }
            (widths, heights) = Arrangement.cells(sizes, columns)
        }
        size = PixelSize(width: widths.reduce(0, +), height: heights.reduce(0, +))
        let lefts = Arrangement.starts(widths)
        let tops = Arrangement.starts(heights)
        places = sizes.indices.map { index in
            let (column, row) = (index % columns, index / columns)
            let source = sizes[index]
            let left = lefts[column] + (widths[column] - source.width) / 2 & ~1
            let top = tops[row] + (heights[row] - source.height) / 2 & ~1
            return PixelRect(x: left, y: top, width: source.width, height: source.height)
        }
    }

    /// Widths of the columns and heights of the rows: those of the greatest source in them, made even.
    private static func cells(_ sizes: [PixelSize], _ columns: Int) -> (widths: [Int], heights: [Int]) {
        var widths = [Int](repeating: 0, count: min(columns, sizes.count))
        var heights = [Int](repeating: 0, count: (sizes.count + columns - 1) / columns)
        for (index, size) in sizes.enumerated() {
            widths[index % columns] = max(widths[index % columns], (size.width + 1) & ~1)
            heights[index / columns] = max(heights[index / columns], (size.height + 1) & ~1)
        }
        return (widths, heights)
    }

    private static func starts(_ lengths: [Int]) -> [Int] {
        var (starts, next) = ([Int](), 0)
        for length in lengths {
            starts.append(next)
            next += length
        }
        return starts
    }

    /// 1, or by how much all sources have to be made smaller.
    private static func scale(_ sizes: [PixelSize], _ columns: Int) -> Double {
        let (widths, heights) = cells(sizes, columns)
        let (width, height) = (Double(widths.reduce(0, +)), Double(heights.reduce(0, +)))
        let sides = min(1, Double(greatestSide) / width, Double(greatestSide) / height)
        return min(sides, (Double(greatestArea) / (width * height)).squareRoot())
    }

    /// A smaller size of the same shape; even, so that cells need no rounding up.
    private static func scaled(_ size: PixelSize, by scale: Double) -> PixelSize {
        func side(_ length: Int) -> Int { max(2, Int(Double(length) * scale) & ~1) }
        return PixelSize(width: side(size.width), height: side(size.height))
    }
}
