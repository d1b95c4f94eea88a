// SPDX-License-Identifier: MIT

/// Where things are in the picture: a grid of 20 × 18 cells whose edges are at `index * side / count`, rounded down, so that a reader that
/// knows the picture's four edges finds every cell at any scale.
///
///     row 0-1    red corner (columns 0-1), the number in digits, green corner (columns 18-19)
///     row 2-3    the number, 32 bits, the highest first, columns 2-17; white is one, black is zero
///     row 4      the width in pixels, 16 bits
///     row 5      the height in pixels, 16 bits
///     row 6      a check of the eight bytes above, 16 bits: CRC-16/CCITT-FALSE
///     row 7-17   whatever moves (``Content``), between the blue corner on the left and the white one on the right (rows 16-17)
///
/// What is left, at both sides of the bits, is grey. No edge of the picture is black, so that black bars around it can be told from it.
/// Tests/integration/picture.py reads this back from decoded video.
struct Grid {
    static let columns = 20
    static let rows = 18
    static let bitsPerRow = 16
    static let firstBitColumn = 2
    static let firstBitRow = 2
    static let bitRows = 5
    static let contentRow = 7
    static let background = Colour(grey: 112)

    let size: Size

    /// Whether every cell has at least two pixels in each direction. A smaller picture is one colour.
    var isReadable: Bool { size.width >= 2 * Grid.columns && size.height >= 2 * Grid.rows }

    /// The pixels of some cells.
    func cells(_ column: Int, _ row: Int, _ width: Int, _ height: Int) -> Rect {
        let (left, right) = (column * size.width / Grid.columns, (column + width) * size.width / Grid.columns)
        let (top, bottom) = (row * size.height / Grid.rows, (row + height) * size.height / Grid.rows)
        return Rect(left, top, right - left, bottom - top)
    }

    /// The parts that content may paint: a high one between the edges, and a low one between the corners.
    var content: [Rect] {
        let cornerRow = Grid.rows - 2
        return [
            cells(0, Grid.contentRow, Grid.columns, cornerRow - Grid.contentRow), cells(2, cornerRow, Grid.columns - 4, 2),
        ]
    }

    /// The grey parts at both sides of the bits.
    var sides: [Rect] { [cells(0, 2, 2, Grid.bitRows), cells(Grid.columns - 2, 2, 2, Grid.bitRows)] }
}

/// Paints one source's pictures, one after the other, and says what changed. Pictures of the same number and the same settings are the same.
final class Painter {
    let canvas: Canvas
    /// The number of the picture on the canvas.
    private(set) var number: UInt32
    private let grid: Grid
    private let content: any Content
    private var bits: [UInt16] = []
    private var digits = ""

    /// Paints the first picture.
    init(size: Size, format: VideoFormat, rest: UInt8, workload: Workload, number: UInt32) {
        canvas = Canvas(size: size, format: format, rest: rest)
        grid = Grid(size: size)
        self.number = number
        content = workload.makeContent(grid)
        paintAll()
    }

    /// Paints the next picture.
    ///
    /// - Returns: what differs from the one before, nothing outside of it.
    func advance() -> [Rect] {
        number &+= 1
        guard grid.isReadable else {
            paintSmall()
            return [Rect(canvas.size)]
        }
        return paintBits() + paintDigits() + content.advance(to: number, on: canvas)
    }

    private func paintAll() {
        guard grid.isReadable else { return paintSmall() }
        canvas.fill(Rect(canvas.size), Grid.background)
        let (right, bottom) = (Grid.columns - 2, Grid.rows - 2)
        canvas.fill(grid.cells(0, 0, 2, 2), .red)
        canvas.fill(grid.cells(right, 0, 2, 2), .green)
        canvas.fill(grid.cells(0, bottom, 2, 2), .blue)
        canvas.fill(grid.cells(right, bottom, 2, 2), .white)
        content.paint(number, on: canvas)
        (bits, digits) = ([], "")
        _ = paintBits()
        _ = paintDigits()
    }

    /// Too small for bits: a light grey that goes through 128 levels.
    private func paintSmall() {
        canvas.fill(Rect(canvas.size), Colour(grey: UInt8(truncatingIfNeeded: 96 + number % 128)))
    }

    private func paintBits() -> [Rect] {
        var words = [
            UInt16(truncatingIfNeeded: number >> 16), UInt16(truncatingIfNeeded: number), UInt16(clamping: canvas.size.width),
            UInt16(clamping: canvas.size.height),
        ]
        words.append(Painter.check(of: words))
        let isFirst = bits.isEmpty
        var changed: [Rect] = []
        for (row, word) in words.enumerated() {
            let differing = isFirst ? .max : word ^ bits[row]
            guard differing != 0 else { continue }
            let first = differing.leadingZeroBitCount
            let last = Grid.bitsPerRow - 1 - differing.trailingZeroBitCount
            for column in first...last {
                let isOne = word & (0x8000 >> UInt16(column)) != 0
                canvas.fill(grid.cells(Grid.firstBitColumn + column, Grid.firstBitRow + row, 1, 1), isOne ? .white : .black)
            }
            changed.append(grid.cells(Grid.firstBitColumn + first, Grid.firstBitRow + row, last - first + 1, 1))
        }
        bits = words
        return changed
    }

    private func paintDigits() -> [Rect] {
        let area = grid.cells(2, 0, Grid.columns - 4, 2)
        let text = String(number)
        let columns = text.count * (Glyph.width + 1) + 1
        let scale = min(area.width / columns, area.height / (Glyph.height + 2))
        guard scale > 0 else { return [] }
        let step = scale * (Glyph.width + 1)
        let (left, top) = (area.x + scale, area.y + scale)
        let isSameLength = text.count == digits.count
        if !isSameLength { canvas.fill(area, Grid.background) }
        var firstChanged: Int?
        for (index, (new, old)) in zip(text, isSameLength ? digits : String(repeating: " ", count: text.count)).enumerated()
        where new != old {
            if firstChanged == nil { firstChanged = index }
            let x = left + index * step
            canvas.fill(Rect(x, top, step, scale * Glyph.height), Grid.background)
            canvas.draw(Glyph(new), at: x, top, scale: scale, .black)
        }
        digits = text
        guard isSameLength else { return [area] }
        guard let firstChanged else { return [] }
        return [Rect(left + firstChanged * step, top, (text.count - firstChanged) * step, scale * Glyph.height)]
    }

    /// CRC-16/CCITT-FALSE of the words, high byte first.
    static func check(of words: [UInt16]) -> UInt16 {
        var crc: UInt16 = 0xffff
        for word in words {
            for byte in [word >> 8, word & 0xff] {
                crc ^= byte << 8
                for _ in 0..<8 { crc = crc & 0x8000 != 0 ? crc << 1 ^ 0x1021 : crc << 1 }
            }
        }
        return crc
    }
}
