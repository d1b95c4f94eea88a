// SPDX-License-Identifier: MIT

/// Width and height in pixels.
struct Size: Equatable {
    var width: Int
    var height: Int

    init(_ width: Int, _ height: Int) { (self.width, self.height) = (width, height) }

    /// The same with both sides exchanged, for what lies on its side.
    var turned: Size { Size(height, width) }
}

extension Size: CustomStringConvertible {
    var description: String { "\(width)x\(height)" }
}

/// A pixel's place, or a distance between two.
struct Point: Equatable {
    var x: Int
    var y: Int

    init(_ x: Int, _ y: Int) { (self.x, self.y) = (x, y) }
}

/// A rectangle in pixels, the origin at the top left.
struct Rect: Equatable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    init(_ x: Int, _ y: Int, _ width: Int, _ height: Int) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }

    init(_ size: Size) { self.init(0, 0, size.width, size.height) }

    var isEmpty: Bool { width <= 0 || height <= 0 }

    /// What the two have in common; empty when they have nothing.
    func clipped(to other: Rect) -> Rect {
        let (left, top) = (max(x, other.x), max(y, other.y))
        let (right, bottom) = (min(x + width, other.x + other.width), min(y + height, other.y + other.height))
        return Rect(left, top, max(0, right - left), max(0, bottom - top))
    }
}

/// What a buffer's pixels went through, with the numbers of `SPA_META_TRANSFORMATION_*`: mirrored left to right first where it is
/// flipped, then turned counter-clockwise in steps of 90 degrees.
enum Transform: UInt32, CaseIterable {
    case normal, rotated90, rotated180, rotated270, flipped, flipped90, flipped180, flipped270

    private var isFlipped: Bool { rawValue >= 4 }
    private var quarterTurns: UInt32 { rawValue % 4 }

    /// Whether the buffer lies on its side.
    var exchangesSides: Bool { quarterTurns % 2 == 1 }

    /// Where in the buffer the upright picture's pixels are: that of the first, and the way to the next at its right and below it.
    typealias Placement = (origin: (x: Int, y: Int), right: (x: Int, y: Int), down: (x: Int, y: Int))

    /// Where the pixels of an upright picture of that size go.
    func placement(of picture: Size) -> Placement {
        let (lastX, lastY) = (picture.width - 1, picture.height - 1)
        func place(_ x: Int, _ y: Int) -> (x: Int, y: Int) {
            let x = isFlipped ? lastX - x : x
            return switch quarterTurns {
            case 0: (x, y)
            case 1: (y, lastX - x)
            case 2: (lastX - x, lastY - y)
            default: (lastY - y, x)
            }
        }
        let (origin, right, down) = (place(0, 0), place(1, 0), place(0, 1))
        return (origin, (right.x - origin.x, right.y - origin.y), (down.x - origin.x, down.y - origin.y))
    }
}
