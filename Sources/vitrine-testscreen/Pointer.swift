// SPDX-License-Identifier: MIT

/// The mouse pointer: a red triangle with its tip at the top left, which goes over the colour bars where it hides no bit.
struct Pointer {
    private let bars: Rect
    private let size: Size
    private var steps = 0

    init(_ picture: Size, size: Size) {
        bars = Grid(size: picture).cells(1, 8, 18, 5)
        self.size = size
    }

    /// Where it is, in pixels of the upright picture.
    var place: Rect {
        let (roomX, roomY) = (max(1, bars.width - size.width), max(1, bars.height - size.height))
        return Rect(bars.x + steps * 3 % roomX, bars.y + steps * 2 % roomY, size.width, size.height)
    }

    /// Goes a little further.
    mutating func move() { steps += 1 }

    /// Whether one of its pixels is red; else it is transparent.
    static func isOpaque(_ x: Int, _ y: Int) -> Bool { x <= y }
}
