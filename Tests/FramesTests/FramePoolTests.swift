// SPDX-License-Identifier: MIT
import CAllocations
import Frames
import Glibc
import Loop
import Testing

@Suite struct FramePoolTests {
    static let size = PixelSize(width: 64, height: 48)

    struct NoFrame: Error {}

    func bell() throws -> FileDescriptor { try FileDescriptor.makeBell() }

    /// The macros of Swift Testing cannot handle what is not copyable.
    func take(_ pool: FramePool, _ reader: FramePool.ReaderID) throws -> FrameLease {
        guard let lease = pool.take(reader) else { throw NoFrame() }
        return lease
    }

    func latest(_ pool: FramePool) throws -> FrameLease {
        guard let lease = pool.latest() else { throw NoFrame() }
        return lease
    }

    /// A broadcast that ended before its first format leaves a pool that never had memory.
    @Test func takesFramesAfterItWasClearedUnused() {
        let pool = FramePool()
        for _ in 0..<3 { pool.clear() }
        let now = Instant.now
        #expect(pool.write(size: Self.size, time: now, arrival: now) { _, _ in true } == .published(sequence: 1))
        #expect(pool.statistics.dropped == 0)
    }

    /// Takes and gives back.
    func info(_ pool: FramePool, _ reader: FramePool.ReaderID) -> FrameInfo? {
        if let lease = pool.take(reader) { return lease.info }
        return nil
    }

    func hasLatest(_ pool: FramePool) -> Bool {
        if pool.latest() != nil { return true }
        return false
    }

    func isRung(_ bell: FileDescriptor) -> Bool {
        var count: UInt64 = 0
        return read(bell.raw, &count, 8) == 8
    }

    /// Writes a picture of one grey and tells the readers.
    @discardableResult
    func write(_ pool: FramePool, _ luma: UInt8, size: PixelSize = size, damage: Damage = .everything) -> FramePool.WriteOutcome {
        let outcome = pool.write(size: size, time: .now, arrival: .now, damage: damage) { planes, stale in
            stale.forEach(in: planes.size) { rect in
                if let part = planes.part(rect) { Conversion.fill(part, luma: luma, blue: 128, red: 128) }
            }
            return true
        }
        pool.wakeReaders()
        return outcome
    }

    func luma(_ lease: borrowing FrameLease) -> UInt8 { lease.withPlanes { $0.luma[0] } }

    func isBalanced(_ s: FrameStatistics) -> Bool {
        s.received == s.delivered + s.coalesced + s.unread + s.corrupted + s.cursorOnly + s.dropped + s.inFlight
    }

    @Test func theNewestWinsAndStays() throws {
        let pool = FramePool()
        let reader = pool.addReader(bell: try bell())
        #expect(info(pool, reader) == nil && !hasLatest(pool))
        write(pool, 1)
        write(pool, 2)
        let lease = try take(pool, reader)
        #expect(luma(lease) == 2)
        #expect(lease.info.sequence == 2)
        #expect(info(pool, reader) == nil)
        let late = try latest(pool)
        #expect(luma(late) == 2)
        let other = pool.addReader(bell: try bell())
        let same = try take(pool, other)
        #expect(same.info.sequence == 2 && same.info.damage == .everything)
    }

    @Test func aBellRingsOnceUntilTaken() throws {
        let pool = FramePool()
        let bell = try bell()
        let reader = pool.addReader(bell: bell)
        #expect(!isRung(bell))
        write(pool, 1)
        #expect(isRung(bell))
        write(pool, 2)
        write(pool, 3)
        #expect(!isRung(bell))
        #expect(info(pool, reader)?.sequence == 3)
        pool.wakeReaders()
        #expect(!isRung(bell))
        write(pool, 4)
        #expect(isRung(bell))
        let late = try self.bell()
        _ = pool.addReader(bell: late)
        #expect(isRung(late))
    }

    @Test func whatBecameOfEachFrameIsCounted() throws {
        let pool = FramePool()
        write(pool, 1)  // Nobody reads.
        write(pool, 2)
        #expect(pool.statistics.unread == 1 && pool.statistics.inFlight == 1)
        let reader = pool.addReader(bell: try bell())
        _ = pool.take(reader)
        #expect(pool.statistics.delivered == 1 && pool.statistics.inFlight == 0)
        write(pool, 3)
        write(pool, 4)  // 3 was wanted.
        #expect(pool.statistics.coalesced == 1)
        pool.setNextDue(reader, Instant(nanoseconds: .max))
        write(pool, 5)
        write(pool, 6)  // 4 and 5 were not.
        #expect(pool.statistics.coalesced == 1 && pool.statistics.unread == 3)
        pool.count(.superseded)
        pool.setNextDue(reader, .now)
        pool.count(.superseded)
        pool.count(.corrupted)
        pool.count(.cursorOnly)
        pool.count(.dropped)
        #expect(pool.write(size: Self.size, time: .now, arrival: .now) { _, _ in false } == .notFilled)
        let statistics = pool.statistics
        #expect(statistics.unread == 4 && statistics.coalesced == 2 && statistics.dropped == 2)
        #expect(statistics.received == 12 && isBalanced(statistics))
        pool.clear()
        #expect(pool.statistics.inFlight == 0 && isBalanced(pool.statistics))
    }

    @Test func aLeaseKeepsItsPictureAndNoSlotIsAnAnswer() throws {
        let pool = FramePool(capacity: 3)
        let reader = pool.addReader(bell: try bell())
        write(pool, 1)
        let first = try take(pool, reader)
        write(pool, 2)
        let second = try take(pool, reader)
        write(pool, 3)
        // One slot is left, the unread latest: it is taken back.
        #expect(write(pool, 4) == .published(sequence: 4))
        let fourth = try take(pool, reader)
        #expect(luma(first) == 1 && luma(second) == 2 && luma(fourth) == 4)
        #expect(write(pool, 5) == .noSlot)
        #expect(pool.statistics.dropped == 1 && isBalanced(pool.statistics))
        _ = consume first
        #expect(write(pool, 6) == .published(sequence: 5))
        #expect(luma(second) == 2 && luma(fourth) == 4)
    }

    @Test func damageOfWhatAReaderMissedIsFolded() throws {
        let pool = FramePool()
        let (quick, slow) = (pool.addReader(bell: try bell()), pool.addReader(bell: try bell()))
        write(pool, 1)
        #expect(info(pool, quick)?.damage == .everything)
        #expect(info(pool, slow)?.damage == .everything)
        let rects = [PixelRect(x: 0, y: 0, width: 2, height: 2), PixelRect(x: 10, y: 10, width: 2, height: 2)]
        write(pool, 2, damage: Damage(rects[0]))
        #expect(info(pool, quick)?.damage == Damage(rects[0]))
        write(pool, 3, damage: Damage(rects[1]))
        #expect(info(pool, quick)?.damage == Damage(rects[1]))
        var both = Damage(rects[0])
        both.insert(rects[1])
        #expect(info(pool, slow)?.damage == both)
        write(pool, 4, damage: .none)
        #expect(info(pool, slow)?.damage == Damage.none)
        write(pool, 5, size: PixelSize(width: 32, height: 32), damage: .none)
        #expect(info(pool, quick)?.damage == .everything)
    }

    @Test func onlyWhatIsOutOfDateIsWritten() throws {
        let pool = FramePool()
        var areas: [Int] = []
        for step in 0..<6 {
            let damage = step == 0 ? Damage.everything : Damage(PixelRect(x: step * 8, y: 0, width: 4, height: 4))
            pool.write(size: Self.size, time: .now, arrival: .now, damage: damage) { planes, stale in
                areas.append(stale.area(in: planes.size))
                return true
            }
        }
        // Two slots take turns: the second one's first picture is a whole one too, then it is what changed in two frames.
        #expect(areas == [64 * 48, 64 * 48, 32, 32, 32, 32])
    }

    @Test func pictureThatDidNotChangeHasNoDamage() throws {
        let pool = FramePool()
        let reader = pool.addReader(bell: try bell())
        write(pool, 9)
        #expect(info(pool, reader)?.damage == .everything)
        write(pool, 9)
        #expect(info(pool, reader)?.damage == Damage.none)
        pool.write(size: Self.size, time: .now, arrival: .now) { planes, _ in
            Conversion.fill(planes, luma: 9, blue: 128, red: 128)
            planes.luma[20 * planes.lumaStride + 30] = 200
            return true
        }
        let damage = try take(pool, reader).info.damage
        #expect(!damage.isEmpty && !damage.isEverything && damage.area(in: Self.size) <= 64 * 16)
    }

    @Test func damageThatNamesTooMuchIsNarrowed() throws {
        let pool = FramePool()
        let reader = pool.addReader(bell: try bell())
        write(pool, 9)
        _ = try take(pool, reader)
        write(pool, 9, damage: Damage(PixelRect(Self.size)))
        #expect(info(pool, reader)?.damage == Damage.none)
    }

    @Test func aFrameOfAnotherSizeLeavesOldOnesAlone() throws {
        let pool = FramePool()
        try pool.prepare(size: Self.size)
        let reader = pool.addReader(bell: try bell())
        write(pool, 1)
        let old = try take(pool, reader)
        let larger = PixelSize(width: 641, height: 479)
        try pool.prepare(size: larger)
        #expect(write(pool, 2, size: larger) == .published(sequence: 2))
        let new = try take(pool, reader)
        #expect(new.size == larger && luma(new) == 2 && old.size == Self.size && luma(old) == 1)
        for (index, size) in [PixelSize(width: 1, height: 1), larger.transposed, Self.size].enumerated() {
            #expect(write(pool, 3, size: size) == .published(sequence: 3 + UInt64(index)))
            #expect(try take(pool, reader).size == size)
        }
        #expect(luma(old) == 1 && luma(new) == 2)
        #expect(write(pool, 3, size: PixelSize(width: 0, height: 5)) == .noSlot)
        #expect(isBalanced(pool.statistics))
    }

    @Test func onlyUsedSlotsCount() throws {
        let pool = FramePool()
        #expect(pool.statistics.footprint == 0 && pool.statistics.capacity == 12)
        try pool.prepare(size: PixelSize(width: 1_920, height: 1_080))
        #expect(pool.statistics.footprint == 0)
        for _ in 0..<20 { write(pool, 5, size: PixelSize(width: 1_920, height: 1_080)) }
        let slot = 3_112_960  // 1.5 bytes a pixel, or of the picture on its side, in whole pages.
        #expect(pool.statistics.footprint >= 2 * 3_110_400 && pool.statistics.footprint <= 2 * (slot + 400_000))
        pool.clear()
        #expect(pool.statistics.footprint == 0)
    }

    @Test func nothingOfAnEndedShareIsLeft() throws {
        let pool = FramePool()
        let reader = pool.addReader(bell: try bell())
        write(pool, 99)
        let held = try take(pool, reader)
        write(pool, 98)
        pool.clear()
        #expect(!hasLatest(pool) && info(pool, reader) == nil && luma(held) == 99)
        var seen: Set<UInt8> = []
        _ = consume held
        for _ in 0..<12 {
            pool.write(size: Self.size, time: .now, arrival: .now) { planes, stale in
                #expect(stale == .everything)
                for y in 0..<planes.size.height { for x in 0..<planes.size.width { seen.insert(planes.luma[y * planes.lumaStride + x]) } }
                return false
            }
        }
        #expect(seen == [0])
        write(pool, 1)
        #expect(info(pool, reader)?.damage == .everything)
    }

    @Test func clearingWhileAFrameIsWrittenLosesIt() throws {
        let pool = FramePool()
        let outcome = pool.write(size: Self.size, time: .now, arrival: .now) { planes, _ in
            planes.luma[0] = 7
            pool.clear()
            return true
        }
        #expect(outcome == .notFilled && !hasLatest(pool))
        pool.write(size: Self.size, time: .now, arrival: .now) { planes, _ in
            #expect(planes.luma[0] == 0)
            return true
        }
        #expect(isBalanced(pool.statistics))
    }

    @Test(.enabled(if: allocations_are_counted() == 1)) func writingAndTakingAllocatesNothing() throws {
        let pool = FramePool()
        try pool.prepare(size: Self.size)
        let reader = pool.addReader(bell: try bell())
        func round(_ step: Int) {
            let damage = step % 3 == 0 ? Damage.everything : Damage(PixelRect(x: step % 50, y: step % 40, width: 9, height: 9))
            write(pool, UInt8(step & 127), damage: damage)
            if step % 2 == 0 {
                // A lease in a local, as a reader has it.
                if let lease = pool.take(reader) { _ = lease.size }
            }
            pool.count(.superseded)
            pool.noteLatency(.milliseconds(3))
        }
        for step in 0..<20 { round(step) }
        let before = allocations_of_this_thread()
        for step in 0..<500 { round(step) }
        #expect(allocations_of_this_thread() - before == 0)
        // The counter itself works.
        let array = [UInt8](repeating: 1, count: 9_999)
        #expect(array.count == 9_999 && allocations_of_this_thread() > before)
    }

    @Test func latencyQuantiles() throws {
        let pool = FramePool()
        #expect(pool.statistics.latencyMedian == nil)
        for microseconds in 1...1_000 { pool.noteLatency(.microseconds(microseconds * 20)) }
        let statistics = pool.statistics
        let (median, high) = (try #require(statistics.latencyMedian), try #require(statistics.latencyP99))
        #expect(median >= .microseconds(10_000) && median <= .microseconds(11_300))
        #expect(high >= .microseconds(19_800) && high <= .microseconds(22_500))
        for duration in [Duration.seconds(-1), .zero, .seconds(100_000)] { pool.noteLatency(duration) }
        for _ in 0..<20_000 { pool.noteLatency(.milliseconds(1)) }
        let recent = try #require(pool.statistics.latencyMedian)
        #expect(recent >= .milliseconds(1) && recent < .microseconds(1_130))
    }
}
