// SPDX-License-Identifier: MIT
import Glibc
public import Loop
import Synchronization

/// The fixed number of frame slots between one capture and its encoders. The newest frame wins.
///
/// The capture thread writes; each frame becomes *latest*, and what was latest before goes. Readers take the latest when they are free; several may hold
/// the same one. The newest picture stays here, also when everybody has it already, for the reader that comes late.
///
/// Thread: any; one thread at a time writes. Memory: slots are mapped when a size is prepared, and resident from the first picture in them on; the lowest
/// free slot is used first, so that only as many are resident as were in use at once.
public final class FramePool: Sendable {
    /// Names one reader of one pool.
    public struct ReaderID: Hashable, Sendable {
        let number: Int
    }

    /// How a write ended.
    public enum WriteOutcome: Equatable, Sendable {
        /// The frame is the latest now; its number.
        case published(sequence: UInt64)
        /// Every slot is in use, or has no memory.
        case noSlot
        /// The closure gave up.
        case notFilled
    }

    let state: Mutex<State>
    /// What composed pictures are made of; see ``addInput(_:)``.
    let inputs = Mutex(Inputs())
    private let latency = Mutex(LatencyHistogram())
    private let oldest = Atomic<UInt64>(0)

    /// A pool of that many slots, which have no memory yet.
    public init(capacity: Int = 12) {
        precondition(capacity >= 2, "one slot to show and one to write")
        var state = State(slots: Array(repeating: Slot(), count: capacity))
        state.counts.capacity = capacity
        state.readers.reserveCapacity(16)
        self.state = Mutex(state)
    }

    // MARK: - The writer

    /// Maps memory for pictures of a size, upright or on their side, in all slots that are free, so that
    /// ``write(size:time:arrival:damage:_:)`` need not.
    ///
    /// Call it when a format was negotiated. Frames of another size that are latest or leased stay as they are.
    ///
    /// - Throws: when there is no memory for them.
    public func prepare(size: PixelSize) throws(Errno) {
        precondition(size.isUsable, "a picture without pixels")
        let bytes = PixelMemory.wholePages(FramePool.byteCount(size))
        let count = state.withLock { $0.slots.count }
        for index in 0..<count {
            let isOurs = state.withLock { state in
                let slot = state.slots[index]
                guard slot.users == 0, state.latest?.slot != index, slot.memory?.byteCount != bytes else { return false }
                state.slots[index].users = 1
                return true
            }
            guard isOurs else { continue }
            defer { release(index) }
            try map(index, size)
        }
    }

    /// Enough for a picture and for the same one on its side.
    private static func byteCount(_ size: PixelSize) -> Int { max(I420Planes.byteCount(size), I420Planes.byteCount(size.transposed)) }

    /// Publishes a frame: picks a slot, lets `fill` write the picture, makes it the latest.
    ///
    /// Nothing is allocated once the size is prepared. The readers hear of it by ``wakeReaders()``, so that the producer's buffer can go back first.
    ///
    /// - Parameters:
    ///   - time: when the producer says that it showed this.
    ///   - arrival: when the buffer came.
    ///   - damage: what changed since the frame before, in pixels of the picture. When it is half of it or more, and there are readers, the
    ///     pictures are compared, so that readers hear exactly what differs.
    ///   - composed: how many frames of the pool's inputs it shows for the first time. They were counted as received there, and compared. Nil is
    ///     a frame of its own.
    ///   - fill: writes into the planes, outside the pool's lock. The slot holds an older picture, in which the second argument is what is out of date.
    ///     Returns whether it succeeded.
    @discardableResult
    public func write(
        size: PixelSize, time: Instant, arrival: Instant, damage: Damage = .everything, composed: Int? = nil,
        _ fill: (I420Planes, Damage) -> Bool
    ) -> WriteOutcome {
        let frames = UInt64(composed ?? 1)
        guard size.isUsable, let start = state.withLock({ $0.beginWriting(size, frames, isOwn: composed == nil) }) else { return .noSlot }
        let index = start.index
        if !start.isMapped {
            do throws(Errno) {
                try map(index, size)
            } catch {
                abandon(index, frames)
                return .noSlot
            }
        }
        // In two steps: Swift 6.0 does not take the labelled tuple of a closure apart.
        let found = state.withLock { $0.lookUp(index, damage, compares: composed == nil) }
        let (target, stale, previous) = found
        defer { if let previous { release(previous.slot) } }
        guard let planes = target?.view, fill(planes, stale) else {
            abandon(index, frames)
            return .notFilled
        }
        var known = damage
        if let previous { known = Comparison.damage(previous.planes.view, planes) }
        let sequence = state.withLock { state -> UInt64? in
            // The broadcast may have ended meanwhile.
            state.epoch == start.epoch ? state.publish(index, time, arrival, known, frames) : nil
        }
        guard let sequence else {
            abandon(index, frames)
            return .notFilled
        }
        return .published(sequence: sequence)
    }

    /// Number of the oldest frame that may still be shown. Who has drawn an older one shows it no more, not even one that is on its way.
    public var oldestShowable: UInt64 { oldest.load(ordering: .sequentiallyConsistent) }

    /// Withdraws the frames before this one, wherever they are: what they show must not be seen any more.
    public func withdraw(before sequence: UInt64) { oldest.store(sequence, ordering: .sequentiallyConsistent) }

    /// Withdraws all frames, the latest included: until the next one there is nothing to show.
    public func withdrawAll() {
        let next = state.withLock { state in
            state.retire(asUnread: true)
            return state.lastSequence + 1
        }
        withdraw(before: next)
    }

    /// Gives a slot back in which nothing came to be.
    private func abandon(_ index: Int, _ frames: UInt64) {
        state.withLock { $0.abandon(index, frames) }
        release(index)
    }

    /// Whether a reader wants a frame now.
    public var isWanted: Bool { state.withLock { $0.isWanted(by: .now) } }

    /// Counts a buffer that came and will not be written.
    public func count(_ loss: FrameLoss) {
        state.withLock { state in
            state.counts.received += 1
            switch loss {
            case .corrupted: state.counts.corrupted += 1
            case .cursorOnly: state.counts.cursorOnly += 1
            case .dropped: state.counts.dropped += 1
            case .superseded:
                if state.isWanted(by: .now) { state.counts.coalesced += 1 } else { state.counts.unread += 1 }
            }
        }
    }

    /// Rings the bell of every reader that has not been told of a newer frame yet, or of a newer pointer if it follows that.
    public func wakeReaders() {
        state.withLock { state in
            guard let latest = state.latest else { return }
            for index in state.readers.indices {
                let hasFrame = !state.readers[index].isRung && state.readers[index].lastTaken < latest.info.sequence
                let hasCursor = !state.readers[index].isRungForCursor && state.readers[index].lacks(state.cursor)
                guard hasFrame || hasCursor, let bell = state.readers[index].bell else { continue }
                if hasFrame { state.readers[index].isRung = true }
                if hasCursor { state.readers[index].isRungForCursor = true }
                var one: UInt64 = 1
                _ = Glibc.write(bell.raw, &one, MemoryLayout.size(ofValue: one))
            }
        }
    }

    /// Rings a bell, once, as soon as a picture can be written that found no slot.
    public func ringWhenFree(_ bell: FileDescriptor) {
        let isFree = state.withLock { state in
            let isFree = state.slots.contains { $0.users == 0 }
            if !isFree { state.freeBell = bell }
            return isFree
        }
        if isFree { bell.ring() }
    }

    /// Forgets the latest picture and zeroes all slots, those in use as soon as they are free: nothing of an ended share can be seen later.
    ///
    /// The memory goes back to the system; what was counted stays.
    public func clear() {
        let count = state.withLock { state in
            state.retire(asUnread: true)
            state.epoch += 1
            state.clearCursor()
            for index in state.readers.indices { state.readers[index].damage = .everything }
            for index in state.slots.indices { state.slots[index].isWipedWhenFree = true }
            return state.slots.count
        }
        for index in 0..<count {
            let isOurs = state.withLock { state in
                guard state.slots[index].users == 0, state.latest?.slot != index else { return false }
                state.slots[index].users = 1
                return true
            }
            if isOurs { release(index) }
        }
    }

    // MARK: - Readers

    /// Adds a reader, which wants every frame from now on, the latest one included.
    ///
    /// - Parameters:
    ///   - bell: an `eventfd(2)`, rung once for all frames that came since the reader last took one. Rung at once when there is a picture. Nil for
    ///     a reader on the writer's own thread.
    ///   - followsCursor: whether it is rung for a pointer that has moved, too: see ``takeCursor(_:into:)``.
    public func addReader(bell: FileDescriptor?, followsCursor: Bool = false) -> ReaderID {
        let id = state.withLock { state in
            state.lastReader += 1
            state.readers.append(Reader(id: state.lastReader, bell: bell, followsCursor: followsCursor))
            state.counts.readers = state.readers.count
            return state.lastReader
        }
        wakeReaders()
        return ReaderID(number: id)
    }

    /// Takes a reader out. Leases that it holds stay good.
    public func removeReader(_ reader: ReaderID) {
        state.withLock { state in
            state.readers.removeAll { $0.id == reader.number }
            state.counts.readers = state.readers.count
        }
    }

    /// Says from when on a reader wants a frame. Those that come and go before are not its loss; it is still told once that there is one.
    ///
    /// - Parameter instant: `Instant(nanoseconds: .max)` for a reader that wants nothing at present.
    public func setNextDue(_ reader: ReaderID, _ instant: Instant) {
        state.withLock { state in
            guard let index = state.index(of: reader) else { return }
            state.readers[index].nextDue = instant
        }
    }

    /// Lets a reader's bell ring again for the next frame, without one that is there already. Nothing counts as read.
    public func skip(_ reader: ReaderID) {
        state.withLock { state in
            guard let index = state.index(of: reader) else { return }
            state.readers[index].isRung = false
            state.readers[index].lastTaken = state.latest?.info.sequence ?? state.readers[index].lastTaken
        }
    }

    /// The latest frame, when it is newer than what this reader took before.
    ///
    /// - Returns: a lease whose damage is all that changed since this reader's last one.
    public func take(_ reader: ReaderID) -> FrameLease? {
        let taken = state.withLock { state -> (Int, FrameInfo, Planes)? in
            guard let index = state.index(of: reader) else { return nil }
            state.readers[index].isRung = false
            guard var latest = state.latest, latest.info.sequence > state.readers[index].lastTaken,
                let planes = Planes(state.slots[latest.slot])
            else { return nil }
            if !latest.isTaken {
                state.counts.delivered += latest.frames
                state.counts.inFlight -= latest.frames
            }
            latest.isTaken = true
            state.latest = latest
            state.slots[latest.slot].users += 1
            var info = latest.info
            info.damage = state.readers[index].damage
            state.readers[index].lastTaken = info.sequence
            state.readers[index].damage = .none
            return (latest.slot, info, planes)
        }
        guard let (slot, info, planes) = taken else { return nil }
        return FrameLease(pool: self, slot: slot, info: info, planes: planes)
    }

    /// The latest frame, whoever has it already; its damage is everything. Not counted.
    public func latest() -> FrameLease? {
        let taken = state.withLock { state -> (Int, FrameInfo, Planes)? in
            guard let latest = state.latest, let planes = Planes(state.slots[latest.slot]) else { return nil }
            state.slots[latest.slot].users += 1
            var info = latest.info
            info.damage = .everything
            return (latest.slot, info, planes)
        }
        guard let (slot, info, planes) = taken else { return nil }
        return FrameLease(pool: self, slot: slot, info: info, planes: planes)
    }

    /// The number of the newest frame that was published; 0 before the first.
    public var newestSequence: UInt64 { state.withLock { $0.lastSequence } }

    /// Notes how long a frame took from its arrival to the packet.
    public func noteLatency(_ duration: Duration) { latency.withLock { $0.add(duration) } }

    /// What was counted, all of one moment, with what was counted of its inputs.
    public var statistics: FrameStatistics {
        let (present, past) = inputs.withLock { ($0.pools, $0.past) }
        var counts = ownStatistics
        counts.add(past)
        for pool in present { counts.add(pool.ownStatistics) }
        return counts
    }

    private var ownStatistics: FrameStatistics {
        var counts = state.withLock { state in
            var counts = state.counts
            counts.footprint = state.slots.reduce(0) { $0 + ($1.isTouched ? $1.memory?.byteCount ?? 0 : 0) }
            return counts
        }
        (counts.latencyMedian, counts.latencyP99) = latency.withLock { ($0.quantile(0.5), $0.quantile(0.99)) }
        return counts
    }

    // MARK: - Slots

    /// Gives a slot memory for a size. The caller is its only user.
    private func map(_ index: Int, _ size: PixelSize) throws(Errno) {
        let memory = try PixelMemory(byteCount: FramePool.byteCount(size))
        // The old mapping goes outside the lock.
        let old = state.withLock { state in
            let old = state.slots[index].memory
            state.slots[index].memory = memory
            state.slots[index].size = size
            state.slots[index].stale = .everything
            state.slots[index].isTouched = false
            return old
        }
        _ = consume old
    }

    /// Ends one use of a slot.
    func release(_ index: Int) {
        let memory = state.withLock { state -> PixelMemory? in
            let isLast = state.slots[index].users == 1 && state.latest?.slot != index
            if isLast && state.slots[index].isWipedWhenFree {
                // Still ours: it is wiped outside the lock.
                state.slots[index].isWipedWhenFree = false
                state.slots[index].isTouched = false
                state.slots[index].stale = .everything
                // A slot that was never mapped has nothing to wipe.
                if let memory = state.slots[index].memory { return memory }
            }
            state.slots[index].users -= 1
            if state.slots[index].users == 0, let bell = state.freeBell {
                bell.ring()
                state.freeBell = nil
            }
            return nil
        }
        guard let memory else { return }
        memory.wipe()
        release(index)
    }
}
