// SPDX-License-Identifier: MIT
import Glibc

/// An upright picture in ordinary memory, in the pixel order of one format, without padding.
///
/// The picture is painted here, once; buffers get copies of what changed.
final class Canvas {
    let size: Size
    let format: VideoFormat
    /// `size.width` × `size.height` pixels.
    let pixels: UnsafeMutablePointer<UInt32>
    private let rest: UInt8

    init(size: Size, format: VideoFormat, rest: UInt8) {
        (self.size, self.format, self.rest) = (size, format, rest)
        pixels = .allocate(capacity: size.width * size.height)
        pixels.initialize(repeating: 0, count: size.width * size.height)
    }

    deinit { pixels.deallocate() }

    /// The pixel of that colour.
    func pixel(_ colour: Colour) -> UInt32 { format.pixel(colour, rest: rest) }

    /// Paints a rectangle in one colour. What lies outside is cut off.
    func fill(_ rect: Rect, _ colour: Colour) {
        let rect = rect.clipped(to: Rect(size))
        guard !rect.isEmpty else { return }
        let first = pixels + rect.y * size.width + rect.x
        first.update(repeating: pixel(colour), count: rect.width)
        repeatFirstRow(of: rect)
    }

    /// Paints a rectangle of columns that are the same from top to bottom.
    func fillColumns(_ rect: Rect, _ pixelAt: (_ x: Int) -> UInt32) {
        let rect = rect.clipped(to: Rect(size))
        guard !rect.isEmpty else { return }
        let first = pixels + rect.y * size.width
        for x in rect.x..<(rect.x + rect.width) { first[x] = pixelAt(x) }
        repeatFirstRow(of: rect)
    }

    private func repeatFirstRow(of rect: Rect) {
        let first = pixels + rect.y * size.width + rect.x
        for row in 1..<max(1, rect.height) { memcpy(first + row * size.width, first, rect.width * 4) }
    }

    /// Paints the ones of a 5 × 7 bitmap, `scale` pixels a dot.
    func draw(_ glyph: Glyph, at x: Int, _ y: Int, scale: Int, _ colour: Colour) {
        for (row, bits) in glyph.rows.enumerated() {
            for column in 0..<Glyph.width where bits & (1 << (Glyph.width - 1 - column)) != 0 {
                fill(Rect(x + column * scale, y + row * scale, scale, scale), colour)
            }
        }
    }
}

/// A character of five dots by seven.
struct Glyph {
    static let width = 5
    static let height = 7

    /// From the top; the leftmost dot is bit 4.
    let rows: [UInt8]

    /// A digit, `x` or a blank for everything else.
    init(_ character: Character) {
        rows =
            switch character {
            case "0": [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110]
            case "1": [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110]
            case "2": [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111]
            case "3": [0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110]
            case "4": [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010]
            case "5": [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110]
            case "6": [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110]
            case "7": [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000]
            case "8": [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110]
            case "9": [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100]
            case "x": [0b00000, 0b00000, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001]
            default: [0, 0, 0, 0, 0, 0, 0]
            }
    }

    /// Something that looks like a letter, the same for the same seed.
    init(seed: UInt32) {
        var state = seed
        rows = (0..<Glyph.height).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24 & state >> 16 & 0b11111) | UInt8(state >> 27 & 0b00100)
        }
    }
}
