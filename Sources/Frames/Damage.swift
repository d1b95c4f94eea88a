// SPDX-License-Identifier: MIT

/// The parts of a picture that differ from an earlier one: up to sixteen rectangles, or everything.
///
/// A value of fixed size, so that it can be folded where nothing may be allocated. When there are more rectangles than fit, the two whose union
/// wastes least become one: it always covers at least what was put in.
///
/// Units: pixels of the picture, from its top left corner.
public struct Damage: Equatable, Sendable {
    /// The greatest number of rectangles.
    public static let capacity = 16

    /// Nothing differs.
    public static let none = Damage()
    /// Nothing is known, or everything differs.
    public static let everything: Damage = {
        var damage = Damage()
        damage.isEverything = true
        return damage
    }()

    /// Whether all of the picture must be looked at.
    public private(set) var isEverything = false
    /// The number of rectangles; 0 when it is everything.
    public private(set) var count = 0
    /// Left, top, right, bottom of each. Sides are at most 16 bits: ``PixelSize/greatestSide``.
    private var edges = SIMD64<UInt16>(repeating: 0)

    /// No damage.
    public init() {}

    /// Damage of one rectangle.
    public init(_ rect: PixelRect) { insert(rect) }

    /// Whether nothing differs.
    public var isEmpty: Bool { !isEverything && count == 0 }

    /// Adds a rectangle. What lies outside any possible picture is cut off.
    public mutating func insert(_ rect: PixelRect) {
        let greatest = PixelSize(width: Int(UInt16.max), height: Int(UInt16.max))
        let part = rect.intersection(PixelRect(greatest))
        guard !isEverything, !part.isEmpty else { return }
        for index in 0..<count where self[index].union(part) == self[index] { return }
        var kept = 0
        for index in 0..<count where part.union(self[index]) != part {
            if kept != index { self[kept] = self[index] }
            kept += 1
        }
        count = kept
        if count == Damage.capacity { joinClosest() }
        self[count] = part
        count += 1
    }

    /// Adds all that the other holds.
    public mutating func merge(_ other: Damage) {
        if isEverything { return }
        if other.isEverything {
            self = .everything
            return
        }
        for index in 0..<other.count { insert(other[index]) }
    }

    /// Calls `body` with each rectangle, cut to the picture; they may overlap. Everything is one rectangle.
    public func forEach(in size: PixelSize, _ body: (PixelRect) -> Void) {
        if isEverything {
            body(PixelRect(size))
            return
        }
        for index in 0..<count {
            let part = self[index].intersection(PixelRect(size))
            if !part.isEmpty { body(part) }
        }
    }

    /// The pixels of all rectangles together; overlaps count twice, so it may exceed the picture.
    public func area(in size: PixelSize) -> Int {
        var sum = 0
        forEach(in: size) { sum += $0.area }
        return sum
    }

    /// The same parts of a picture that was scaled from `size` into `target`, a rectangle of a canvas; rounded outwards, with a margin for the filter.
    public func scaled(from size: PixelSize, into target: PixelRect) -> Damage {
        if isEverything || !size.isUsable { return isEmpty ? .none : .everything }
        if size == target.size && target.x == 0 && target.y == 0 { return self }
        let margin = size == target.size ? 0 : 2
        var result = Damage()
        forEach(in: size) { rect in
            let left = rect.x * target.width / size.width - margin
            let top = rect.y * target.height / size.height - margin
            let right = ((rect.x + rect.width) * target.width + size.width - 1) / size.width + margin
            let bottom = ((rect.y + rect.height) * target.height + size.height - 1) / size.height + margin
            let scaled = PixelRect(x: target.x + left, y: target.y + top, width: right - left, height: bottom - top)
            result.insert(scaled.intersection(target))
        }
        return result
    }

    private subscript(index: Int) -> PixelRect {
        get {
            let (left, top) = (Int(edges[index * 4]), Int(edges[index * 4 + 1]))
            return PixelRect(x: left, y: top, width: Int(edges[index * 4 + 2]) - left, height: Int(edges[index * 4 + 3]) - top)
        }
        set {
            edges[index * 4] = UInt16(clamping: newValue.x)
            edges[index * 4 + 1] = UInt16(clamping: newValue.y)
            edges[index * 4 + 2] = UInt16(clamping: newValue.x + newValue.width)
            edges[index * 4 + 3] = UInt16(clamping: newValue.y + newValue.height)
        }
    }

    /// Makes one rectangle of the two whose union adds the fewest pixels.
    private mutating func joinClosest() {
        var best = (first: 0, second: 1, waste: Int.max)
        for first in 0..<count {
            for second in (first + 1)..<count {
                let waste = self[first].union(self[second]).area - self[first].area - self[second].area
                if waste < best.waste { best = (first, second, waste) }
            }
        }
        self[best.first] = self[best.first].union(self[best.second])
        count -= 1
        if best.second != count { self[best.second] = self[count] }
    }

    /// Equal when they hold the same rectangles in the same order.
    public static func == (left: Damage, right: Damage) -> Bool {
        guard left.isEverything == right.isEverything, left.count == right.count else { return false }
        return (0..<left.count).allSatisfy { left[$0] == right[$0] }
    }
}
