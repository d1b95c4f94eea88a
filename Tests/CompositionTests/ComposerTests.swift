// SPDX-License-Identifier: MIT
import Composition
import Frames
import Loop
import Testing

@Suite struct ComposerTests {
    private let small = PixelSize(width: 64, height: 36)
    private let large = PixelSize(width: 100, height: 80)
    private let black: UInt8 = 16

    @Test func nothingIsShownBeforeTheFirstPicture() throws {
        let rig = try Rig(2)
        rig.composer.compose()
        #expect(rig.picture().isEmpty && !rig.composer.hasPicture && rig.composer.size == nil)
    }

    @Test func othersAreBlackUntilTheirFirst() throws {
        let rig = try Rig(2)
        rig.send(0, small, 100)
        rig.composer.compose()
        #expect(rig.composer.size == PixelSize(width: 128, height: 36))
        #expect((rig.luma(0, 0), rig.luma(63, 35), rig.luma(64, 0), rig.luma(127, 35)) == (100, 100, black, black))
        rig.send(1, large, 200)
        rig.composer.compose()
        #expect(rig.composer.size == PixelSize(width: 164, height: 80))
        #expect((rig.luma(0, 0), rig.luma(0, 22), rig.luma(63, 57), rig.luma(64, 0), rig.luma(163, 79)) == (black, 100, 100, 200, 200))
    }

    @Test func anUnseenSourceMeasuresWhatThePortalSays() throws {
        let rig = try Rig(2, expected: large)
        rig.send(0, small, 100)
        rig.composer.compose()
        #expect(rig.composer.size == PixelSize(width: 164, height: 80))
    }

    @Test func onlyWhatIsDamagedChanges() throws {
        let rig = try Rig(2)
        rig.send(0, small, 100)
        rig.send(1, small, 200)
        rig.composer.compose()
        _ = rig.damage()
        let rect = PixelRect(x: 10, y: 6, width: 8, height: 4)
        rig.send(1, small, 50, only: rect)
        rig.composer.compose()
        #expect(rig.damage() == Damage(PixelRect(x: 74, y: 6, width: 8, height: 4)))
        #expect((rig.luma(10, 6), rig.luma(74, 6), rig.luma(81, 9), rig.luma(82, 9), rig.luma(73, 6)) == (100, 50, 50, 200, 200))
    }

    @Test func withoutNewsNothingIsWritten() throws {
        let rig = try Rig(3)
        for index in 0..<3 { rig.send(index, small, 100) }
        rig.composer.compose()
        let sequence = rig.pool.newestSequence
        rig.bell.silence()
        _ = rig.damage()
        for _ in 0..<10 { rig.composer.compose() }
        #expect(rig.pool.newestSequence == sequence && rig.damage() == nil)
    }

    @Test func theNewestOfEachSourceWins() throws {
        let rig = try Rig(2)
        for luma in UInt8(20)..<30 {
            rig.send(0, small, luma)
            rig.send(1, small, luma + 100)
        }
        rig.composer.compose()
        #expect((rig.luma(0, 0), rig.luma(64, 0), rig.pool.newestSequence) == (29, 129, 1))
        _ = rig.damage()
        let counts = rig.pool.statistics
        #expect((counts.received, counts.delivered, counts.coalesced, counts.inFlight) == (20, 2, 18, 0))
        #expect(rig.isBalanced)
    }

    /// Each slot of the pool holds another old picture: whatever is written in whatever order, the picture is what the sources show.
    @Test func everySlotIsBroughtUpToDate() throws {
        var numbers = SystemRandomNumberGenerator()
        for count in 1...9 {
            let rig = try Rig(count)
            let sizes = (0..<count).map { _ in
                PixelSize(width: .random(in: 20...60, using: &numbers), height: .random(in: 20...60, using: &numbers))
            }
            var shown = sizes.map { size in [[UInt8]](repeating: [UInt8](repeating: 100, count: size.width), count: size.height) }
            for index in 0..<count { rig.send(index, sizes[index], 100) }
            rig.composer.compose()
            for round in 0..<40 {
                let index = Int.random(in: 0..<count, using: &numbers)
                let size = sizes[index]
                let rect = PixelRect(
                    x: .random(in: 0..<(size.width - 8), using: &numbers) & ~1, y: .random(in: 0..<(size.height - 8), using: &numbers) & ~1,
                    width: 8, height: 6)
                let luma = UInt8(round + 110)
                rig.send(index, size, luma, only: rect)
                for y in rect.y..<(rect.y + 6) { for x in rect.x..<(rect.x + 8) { shown[index][y][x] = luma } }
                let lease = rig.pool.latest()
                rig.composer.compose()
                if round % 3 == 0 { _ = rig.damage() }
                _ = consume lease
            }
            let places = arrangement(sizes, .grid)
            var wanted = [[UInt8]](
                repeating: [UInt8](repeating: black, count: rig.composer.size?.width ?? 0), count: rig.composer.size?.height ?? 0)
            for (index, place) in places.enumerated() {
                for y in 0..<place.height { for x in 0..<place.width { wanted[place.y + y][place.x + x] = shown[index][y][x] } }
            }
            #expect(rig.picture() == wanted, "\(count) sources of \(sizes)")
            #expect(rig.isBalanced)
        }
    }

    private func arrangement(_ sizes: [PixelSize], _ layout: Layout) -> [PixelRect] { Arrangement(sizes, layout).places }

    @Test func aSourceThatResizesMovesTheOthers() throws {
        let rig = try Rig(2)
        rig.send(0, small, 100)
        rig.send(1, small, 200)
        rig.composer.compose()
        rig.send(0, large, 50)
        rig.composer.compose()
        #expect(rig.composer.size == PixelSize(width: 164, height: 80))
        #expect((rig.luma(0, 0), rig.luma(99, 79), rig.luma(100, 0), rig.luma(100, 22)) == (50, 50, black, 200))
        // Turned: the same pixels, another shape.
        rig.send(0, large.transposed, 60)
        rig.composer.compose()
        #expect(rig.composer.size == PixelSize(width: 144, height: 100))
        #expect((rig.luma(79, 99), rig.luma(80, 32), rig.luma(80, 0)) == (60, 200, black))
    }

    @Test func anEndedSourceIsTakenOut() throws {
        let rig = try Rig(3)
        for index in 0..<3 { rig.send(index, small, UInt8(50 + 50 * index)) }
        rig.composer.compose()
        #expect(rig.composer.size == PixelSize(width: 128, height: 72))
        rig.composer.remove(rig.inputs[1])
        #expect(rig.composer.size == PixelSize(width: 128, height: 36))
        #expect((rig.luma(0, 0), rig.luma(64, 0)) == (50, 150))
        rig.composer.remove(rig.inputs[0])
        #expect(rig.composer.size == small && rig.luma(0, 0) == 150)
        // The last one's picture stays, whatever becomes of it.
        rig.composer.remove(rig.inputs[2])
        #expect(rig.composer.size == small && rig.luma(0, 0) == 150)
        #expect(rig.pool.statistics.received == 3 && rig.isBalanced)
    }

    @Test func theLayoutChangesAtOnce() throws {
        let rig = try Rig(3)
        for index in 0..<3 { rig.send(index, small, UInt8(50 + 50 * index)) }
        rig.composer.compose()
        let received = rig.pool.statistics.received
        rig.composer.setLayout(.row)
        #expect(rig.composer.size == PixelSize(width: 192, height: 36))
        #expect((rig.luma(0, 0), rig.luma(64, 0), rig.luma(128, 0)) == (50, 100, 150))
        // No source has sent anything.
        #expect(rig.pool.statistics.received == received && rig.isBalanced)
        let sequence = rig.pool.newestSequence
        rig.composer.setLayout(.row)
        #expect(rig.pool.newestSequence == sequence)
    }

    @Test func aChangeOfTheLayoutIsOfItsOwnTime() throws {
        let rig = try Rig(2)
        rig.send(0, small, 50)
        rig.send(1, small, 100)
        rig.composer.compose()
        let before = Instant.now
        rig.composer.setLayout(.row)
        guard let latest = rig.pool.latest() else {
            Issue.record("there is no picture")
            return
        }
        let time = latest.info.time
        #expect(time >= before)
    }

    /// The last change of a still set of sources does not wait for the next one.
    @Test func whatFindsNoSlotIsWrittenWhenOneIsFree() throws {
        let rig = try Rig(2)
        rig.send(1, small, 200)
        var held: [Held] = []
        for luma in UInt8(50)..<62 {
            rig.send(0, small, luma)
            rig.composer.compose()
            if let latest = rig.pool.latest() { held.append(Held(latest)) }
        }
        #expect(held.count == 12 && !rig.isRung())
        rig.send(0, small, 90)
        rig.composer.compose()
        #expect(rig.luma(0, 0) == 61 && !rig.isRung())
        held.removeFirst()
        #expect(rig.isRung())
        rig.composer.compose()
        #expect((rig.luma(0, 0), rig.luma(64, 0)) == (90, 200))
        held.removeFirst()
        let sequence = rig.pool.newestSequence
        rig.composer.compose()
        #expect(!rig.isRung() && rig.pool.newestSequence == sequence && rig.isBalanced)
    }

    private final class Held {
        private let lease: FrameLease

        init(_ lease: consuming FrameLease) { self.lease = lease }
    }

    @Test func cropAndMasksAreThoseOfTheWhole() throws {
        let rig = try Rig(2)
        rig.send(0, small, 100)
        rig.send(1, small, 200)
        rig.composer.compose()
        let before = rig.pool.newestSequence
        rig.composer.setView(
            CaptureView(
                crop: PixelRect(x: 31, y: 0, width: 66, height: 20), masks: [PixelRect(x: 60, y: 4, width: 8, height: 4)]))
        // Whole chroma samples: from 32 to 96.
        #expect(rig.composer.size == PixelSize(width: 64, height: 20))
        #expect(rig.composer.wholeSize == PixelSize(width: 128, height: 36))
        #expect(rig.pool.oldestShowable > before)
        #expect((rig.luma(0, 0), rig.luma(31, 0), rig.luma(32, 0), rig.luma(63, 19)) == (100, 100, 200, 200))
        #expect((rig.luma(28, 4), rig.luma(35, 7), rig.luma(27, 4), rig.luma(36, 7)) == (black, black, 100, 200))
        // Pictures that come keep it hidden.
        for luma in UInt8(101)..<110 {
            rig.send(0, small, luma)
            rig.send(1, small, luma + 100, only: PixelRect(x: 0, y: 4, width: 4, height: 4))
            rig.composer.compose()
            #expect((rig.luma(28, 4), rig.luma(35, 7), rig.luma(27, 4)) == (black, black, luma))
        }
        rig.composer.setView(CaptureView(crop: PixelRect(x: 500, y: 0, width: 10, height: 10)))
        #expect(rig.composer.size == PixelSize(width: 128, height: 36))
        #expect(rig.picture().allSatisfy { row in row.allSatisfy { $0 == black } })
        rig.composer.setView(CaptureView())
        #expect((rig.luma(0, 0), rig.luma(64, 0)) == (109, 200))
    }

    @Test func tooLargeSourcesAreMadeSmaller() throws {
        let rig = try Rig(2, layout: .row)
        let wide = PixelSize(width: 12_000, height: 32)
        rig.send(0, wide, 100)
        rig.send(1, wide, 200)
        rig.composer.compose()
        let size = try #require(rig.composer.size)
        #expect(size.width <= PixelSize.greatestSide && size.width > 16_000)
        #expect(
            (rig.luma(0, 8), rig.luma(size.width / 2 - 1, 8), rig.luma(size.width / 2, 8), rig.luma(size.width - 1, 8)) == (
                100, 100, 200, 200
            ))
        _ = rig.damage()
        rig.send(1, wide, 50, only: PixelRect(x: 0, y: 0, width: 6_000, height: 32))
        rig.composer.compose()
        let middle = size.width / 2
        #expect(
            (rig.luma(middle - 1, 8), rig.luma(middle, 8), rig.luma(middle + 1_000, 8), rig.luma(size.width - 1, 8)) == (100, 50, 50, 200))
    }

    /// Sources that are made smaller, of which a little changes here and there: no part of one is left black or old.
    @Test func tooLargeSourcesAreDrawnWhole() throws {
        let rig = try Rig(3, layout: .row)
        let wide = PixelSize(width: 9_000, height: 32), low = PixelSize(width: 9_000, height: 20)
        rig.send(0, wide, 100)
        rig.send(1, low, 150)
        rig.send(2, wide, 200)
        rig.composer.compose()
        for luma in UInt8(110)..<120 {
            rig.send(0, wide, luma, only: PixelRect(x: 0, y: 0, width: 9_000, height: 32))
            rig.send(1, low, luma + 40, only: PixelRect(x: 0, y: 0, width: 9_000, height: 20))
            rig.composer.compose()
            let size = try #require(rig.composer.size)
            let third = size.width / 3
            #expect((rig.luma(third / 2, 8), rig.luma(third * 3 / 2, 8), rig.luma(third * 5 / 2, 8)) == (luma, luma + 40, 200))
            #expect((rig.luma(third - 4, 8), rig.luma(third + 4, 8), rig.luma(third * 2 + 4, 8)) == (luma, luma + 40, 200))
        }
    }

    @Test func memoryIsThatOfAFewPictures() throws {
        let rig = try Rig(4)
        let size = PixelSize(width: 320, height: 180)
        for round in 0..<100 {
            for index in 0..<4 { rig.send(index, size, UInt8(round + 20)) }
            rig.composer.compose()
            if round % 2 == 0 { _ = rig.damage() }
        }
        let whole = I420Planes.byteCount(PixelSize(width: 640, height: 360))
        let counts = rig.pool.statistics
        #expect(
            counts.footprint > 0 && counts.footprint <= 3 * whole + 4 * 3 * (I420Planes.byteCount(size.transposed) + 4_096) + 3 * 4_096 * 16
        )
        #expect(counts.received == 400 && rig.isBalanced)
        rig.composer.close()
        rig.pool.clear()
        #expect(rig.pool.statistics.footprint == 0 && rig.pool.statistics.received == 400 && rig.isBalanced)
    }

    @Test func aFrameThatNobodyWantsIsUnread() throws {
        let rig = try Rig(2)
        rig.pool.removeReader(rig.reader)
        for _ in 0..<10 {
            rig.send(0, small, 100)
            rig.send(1, small, 100)
            rig.composer.compose()
        }
        rig.composer.close()
        rig.pool.clear()
        let counts = rig.pool.statistics
        #expect((counts.received, counts.delivered, counts.coalesced, counts.unread) == (20, 0, 0, 20))
    }

    // MARK: - Another source

    private final class Other: PoolWriter { var isReplaced = false }

    @Test func theFirstPictureReplacesWhatWasShown() throws {
        let pool = FramePool()
        let other = Other()
        pool.write(size: small, time: .now, arrival: .now) { planes, _ in
            Conversion.fill(planes, luma: 30, blue: 128, red: 128)
            return true
        }
        let inputs = [FramePool(capacity: 3), FramePool(capacity: 3)]
        let composer = Composer(
            into: pool, inputs.map { (pool: $0, expected: nil) }, view: CaptureView(), layout: .grid, hasCursor: false, replacing: other)
        composer.compose()
        #expect(!other.isReplaced)
        inputs[1].write(size: small, time: .now, arrival: .now) { planes, _ in
            Conversion.fill(planes, luma: 90, blue: 128, red: 128)
            return true
        }
        composer.compose()
        #expect(other.isReplaced && pool.oldestShowable == 2)
    }

    @Test func whatWasReplacedGoesOn() throws {
        let rig = try Rig(2)
        rig.send(0, small, 100)
        rig.send(1, small, 200)
        rig.composer.compose()
        rig.composer.isReplaced = true
        rig.send(0, small, 110)
        rig.composer.compose()
        #expect(rig.luma(0, 0) == 100)
        rig.composer.goOn()
        #expect((rig.luma(0, 0), rig.luma(64, 0)) == (110, 200))
        rig.send(1, small, 210)
        rig.composer.compose()
        #expect(rig.luma(64, 0) == 210 && rig.isBalanced)
    }

    // MARK: - The pointer

    private func show(_ pool: FramePool, x: Int, y: Int, _ value: UInt8 = 255) throws {
        try pool.prepareCursor()
        let bitmap = try CursorBitmap()
        let pixels = [UInt8](repeating: value, count: 4 * 4 * 4)
        let isLoaded = pixels.withUnsafeBytes { bitmap.load($0, size: PixelSize(width: 4, height: 4), strideBytes: 16, format: .bgra) }
        #expect(isLoaded)
        pool.showCursor(x: x, y: y, hotspotX: 1, hotspotY: 1, bitmap, isNew: true)
    }

    @Test func thePointerLiesWhereItsSourceDoes() throws {
        let rig = try Rig(2, hasCursor: true)
        rig.send(0, small, 100)
        rig.send(1, small, 200)
        try show(rig.inputs[1], x: 10, y: 12)
        rig.composer.compose()
        let image = CursorImage()
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect((image.cursor.isVisible, image.cursor.x, image.cursor.y, image.cursor.hotspotX) == (true, 74, 12, 1))
        #expect(image.pixels.allSatisfy { $0 == 255 } && image.pixels.count == 64)
        // The source that it moves in last has it.
        try show(rig.inputs[0], x: 5, y: 6)
        rig.composer.compose()
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect((image.cursor.x, image.cursor.y) == (5, 6))
        rig.inputs[0].hideCursor()
        rig.composer.compose()
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect((image.cursor.isVisible, image.cursor.x) == (true, 74))
        rig.inputs[1].hideCursor()
        rig.composer.compose()
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect(!image.cursor.isVisible)
    }

    @Test func thePointerFollowsLayoutCropAndMasks() throws {
        let rig = try Rig(3, hasCursor: true)
        for index in 0..<3 { rig.send(index, small, 100) }
        try show(rig.inputs[2], x: 10, y: 12)
        rig.composer.compose()
        let image = CursorImage()
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect((image.cursor.x, image.cursor.y) == (10, 12 + 36))
        rig.composer.setLayout(.row)
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect((image.cursor.x, image.cursor.y) == (138, 12))
        rig.composer.setView(CaptureView(crop: PixelRect(x: 128, y: 0, width: 64, height: 36)))
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect((image.cursor.x, image.cursor.y) == (10, 12))
        // Half of it lies under a mask: that half is not sent.
        rig.composer.setView(CaptureView(masks: [PixelRect(x: 140, y: 0, width: 20, height: 36)]))
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect(image.cursor.isVisible && image.pixels.contains(0) && image.pixels.contains(255))
        rig.composer.setView(CaptureView(masks: [PixelRect(x: 138, y: 10, width: 4, height: 4)]))
        #expect(rig.pool.takeCursor(rig.reader, into: image))
        #expect(!image.cursor.isVisible)
    }
}
