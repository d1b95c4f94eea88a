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

/// What fills the lower part of the picture.
protocol Content: AnyObject {
    /// Paints all of it.
    func paint(on canvas: Canvas)
    /// Paints what is different in the next picture, and says where that is.
    func advance(on canvas: Canvas) -> [Rect]
}

/// Colour bars over a grey ramp, and a ball that bounces in front of the bars.
private final class Bars: Content {
    private static let colours: [Colour] = [
        .white, Colour(255, 255, 0), Colour(0, 255, 255), .green, .magenta, .red, .blue, Colour(grey: 64),
    ]
    private let grid: Grid
    private let bars: Rect
    private let ramp: Rect
    private let side: Int
    private var ball: Rect
    private var speed: (x: Int, y: Int)

    init(_ grid: Grid) {
        self.grid = grid
        bars = grid.cells(1, 8, 18, 5)
        ramp = grid.cells(2, 14, 16, 3)
        side = max(1, min(bars.width, bars.height) / 4)
        ball = Rect(bars.x, bars.y, side, side)
        speed = (max(1, grid.size.width / 160), max(1, grid.size.height / 120))
    }

    func paint(on canvas: Canvas) {
        paintBars(bars, on: canvas)
        let levels = ramp
        canvas.fillColumns(ramp) { x in
            canvas.pixel(Colour(grey: UInt8(clamping: (x - levels.x) * 255 / max(1, levels.width - 1))))
        }
        paintBall(on: canvas)
    }

    func advance(on canvas: Canvas) -> [Rect] {
        let old = ball
        bounce(&ball.x, &speed.x, from: bars.x, to: bars.x + bars.width - side)
        bounce(&ball.y, &speed.y, from: bars.y, to: bars.y + bars.height - side)
        paintBars(old, on: canvas)
        paintBall(on: canvas)
        return [old, ball]
    }

    private func bounce(_ position: inout Int, _ speed: inout Int, from low: Int, to high: Int) {
        if position + speed < low || position + speed > high { speed = -speed }
        position = min(max(position + speed, low), high)
    }

    private func paintBars(_ rect: Rect, on canvas: Canvas) {
        let pixels = Bars.colours.map(canvas.pixel)
        let (origin, width) = (bars.x, bars.width)
        canvas.fillColumns(rect.clipped(to: bars)) { x in pixels[min(pixels.count - 1, (x - origin) * pixels.count / width)] }
    }

    private func paintBall(on canvas: Canvas) {
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
    private let areas: [Rect]
    private let scrolls: Bool
    private let scale: Int
    private var changes: UInt32 = 0
    private var lineHeight: Int { scale * (Glyph.height + 3) }

    init(_ grid: Grid, scrolls: Bool) {
        areas = grid.content
        self.scrolls = scrolls
        scale = max(1, grid.size.height / 540)
    }

    func paint(on canvas: Canvas) {
        for area in areas {
            canvas.fill(area, .white)
            for line in 0..<(area.height / lineHeight) { write(line, of: area, seed: UInt32(line), on: canvas) }
        }
    }

    func advance(on canvas: Canvas) -> [Rect] {
        changes &+= 1
        guard let area = areas.first else { return [] }
        guard scrolls else {
            // The caret goes down a line every forty changes.
            let lines = max(1, area.height / lineHeight)
            return [write(Int(changes / 40) % lines, of: area, seed: changes, on: canvas)]
        }
        for area in areas { scroll(area, on: canvas) }
        return areas
    }

    private func scroll(_ area: Rect, on canvas: Canvas) {
        let step = min(lineHeight, area.height)
        let width = canvas.size.width
        for row in area.y..<(area.y + area.height - step) {
            memcpy(canvas.pixels + row * width + area.x, canvas.pixels + (row + step) * width + area.x, area.width * 4)
        }
        canvas.fill(Rect(area.x, area.y + area.height - step, area.width, step), .white)
        let last = Rect(area.x, area.y + area.height - step, area.width, step)
        write(0, of: last, seed: changes, on: canvas)
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
    private var time = 0
    private var tile: [UInt32] = []

    init(_ grid: Grid) {
        areas = grid.content + grid.sides
        size = Size(grid.size.width + Texture.reach, grid.size.height + Texture.reach)
    }

    func paint(on canvas: Canvas) {
        if tile.isEmpty { tile = makeTile(canvas) }
        // Two circles of different speed: no motion vector is right for long.
        let angle = Double(time) * 0.11
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

    func advance(on canvas: Canvas) -> [Rect] {
        time += 1
        paint(on: canvas)
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
