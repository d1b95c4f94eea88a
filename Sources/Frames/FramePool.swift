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
        fileprivate let number: Int
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

    struct Reader {
        var id: Int
        var bell: FileDescriptor
        var nextDue = Instant(nanoseconds: .min)
        var lastTaken: UInt64 = 0
        /// What changed since this reader last took a frame.
        var damage = Damage.everything
        /// Whether the bell was rung since this reader last took a frame.
        var isRung = false
    }

    struct Slot {
        var memory: PixelMemory?
        var size = PixelSize(width: 0, height: 0)
        /// Leases, and one while it is written.
        var users = 0
        /// What changed since the picture in it, so that only that has to be converted.
        var stale = Damage.everything
        var isTouched = false
        var isWipedWhenFree = false
    }

    struct Latest {
        var slot: Int
        var info: FrameInfo
        var isTaken = false
    }

    struct State {
        var slots: [Slot]
        var readers: [Reader] = []
        var latest: Latest?
        var lastSequence: UInt64 = 0
        var lastReader = 0
        var epoch = 0
        var counts = FrameStatistics()
    }

    private let state: Mutex<State>
    private let latency = Mutex(LatencyHistogram())

    /// A pool of that many slots, which have no memory yet.
    public init(capacity: Int = 12) {
        precondition(capacity >= 2, "one slot to show and one to write")
        var state = State(slots: Array(repeating: Slot(), count: capacity))
        state.counts.capacity = capacity
        state.readers.reserveCapacity(16)
        self.state = Mutex(state)
    }

    // MARK: - The writer

    /// Maps memory for pictures of a size in all slots that are free, so that ``write(size:time:arrival:damage:_:)`` need not.
    ///
    /// Call it when a format was negotiated. Frames of another size that are latest or leased stay as they are.
    ///
    /// - Throws: when there is no memory for them.
    public func prepare(size: PixelSize) throws(Errno) {
        precondition(size.isUsable, "a picture without pixels")
        let count = state.withLock { $0.slots.count }
        for index in 0..<count {
            let isOurs = state.withLock { state in
                guard state.slots[index].users == 0, state.latest?.slot != index, state.slots[index].size != size else { return false }
                state.slots[index].users = 1
                return true
            }
            guard isOurs else { continue }
            defer { release(index) }
            try map(index, size)
        }
    }

    /// Publishes a frame: picks a slot, lets `fill` write the picture, makes it the latest.
    ///
    /// Nothing is allocated once the size is prepared. The readers hear of it by ``wakeReaders()``, so that the producer's buffer can go back first.
    ///
    /// - Parameters:
    ///   - time: when the producer says that it showed this.
    ///   - arrival: when the buffer came.
    ///   - damage: what changed since the frame before, in pixels of the picture.
    ///   - fill: writes into the planes, outside the pool's lock. The slot holds an older picture, in which the second argument is what is out of date.
    ///     Returns whether it succeeded.
    @discardableResult
    public func write(
        size: PixelSize, time: Instant, arrival: Instant, damage: Damage = .everything, _ fill: (I420Planes, Damage) -> Bool
    ) -> WriteOutcome {
        guard size.isUsable, let (index, isMapped, epoch) = state.withLock({ $0.beginWriting(size) }) else { return .noSlot }
        if !isMapped {
            do throws(Errno) {
                try map(index, size)
            } catch {
                state.withLock { $0.abandon(index) }
                return .noSlot
            }
        }
        let (planes, stale) = state.withLock { state in
            state.slots[index].isTouched = true
            var stale = state.slots[index].stale
            stale.merge(damage)
            return (Planes(state.slots[index]), stale)
        }
        guard let planes = planes?.view, fill(planes, stale) else {
            state.withLock { $0.abandon(index) }
            return .notFilled
        }
        return state.withLock { state in
            guard state.epoch == epoch else {
                // The broadcast ended meanwhile.
                state.abandon(index)
                return .notFilled
            }
            return .published(sequence: state.publish(index, time, arrival, damage))
        }
    }

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

    /// Rings the bell of every reader that has not been told of a newer frame yet.
    public func wakeReaders() {
        state.withLock { state in
            guard let latest = state.latest else { return }
            for index in state.readers.indices
            where !state.readers[index].isRung && state.readers[index].lastTaken < latest.info.sequence {
                state.readers[index].isRung = true
                var one: UInt64 = 1
                _ = Glibc.write(state.readers[index].bell.raw, &one, MemoryLayout.size(ofValue: one))
            }
        }
    }

    /// Forgets the latest picture and zeroes all slots, those in use as soon as they are free: nothing of an ended share can be seen later.
    ///
    /// The memory goes back to the system; what was counted stays.
    public func clear() {
        let count = state.withLock { state in
            state.retire(asUnread: true)
            state.epoch += 1
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
    /// - Parameter bell: an `eventfd(2)`, rung once for all frames that came since the reader last took one. Rung at once when there is a picture.
    public func addReader(bell: FileDescriptor) -> ReaderID {
        let id = state.withLock { state in
            state.lastReader += 1
            state.readers.append(Reader(id: state.lastReader, bell: bell))
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
            guard let index = state.readers.firstIndex(where: { $0.id == reader.number }) else { return }
            state.readers[index].nextDue = instant
        }
    }

    /// The latest frame, when it is newer than what this reader took before.
    ///
    /// - Returns: a lease whose damage is all that changed since this reader's last one.
    public func take(_ reader: ReaderID) -> FrameLease? {
        let taken = state.withLock { state -> (Int, FrameInfo, Planes)? in
            guard let index = state.readers.firstIndex(where: { $0.id == reader.number }) else { return nil }
            state.readers[index].isRung = false
            guard var latest = state.latest, latest.info.sequence > state.readers[index].lastTaken,
                let planes = Planes(state.slots[latest.slot])
            else { return nil }
            if !latest.isTaken {
                state.counts.delivered += 1
                state.counts.inFlight -= 1
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

    /// Notes how long a frame took from its arrival to the packet.
    public func noteLatency(_ duration: Duration) { latency.withLock { $0.add(duration) } }

    /// What was counted, all of one moment.
    public var statistics: FrameStatistics {
        var counts = state.withLock { state in
            var counts = state.counts
            counts.footprint = state.slots.reduce(0) { $0 + ($1.isTouched ? $1.memory?.byteCount ?? 0 : 0) }
            return counts
        }
        (counts.latencyMedian, counts.latencyP99) = latency.withLock { ($0.quantile(0.5), $0.quantile(0.99)) }
        return counts
    }

    // MARK: - Slots

    /// Where the planes of a slot lie.
    ///
    /// SAFETY: `@unchecked` because of what the memory's owner is: the slot counts a user for as long as anybody holds this.
    struct Planes: @unchecked Sendable {
        let memory: PixelMemory
        let size: PixelSize

        init?(_ slot: Slot) {
            guard let memory = slot.memory else { return nil }
            (self.memory, size) = (memory, slot.size)
        }

        var view: I420Planes { I420Planes(size: size, base: memory.base) }
    }

    /// Gives a slot memory for a size. The caller is its only user.
    private func map(_ index: Int, _ size: PixelSize) throws(Errno) {
        let memory = try PixelMemory(byteCount: I420Planes.byteCount(size))
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
    fileprivate func release(_ index: Int) {
        let memory = state.withLock { state -> PixelMemory? in
            let isLast = state.slots[index].users == 1 && state.latest?.slot != index
            if isLast && state.slots[index].isWipedWhenFree {
                // Still ours: it is wiped outside the lock.
                state.slots[index].isWipedWhenFree = false
                state.slots[index].isTouched = false
                state.slots[index].stale = .everything
                return state.slots[index].memory
            }
            state.slots[index].users -= 1
            return nil
        }
        guard let memory else { return }
        memory.wipe()
        release(index)
    }
}

extension FramePool.State {
    /// Makes a slot the writer's: the lowest free one of that size, else any free one, else the latest, if nobody holds it.
    mutating func beginWriting(_ size: PixelSize) -> (index: Int, isMapped: Bool, epoch: Int)? {
        counts.received += 1
        let held = latest?.slot
        var found = slots.indices.first { slots[$0].users == 0 && $0 != held && slots[$0].size == size && !slots[$0].isWipedWhenFree }
        found = found ?? slots.indices.first { slots[$0].users == 0 && $0 != held && !slots[$0].isWipedWhenFree }
        if found == nil, let held, slots[held].users == 0 {
            retire(asUnread: false)
            found = held
        }
        guard let index = found else {
            counts.dropped += 1
            return nil
        }
        counts.inFlight += 1
        slots[index].users = 1
        return (index, slots[index].size == size && slots[index].memory != nil, epoch)
    }

    /// The write came to nothing; what the slot holds is of no use.
    mutating func abandon(_ index: Int) {
        slots[index].users -= 1
        slots[index].stale = .everything
        counts.inFlight -= 1
        counts.dropped += 1
    }

    mutating func publish(_ index: Int, _ time: Instant, _ arrival: Instant, _ damage: Damage) -> UInt64 {
        let isSameSize = latest.map { slots[$0.slot].size == slots[index].size } ?? false
        let known = isSameSize ? damage : .everything
        retire(asUnread: false)
        lastSequence += 1
        latest = FramePool.Latest(slot: index, info: FrameInfo(sequence: lastSequence, time: time, arrival: arrival, damage: known))
        for other in slots.indices where other != index { slots[other].stale.merge(known) }
        slots[index].stale = .none
        slots[index].users -= 1
        for reader in readers.indices { readers[reader].damage.merge(known) }
        counts.lastFrameAt = arrival
        return lastSequence
    }

    /// The latest stops being that, and what became of it is counted.
    mutating func retire(asUnread: Bool) {
        guard let old = latest else { return }
        latest = nil
        if old.isTaken { return }
        counts.inFlight -= 1
        if !asUnread && isWanted(by: .now) { counts.coalesced += 1 } else { counts.unread += 1 }
    }

    func isWanted(by now: Instant) -> Bool { readers.contains { $0.nextDue <= now } }
}

/// The right to read one frame of a pool. While it lives, nobody writes to the frame; its end gives the slot back.
public struct FrameLease: ~Copyable, Sendable {
    /// Which frame it is.
    public let info: FrameInfo
    private let pool: FramePool
    private let slot: Int
    private let planes: FramePool.Planes

    fileprivate init(pool: FramePool, slot: Int, info: FrameInfo, planes: FramePool.Planes) {
        (self.pool, self.slot, self.info, self.planes) = (pool, slot, info, planes)
    }

    deinit { pool.release(slot) }

    /// Luma samples.
    public var size: PixelSize { planes.size }

    /// Hands the planes to `body`, to read only.
    ///
    /// Ownership: valid inside `body`; a library that keeps pointers to them may use them for as long as the lease lives.
    public borrowing func withPlanes<Result, Failure: Error>(_ body: (I420Planes) throws(Failure) -> Result) throws(Failure) -> Result {
        try body(planes.view)
    }
}
