// SPDX-License-Identifier: MIT
import Glibc

/// What happens on the screen from picture to picture.
enum Workload: String, CaseIterable {
    /// A ball bounces in front of colour bars.
    case moving
    /// One picture, then silence; each new consumer gets it once more.
    case still
    /// The same picture again and again.
    case repeats
    /// A line of text changes ten times a second.
    case typing
    /// Half of the screen moves up like a page of text.
    case scrolling
    /// All moves but the corners and what carries the number.
    case video

    /// The greatest number of pictures a second that makes sense.
    var limit: UInt32 { self == .typing ? 10 : .max }

    /// Whether each picture differs from the one before.
    var changes: Bool { self != .still && self != .repeats }

    func makeContent(_ grid: Grid) -> any Content {
        switch self {
        case .moving, .still, .repeats: Bars(grid)
        case .typing: Page(grid, scrolls: false)
        case .scrolling: Page(grid, scrolls: true)
        case .video: Texture(grid)
        }
    }
}

/// What fills the lower part of the picture. It is decided by the picture's number alone, so that two runs show the same.
protocol Content: AnyObject {
    /// Paints all of it, for the picture of that number.
    func paint(_ number: UInt32, on canvas: Canvas)
    /// Turns the content of the picture before into that of the picture with that number, and says where they may differ.
    func advance(to number: UInt32, on canvas: Canvas) -> [Rect]
}

/// Colour bars over a grey ramp, and a ball that bounces in front of the bars.
private final class Bars: Content {
    private static let colours: [Colour] = [
        .white, Colour(255, 255, 0), Colour(0, 255, 255), .green, .magenta, .red, .blue, Colour(grey: 64),
    ]
    private let bars: Rect
    private let ramp: Rect
    private let side: Int
    private let speed: (x: Int, y: Int)

    init(_ grid: Grid) {
        bars = grid.cells(1, 8, 18, 5)
        ramp = grid.cells(2, 14, 16, 3)
        side = max(1, min(bars.width, bars.height) / 4)
        speed = (max(1, grid.size.width / 160), max(1, grid.size.height / 120))
    }

    func paint(_ number: UInt32, on canvas: Canvas) {
        paintBars(bars, on: canvas)
        let levels = ramp
        canvas.fillColumns(ramp) { x in
            canvas.pixel(Colour(grey: UInt8(clamping: (x - levels.x) * 255 / max(1, levels.width - 1))))
        }
        paintBall(ball(number), on: canvas)
    }

    func advance(to number: UInt32, on canvas: Canvas) -> [Rect] {
        let (old, new) = (ball(number &- 1), ball(number))
        paintBars(old, on: canvas)
        paintBall(new, on: canvas)
        return [old, new]
    }

    private func ball(_ number: UInt32) -> Rect {
        func bounce(_ speed: Int, _ room: Int) -> Int {
            guard room > 0 else { return 0 }
            let way = Int(number) * speed % (2 * room)
            return min(way, 2 * room - way)
        }
        return Rect(bars.x + bounce(speed.x, bars.width - side), bars.y + bounce(speed.y, bars.height - side), side, side)
    }

    private func paintBars(_ rect: Rect, on canvas: Canvas) {
        let pixels = Bars.colours.map(canvas.pixel)
        let (origin, width) = (bars.x, bars.width)
        canvas.fillColumns(rect.clipped(to: bars)) { x in pixels[min(pixels.count - 1, (x - origin) * pixels.count / width)] }
    }

    private func paintBall(_ ball: Rect, on canvas: Canvas) {
        // Twice the radius and twice the distance: no half pixels.
        for row in 0..<side {
            let distance = 2 * row + 1 - side
            let half = Int(Double(side * side - distance * distance).squareRoot()) / 2
            canvas.fill(Rect(ball.x + side / 2 - half, ball.y + row, 2 * half, 1), .black)
        }
    }
}

/// A white page with lines of what looks like text.
private final class Page: Content {
    /// So often a line changes before the caret goes to the next one.
    private static let changesPerLine = 40
    private let areas: [Rect]
    private let scrolls: Bool
    private let scale: Int
    private var lineHeight: Int { scale * (Glyph.height + 3) }

    init(_ grid: Grid, scrolls: Bool) {
        areas = grid.content
        self.scrolls = scrolls
        scale = max(1, grid.size.height / 540)
    }

    func paint(_ number: UInt32, on canvas: Canvas) {
        for area in areas {
            canvas.fill(area, .white)
            let lines = area.height / lineHeight
            for line in 0..<lines {
                let seed = scrolls ? number &+ UInt32(line) : lastChange(of: line, of: lines, until: number)
                write(line, of: scrolls ? scrolled(area) : area, seed: seed, on: canvas)
            }
        }
    }

    func advance(to number: UInt32, on canvas: Canvas) -> [Rect] {
        if scrolls {
            for area in areas { scroll(scrolled(area), to: number, on: canvas) }
            return areas
        }
        guard let area = areas.first else { return [] }
        let lines = max(1, area.height / lineHeight)
        return [write(Int(number) / Page.changesPerLine % lines, of: area, seed: number, on: canvas)]
    }

    /// The number of the last picture in which a line changed; in the first round, one that no picture has yet.
    private func lastChange(of line: Int, of lines: Int, until number: UInt32) -> UInt32 {
        let turn = Int(number) / Page.changesPerLine
        let last = turn - ((turn - line) % lines + lines) % lines
        guard last >= 0, lines == areas[0].height / lineHeight else { return .max - UInt32(line) }
        return last == turn ? number : UInt32(last * Page.changesPerLine + Page.changesPerLine - 1)
    }

    /// The part of an area that holds whole lines.
    private func scrolled(_ area: Rect) -> Rect {
        let height = area.height / lineHeight * lineHeight
        return Rect(area.x, area.y + area.height - height, area.width, height)
    }

    private func scroll(_ area: Rect, to number: UInt32, on canvas: Canvas) {
        let lines = area.height / lineHeight
        guard lines > 0 else { return }
        let width = canvas.size.width
        for row in area.y..<(area.y + area.height - lineHeight) {
            memcpy(canvas.pixels + row * width + area.x, canvas.pixels + (row + lineHeight) * width + area.x, area.width * 4)
        }
        write(lines - 1, of: area, seed: number &+ UInt32(lines - 1), on: canvas)
    }

    @discardableResult
    private func write(_ line: Int, of area: Rect, seed: UInt32, on canvas: Canvas) -> Rect {
        let rect = Rect(area.x, area.y + line * lineHeight, area.width, lineHeight).clipped(to: area)
        canvas.fill(rect, .white)
        guard rect.height >= scale * Glyph.height else { return rect }
        let step = scale * (Glyph.width + 1)
        let places = max(0, (rect.width - 4 * scale) / step)
        for place in 0..<places {
            let mixed = (seed &* 2_654_435_761 ^ UInt32(truncatingIfNeeded: place) &* 40_503) &* 2_246_822_519
            // Every sixth is a blank, between words.
            guard mixed >> 16 % 6 != 0 else { continue }
            canvas.draw(Glyph(seed: mixed >> 20), at: rect.x + 2 * scale + place * step, rect.y + scale, scale: scale, .black)
        }
        return rect
    }
}

/// A cloudy texture that moves everywhere at once.
private final class Texture: Content {
    private static let reach = 256
    private let areas: [Rect]
    private let size: Size
    private var tile: [UInt32] = []

    init(_ grid: Grid) {
        areas = grid.content + grid.sides
        size = Size(grid.size.width + Texture.reach, grid.size.height + Texture.reach)
    }

    func paint(_ number: UInt32, on canvas: Canvas) {
        if tile.isEmpty { tile = makeTile(canvas) }
        // Two circles of different speed: no motion vector is right for long.
        let angle = Double(number) * 0.11
        let half = Double(Texture.reach / 2)
        let left = Int(half + (half - 1) * sin(angle))
        let top = Int(half + (half - 1) * cos(angle * 1.37))
        tile.withUnsafeBufferPointer { tile in
            guard let base = tile.baseAddress else { return }
            for area in areas {
                for row in area.y..<(area.y + area.height) {
                    let from = base + (row + top) * size.width + area.x + left
                    memcpy(canvas.pixels + row * canvas.size.width + area.x, from, area.width * 4)
                }
            }
        }
    }

    func advance(to number: UInt32, on canvas: Canvas) -> [Rect] {
        paint(number, on: canvas)
        return areas
    }

    /// Smooth hills with fine grain on them; never darker than a bar.
    private func makeTile(_ canvas: Canvas) -> [UInt32] {
        let columns = (0..<size.width).map { Int(48 * sin(Double($0) * 0.043) + 24 * sin(Double($0) * 0.171)) }
        let rows = (0..<size.height).map { Int(48 * cos(Double($0) * 0.037) + 24 * sin(Double($0) * 0.139)) }
        var noise: UInt32 = 1
        var tile = [UInt32](repeating: 0, count: size.width * size.height)
        for y in 0..<size.height {
            for x in 0..<size.width {
                noise = noise &* 1_664_525 &+ 1_013_904_223
                let grain = Int(noise >> 28)
                let level = 144 + (columns[x] + rows[y]) / 2
                let colour = Colour(
                    UInt8(clamping: level + grain), UInt8(clamping: level + rows[y] / 3 + grain),
                    UInt8(clamping: level - columns[x] / 3 + grain))
                tile[y * size.width + x] = canvas.pixel(colour)
            }
        }
        return tile
    }
}
