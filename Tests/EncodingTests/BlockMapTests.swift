// SPDX-License-Identifier: MIT
import Frames
import Loop
import Testing

@testable import Encoding

@Suite struct BlockMapTests {
    private let begin = Instant(nanoseconds: 1_000_000_000)

    @Test func partsOfBlocksCount() {
        let map = BlockMap(size: PixelSize(width: 33, height: 16))
        #expect((map.columns, map.rows) == (3, 1))
    }

    @Test func selectedBlocksAreRectangles() {
        let size = PixelSize(width: 330, height: 200)
        var map = BlockMap(size: size)
        #expect(map.damage(in: size) == .none)
        func select(_ column: Int, _ row: Int) { map.selected[row * map.columns + column] = 1 }
        for row in 2..<5 {
            for column in 3..<7 { select(column, row) }
            select(20, row)
        }
        select(20, 12)
        var expected = Damage()
        for rect in [
            PixelRect(x: 48, y: 32, width: 64, height: 48), PixelRect(x: 320, y: 32, width: 10, height: 48),
            PixelRect(x: 320, y: 192, width: 10, height: 8),
        ] { expected.insert(rect) }
        #expect(map.damage(in: size) == expected)
        map.selectAll()
        #expect(map.damage(in: size) == Damage(PixelRect(size)))
    }

    @Test func blurredBlocksBecomeSharpInAFewSteps() {
        var map = BlockMap(size: PixelSize(width: 64, height: 64))
        map.selectAll()
        map.noteChanges(at: begin)
        map.noteEncoded(quantizer: 56)
        #expect(map.hasBlurred)
        #expect(map.selectForRefinement(at: begin + .milliseconds(10)) == nil)
        var steps: [Int] = []
        while let quantizer = map.selectForRefinement(at: begin + .seconds(1)) {
            #expect(map.selected.allSatisfy { $0 == 1 })
            map.noteEncoded(quantizer: quantizer)
            steps.append(quantizer)
        }
        #expect(steps == [40, 30, 20, 12])
        #expect(!map.hasBlurred)
    }

    @Test func whatMovesIsNotRefined() {
        var map = BlockMap(size: PixelSize(width: 32, height: 16))
        map.selectAll()
        map.noteChanges(at: begin)
        map.noteEncoded(quantizer: 50)
        map.selected = [0, 1]
        map.noteChanges(at: begin + .seconds(1))
        map.noteEncoded(quantizer: 50)
        map.selectNothing()
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == 40)
        #expect(map.selected == [1, 0])
    }

    /// The refinement of still blocks rides on a picture of those that move.
    @Test func whatIsSelectedStaysSelected() {
        var map = BlockMap(size: PixelSize(width: 32, height: 16))
        map.selectAll()
        map.noteChanges(at: begin)
        map.noteEncoded(quantizer: 50)
        map.selected = [0, 1]
        map.noteChanges(at: begin + .seconds(1))
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == 40)
        #expect(map.selected == [1, 1])
    }

    @Test func aStepThatWouldShowNothingIsLeftOut() {
        var map = BlockMap(size: PixelSize(width: 16, height: 16))
        map.selectAll()
        map.noteEncoded(quantizer: 42)
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == 30)
        map.noteEncoded(quantizer: 13)
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == 12)
        map.noteEncoded(quantizer: 12)
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == nil && !map.hasBlurred)
    }

    @Test func theMostBlurredComeFirst() {
        var map = BlockMap(size: PixelSize(width: 32, height: 16))
        map.selectAll()
        map.noteChanges(at: begin)
        map.noteEncoded(quantizer: 25)
        map.selected = [0, 1]
        map.noteEncoded(quantizer: 48)
        map.selectNothing()
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == 40)
        #expect(map.selected == [0, 1])
        map.noteEncoded(quantizer: 25)
        #expect(map.selectForRefinement(at: begin + .seconds(1)) == 12)
        #expect(map.selected == [1, 1])
    }
}

@Suite struct FittedSizeTests {
    @Test(arguments: [
        (1920, 1080, 1280, 720, 1280, 720), (1920, 1200, 1280, 720, 1152, 720), (640, 480, 1920, 1080, 640, 480),
        (1080, 1920, 1920, 1080, 608, 1080), (16_383, 1, 640, 360, 640, 1), (1, 16_383, 640, 360, 1, 360), (300, 300, 0, 100, 100, 100),
    ])
    func shapesAreKept(_ width: Int, _ height: Int, _ maxWidth: Int, _ maxHeight: Int, _ expectedWidth: Int, _ expectedHeight: Int) {
        let size = PixelSize(width: width, height: height).fitted(into: PixelSize(width: maxWidth, height: maxHeight))
        #expect(size == PixelSize(width: expectedWidth, height: expectedHeight))
    }

    @Test func withoutALimitNothingChanges() {
        let size = PixelSize(width: 16_383, height: 16_383)
        #expect(size.fitted(into: nil) == size)
    }

    @Test func theBitRateFollowsTheSize() {
        let rates = EncodingRates(frameRate: 30, bitrate: 0)
        #expect(rates.bitrate(for: PixelSize(width: 1920, height: 1080)) == 4_147_200)
        #expect(rates.bitrate(for: PixelSize(width: 1, height: 1)) == 300_000)
        #expect(rates.bitrate(for: PixelSize(width: 16_383, height: 16_383)) == 30_000_000)
        #expect(EncodingRates(frameRate: 60, bitrate: 123).bitrate(for: PixelSize(width: 8, height: 8)) == 123)
    }
}
