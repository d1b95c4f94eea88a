// SPDX-License-Identifier: MIT

/// What the pointer looks like: a triangle with its right angle at the bottom left, in the colour that tells which shape it is.
enum PointerShape: UInt32, CaseIterable {
    case red, green, blue, white, magenta
    /// White at half.
    case glass

    var colour: Colour {
        switch self {
        case .red: .red
        case .green: .green
        case .blue: .blue
        case .white, .glass: .white
        case .magenta: .magenta
        }
    }

    /// Of the triangle; around it there is nothing.
    var alpha: UInt8 { self == .glass ? 128 : 255 }

    /// Whether one of its pixels belongs to the triangle; else it is transparent.
    static func covers(_ x: Int, _ y: Int) -> Bool { x <= y }
}

/// The mouse pointer. It goes over the colour bars, where it hides no bit, unless the settings put it somewhere.
struct Pointer {
    private let bars: Rect
    private var steps = 0

    init(_ picture: Size) { bars = Grid(size: picture).cells(1, 8, 18, 5) }

    /// Where its bitmap is, in pixels of the upright picture; it may reach beyond.
    func place(_ settings: Settings) -> Rect {
        let size = settings.cursorSize
        if let position = settings.cursorPosition {
            return Rect(position.x - settings.cursorHotspot.x, position.y - settings.cursorHotspot.y, size.width, size.height)
        }
        let (roomX, roomY) = (max(1, bars.width - size.width), max(1, bars.height - size.height))
        return Rect(bars.x + steps * 3 % roomX, bars.y + steps * 2 % roomY, size.width, size.height)
    }

    /// Goes a little further.
    mutating func move() { steps += 1 }
}
