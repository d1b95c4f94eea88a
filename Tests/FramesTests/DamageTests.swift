// SPDX-License-Identifier: MIT
import TestSupport
import Testing

@testable import Frames

@Suite struct DamageTests {
    static let size = PixelSize(width: 200, height: 100)

    func covered(_ damage: Damage, in size: PixelSize = size) -> Set<Int> {
        var pixels = Set<Int>()
        damage.forEach(in: size) { rect in
            for y in rect.y..<(rect.y + rect.height) { for x in rect.x..<(rect.x + rect.width) { pixels.insert(y * size.width + x) } }
        }
        return pixels
    }

    @Test func nothingAndEverything() {
        #expect(Damage.none.isEmpty && !Damage.everything.isEmpty && covered(.none).isEmpty)
        #expect(covered(.everything).count == 20_000)
        var damage = Damage(PixelRect(x: 1, y: 1, width: 1, height: 1))
        damage.merge(.everything)
        #expect(damage == .everything)
        damage.insert(PixelRect(x: 1, y: 1, width: 1, height: 1))
        #expect(damage == .everything)
        #expect(Damage(PixelRect(x: 5, y: 5, width: 0, height: 9)).isEmpty)
    }

    @Test func whatIsInsideAnotherIsNotKept() {
        var damage = Damage(PixelRect(x: 10, y: 10, width: 20, height: 20))
        damage.insert(PixelRect(x: 12, y: 12, width: 3, height: 3))
        #expect(damage.count == 1)
        damage.insert(PixelRect(x: 0, y: 0, width: 50, height: 50))
        #expect(damage.count == 1 && damage.area(in: Self.size) == 2_500)
    }

    @Test func manyRectanglesAreAlwaysCovered() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<100 {
            var damage = Damage()
            var expected = Set<Int>()
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                let rect = PixelRect(
                    x: .random(in: -5...199, using: &random), y: .random(in: -5...99, using: &random),
                    width: .random(in: 0...30, using: &random),
                    height: .random(in: 0...30, using: &random))
                let (old, one) = (damage, Damage(rect))
                damage.insert(rect)
                expected.formUnion(covered(one))
                #expect(covered(damage).isSuperset(of: covered(old)))
            }
            #expect(damage.count <= Damage.capacity)
            #expect(covered(damage).isSuperset(of: expected))
        }
    }

    @Test func numbersOfAPeerDoNotOverflow() {
        var damage = Damage(PixelRect(x: .min, y: .min, width: .max, height: .max))
        #expect(damage.isEmpty)
        damage.insert(PixelRect(x: .max, y: 0, width: .max, height: 1))
        #expect(damage.isEmpty)
        damage.insert(PixelRect(x: -5, y: -5, width: .max, height: .max))
        #expect(damage.area(in: Self.size) == 20_000)
    }

    @Test func scalingRoundsOutwards() {
        let damage = Damage(PixelRect(x: 101, y: 51, width: 3, height: 3))
        let target = PixelRect(x: 0, y: 10, width: 100, height: 50)
        let scaled = damage.scaled(from: Self.size, into: target)
        let canvas = PixelSize(width: 100, height: 70)
        #expect(covered(scaled, in: canvas).isSuperset(of: covered(Damage(PixelRect(x: 50, y: 35, width: 2, height: 2)), in: canvas)))
        #expect(scaled.area(in: canvas) < 100)
        #expect(Damage.everything.scaled(from: Self.size, into: target) == .everything)
        #expect(Damage.none.scaled(from: Self.size, into: target) == .none)
    }

    @Test func comparisonFindsWhatDiffers() throws {
        var random = SeededGenerator(seed: 3)
        for size in [PixelSize(width: 201, height: 99), PixelSize(width: 1, height: 1), PixelSize(width: 640, height: 35)] {
            let (old, new) = (try Picture(size: size), try Picture(size: size))
            #expect(Comparison.damage(old.planes, new.planes).isEmpty)
            for _ in 0..<50 {
                Conversion.copy(old.planes, into: new.planes)
                var changed = Set<Int>()
                for _ in 0..<Int.random(in: 1...5, using: &random) {
                    let (x, y) = (Int.random(in: 0..<size.width, using: &random), Int.random(in: 0..<size.height, using: &random))
                    changed.insert(y * size.width + x)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: new.planes.luma[y * new.planes.lumaStride + x] = 77
                    case 1: new.planes.blue[y / 2 * new.planes.chromaStride + x / 2] = 77
                    default: new.planes.red[y / 2 * new.planes.chromaStride + x / 2] = 77
                    }
                }
                #expect(covered(Comparison.damage(old.planes, new.planes), in: size).isSuperset(of: changed))
            }
        }
    }

    @Test func comparisonIsNarrow() throws {
        let size = PixelSize(width: 1_920, height: 1_080)
        let (old, new) = (try Picture(size: size), try Picture(size: size))
        let line = PixelRect(x: 400, y: 500, width: 300, height: 20)
        if let part = new.planes.part(line) { Conversion.fill(part, luma: 200, blue: 9, red: 9) }
        let damage = Comparison.damage(old.planes, new.planes)
        #expect(damage.area(in: size) < 4 * line.area)
        Conversion.fill(new.planes, luma: 1, blue: 1, red: 1)
        #expect(covered(Comparison.damage(old.planes, new.planes), in: PixelSize(width: 20, height: 20)).count == 400)
    }
}
