// SPDX-License-Identifier: MIT

/// A width and a height in pixels.
public struct PixelSize: Hashable, Sendable, CustomStringConvertible {
    /// Pixels from left to right.
    public var width: Int
    /// Pixels from top to bottom.
    public var height: Int

    /// A size of that many pixels.
    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// The greatest width and height that any part of the program handles: what VP8 can carry.
    public static let greatestSide = 16_383

    /// Whether there is at least one pixel, and no more than the program handles.
    public var isUsable: Bool { (1...PixelSize.greatestSide).contains(width) && (1...PixelSize.greatestSide).contains(height) }

    /// The size with its sides exchanged.
    public var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// The size of the chroma planes of I420: half, rounded up.
    public var chroma: PixelSize { PixelSize(width: (width + 1) / 2, height: (height + 1) / 2) }

    /// `1920x1080`.
    public var description: String { "\(width)x\(height)" }
}

/// A rectangle of pixels, counted from the top left corner of its picture.
public struct PixelRect: Hashable, Sendable, CustomStringConvertible {
    /// Pixels left of the rectangle.
    public var x: Int
    /// Pixels above the rectangle.
    public var y: Int
    /// Pixels from its left to its right side.
    public var width: Int
    /// Pixels from its upper to its lower side.
    public var height: Int

    /// A rectangle with that corner and size.
    public init(x: Int, y: Int, width: Int, height: Int) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }

    /// The whole of a picture.
    public init(_ size: PixelSize) { self.init(x: 0, y: 0, width: size.width, height: size.height) }

    /// Width and height.
    public var size: PixelSize { PixelSize(width: width, height: height) }

    /// Whether it holds no pixel.
    public var isEmpty: Bool { width <= 0 || height <= 0 }

    /// The pixels that it holds.
    public var area: Int { isEmpty ? 0 : width * height }

    /// The part that lies in both. Any numbers will do: nothing here overflows.
    public func intersection(_ other: PixelRect) -> PixelRect {
        let left = max(x, other.x)
        let top = max(y, other.y)
        let width = min(right, other.right).subtractingReportingOverflow(left)
        let height = min(bottom, other.bottom).subtractingReportingOverflow(top)
        guard !width.overflow, !height.overflow, width.partialValue > 0, height.partialValue > 0 else {
            return PixelRect(x: 0, y: 0, width: 0, height: 0)
        }
        return PixelRect(x: left, y: top, width: width.partialValue, height: height.partialValue)
    }

    /// The smallest rectangle around both.
    public func union(_ other: PixelRect) -> PixelRect {
        if isEmpty { return other }
        if other.isEmpty { return self }
        let (left, top) = (min(x, other.x), min(y, other.y))
        return PixelRect(x: left, y: top, width: max(right, other.right) - left, height: max(bottom, other.bottom) - top)
    }

    /// The first column to the right of it.
    private var right: Int { PixelRect.end(x, width) }
    /// The first row below it.
    private var bottom: Int { PixelRect.end(y, height) }

    private static func end(_ start: Int, _ length: Int) -> Int {
        let (end, overflow) = start.addingReportingOverflow(length)
        return overflow ? (length < 0 ? .min : .max) : end
    }

    /// The smallest rectangle around it whose corners lie on even pixels, within `size`: whole chroma samples.
    public func evenlyAligned(in size: PixelSize) -> PixelRect {
        let part = intersection(PixelRect(size))
        if part.isEmpty { return part }
        let (left, top) = (part.x & ~1, part.y & ~1)
        let (right, bottom) = (min((part.right + 1) & ~1, size.width), min((part.bottom + 1) & ~1, size.height))
        return PixelRect(x: left, y: top, width: right - left, height: bottom - top)
    }

    /// `1920x1080+0+0`.
    public var description: String { "\(width)x\(height)+\(x)+\(y)" }
}
