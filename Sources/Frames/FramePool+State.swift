// SPDX-License-Identifier: MIT
import Loop

/// What the pool's lock guards. Nothing here allocates, except that readers come.
extension FramePool {
    struct Reader {
        var id: Int
        var bell: FileDescriptor?
        let followsCursor: Bool
        var nextDue = Instant(nanoseconds: .min)
        var lastTaken: UInt64 = 0
        /// What changed since this reader last took a frame.
        var damage = Damage.everything
        /// Whether the bell was rung since this reader last took a frame.
        var isRung = false
        /// The same for the pointer.
        var isRungForCursor = false
        /// The pointer that this reader took last.
        var lastCursor: UInt64 = 0

        /// Whether it wants that pointer and does not have it.
        func lacks(_ cursor: Cursor) -> Bool { followsCursor && lastCursor != cursor.serial }
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

        func fits(_ size: PixelSize) -> Bool { (memory?.byteCount ?? 0) >= I420Planes.byteCount(size) }

        /// Uses the same memory for another size.
        mutating func rekey(_ size: PixelSize) {
            if size != self.size { (self.size, stale) = (size, .everything) }
        }
    }

    struct Latest {
        var slot: Int
        var info: FrameInfo
        /// Frames that it stands for in the counters: one, or those of all inputs that it was composed of.
        var frames: UInt64
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
        /// Of a writer that found no slot.
        var freeBell: FileDescriptor?
        var cursor = Cursor()
        var cursorBitmap: PixelMemory?
    }

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
}

extension FramePool.State {
    /// Makes a slot the writer's: the lowest free one of that size, else any free one, else the latest, if nobody holds it.
    ///
    /// - Parameter isOwn: whether its frames are counted as received here, and not by an input.
    mutating func beginWriting(_ size: PixelSize, _ frames: UInt64, isOwn: Bool) -> (index: Int, isMapped: Bool, epoch: Int)? {
        if isOwn { counts.received += frames }
        let held = latest?.slot
        var found: Int?
        // Plain loops here and below: in a debug build the algorithms of collections allocate, and so do their iterators.
        for index in slots.indices where slots[index].users == 0 && index != held && !slots[index].isWipedWhenFree {
            if slots[index].fits(size) {
                found = index
                break
            }
            found = found ?? index
        }
        if found == nil, let held, slots[held].users == 0 {
            retire(asUnread: false)
            found = held
        }
        guard let index = found else {
            counts.dropped += frames
            return nil
        }
        counts.inFlight += frames
        slots[index].users = 1
        guard slots[index].fits(size) else { return (index, false, epoch) }
        slots[index].rekey(size)
        return (index, true, epoch)
    }

    /// The slot that is written, what in it is out of date, and the picture to compare with: when somebody reads, and the producer names half of
    /// the picture or more, as those do who do not know better.
    mutating func lookUp(
        _ index: Int, _ damage: Damage, compares: Bool
    ) -> (target: FramePool.Planes?, stale: Damage, previous: (slot: Int, planes: FramePool.Planes)?) {
        slots[index].isTouched = true
        var stale = slots[index].stale
        stale.merge(damage)
        let target = FramePool.Planes(slots[index])
        let size = slots[index].size
        guard compares, damage.area(in: size) * 2 >= size.width * size.height, !readers.isEmpty, let latest,
            slots[latest.slot].size == size,
            let planes = FramePool.Planes(slots[latest.slot])
        else { return (target, stale, nil) }
        slots[latest.slot].users += 1
        return (target, stale, (latest.slot, planes))
    }

    /// The write came to nothing; what the slot holds is of no use.
    mutating func abandon(_ index: Int, _ frames: UInt64) {
        slots[index].stale = .everything
        counts.inFlight -= frames
        counts.dropped += frames
    }

    mutating func publish(_ index: Int, _ time: Instant, _ arrival: Instant, _ damage: Damage, _ frames: UInt64) -> UInt64 {
        let isSameSize = latest.map { slots[$0.slot].size == slots[index].size } ?? false
        let known = isSameSize ? damage : .everything
        retire(asUnread: false)
        lastSequence += 1
        let info = FrameInfo(sequence: lastSequence, time: time, arrival: arrival, damage: known)
        latest = FramePool.Latest(slot: index, info: info, frames: frames)
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
        counts.inFlight -= old.frames
        if !asUnread && isWanted(by: .now) { counts.coalesced += old.frames } else { counts.unread += old.frames }
    }

    func isWanted(by now: Instant) -> Bool {
        for index in readers.indices where readers[index].nextDue <= now { return true }
        return false
    }

    /// Where a reader is; nil when it left.
    func index(of reader: FramePool.ReaderID) -> Int? {
        for index in readers.indices where readers[index].id == reader.number { return index }
        return nil
    }
}
