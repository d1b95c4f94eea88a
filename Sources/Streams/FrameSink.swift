// SPDX-License-Identifier: MIT
import CLinux
import Encoding
import Frames
import Glibc
import Loop
import Sound

/// Raw pictures in shared memory, announced by messages on a socket: the reader's side of it is `dbus/frames.md`.
///
/// The reader gives slots back by messages. One that holds all of them gets nothing, until it releases one or all are taken back: then it goes on in
/// new memory, and what it holds stays as it is. It always goes on in new memory after pictures were hidden or it was paused.
///
/// What it has not read yet is bounded: memory that lies in the socket is the agent's to pay for. No pool is made while it has not read of the one
/// before, and no bitmap of a pointer is sent while there is one that it has not read.
final class FrameSink: Sink {
    /// Messages that are read before others have their turn.
    private static let greatestReadCount = 16

    /// What the system counts for each message in a socket beside its bytes, at the very least.
    private static let leastOverhead = 256

    private let socket: FileDescriptor
    /// Where the pictures come from: counts those that this reader missed.
    private let source: FramePool
    private let counters: StreamCounters
    private var pool: SharedPool?
    private var poolCount: UInt32 = 0
    /// Pictures in pools of before that were not released.
    private var heldElsewhere = 0
    /// The newest pool, and the newest bitmap, that may lie unread in the socket: how much was sent since, at least, as the system counts it.
    private var (sentSincePool, sentSinceBitmap): (Int?, Int?)
    /// What changed since the picture that the reader got last.
    private var damage = Damage.everything
    private var sequence: UInt64 = 0
    /// Messages that are not sent yet.
    private var waiting: [(message: FrameMessage, delivery: Delivery?, isWhole: Bool)] = []
    /// The source's newest picture when the last slot was taken; nil while one is free.
    private var newestWhenFull: UInt64?
    /// Whether the reader has released anything since all was taken back from it: until then it is not done again.
    private var isAlive = true
    private var isTakenBack = false
    private var failure: WriteOutcome?
    /// The pointer that the reader is to know of; nil when it does.
    private var cursor: (update: CursorUpdate, bitmap: SharedBitmap?)?
    /// Whether it knows of a pointer, and the bitmap that it has.
    private var showsCursor = false
    private var knownBitmap: UInt64?

    init(_ socket: FileDescriptor, _ source: FramePool, _ counters: StreamCounters) {
        (self.socket, self.source, self.counters) = (socket, source, counters)
    }

    deinit {
        // A release that nobody reads would make the end an error for the reader.
        shutdown(socket.raw, Int32(SHUT_RDWR))
        var byte: UInt8 = 0
        while recv(socket.raw, &byte, 1, Int32(MSG_DONTWAIT)) > 0 {}
    }

    var queuedBytes: Int { (pool?.heldCount ?? 0) * (pool.map { I420Planes.byteCount($0.size) } ?? 0) }
    var isDrained: Bool { waiting.isEmpty }
    var readsReplies: Bool { true }

    var isReady: Bool { hasRoom(in: pool) }
    /// Whether something is kept back until the reader has read what it was sent.
    var awaitsReading: Bool {
        noteReading()
        return sentSincePool != nil && (isTakenBack || pool == nil) || sentSinceBitmap != nil && hasNewBitmap
    }
    /// Whether it holds all that it can have, and that may be taken back.
    var mayBeTakenBack: Bool { isAlive && !isTakenBack && pool?.hasFreeSlot == false }

    func hasRoom(for packet: Packet) -> Bool { hasRoom(in: pool?.period == packet.period ? pool : nil) }

    func note(_ packet: Packet) {
        // Also when it is not for this reader: nothing that was hidden since is to be sent.
        if let pool, pool.period != packet.period { forget() }
        damage.merge(packet.damage)
        pool?.note(packet.damage)
    }

    func carrySound(_ carriesSound: Bool) {}
    func append(_ sound: SoundPacket) {}

    func append(_ delivery: Delivery) {
        let packet = delivery.packet
        do throws(Errno) {
            let pool = try usablePool(for: packet)
            guard let slot = try pool.draw(packet) else { return }
            sequence += 1
            let frame = FrameMessage.frame(
                in: pool, slot: slot, sequence: sequence, time: packet.time, isPlaceholder: packet.isPlaceholder, damage: damage)
            waiting.append((frame, delivery, damage.isEverything))
            damage = .none
            if !pool.hasFreeSlot { newestWhenFull = source.newestSequence }
        } catch {
            failure = .failed("no memory for a picture of \(packet.size) pixels: \(error)")
        }
    }

    func write(_ finished: (Delivery, _ isKeyFrame: Bool) -> Void) -> (outcome: WriteOutcome, byteCount: Int) {
        var sum = 0
        while let next = waiting.first {
            do throws(Errno) {
                try next.message.send(to: socket.raw)
            } catch {
                return (FrameSink.outcome(of: error), sum)
            }
            noteSending(next.message)
            if next.message.descriptor != nil { sentSincePool = 0 }
            waiting.removeFirst()
            sum += next.message.bytes.count
            guard let delivery = next.delivery else { continue }
            sum += delivery.packet.bytes.count
            finished(delivery, next.isWhole)
        }
        if let failure { return (failure, sum) }
        // Nothing is said of a pointer before there is a picture for it. Where the reader does not read, only the newest place counts.
        guard let cursor, pool != nil else { return (.drained, sum) }
        let isNew = hasNewBitmap
        noteReading()
        if isNew && sentSinceBitmap != nil { return (.drained, sum) }
        self.cursor = nil
        if cursor.update.bitmap == nil && !showsCursor { return (.drained, sum) }
        let message = FrameMessage.cursor(cursor.update, isNew ? cursor.bitmap : nil)
        do throws(Errno) {
            try message.send(to: socket.raw)
        } catch {
            self.cursor = cursor
            return (FrameSink.outcome(of: error), sum)
        }
        showsCursor = cursor.update.bitmap != nil
        noteSending(message)
        if isNew { (knownBitmap, sentSinceBitmap) = (cursor.update.bitmap?.serial, 0) }
        return (.drained, sum + message.bytes.count)
    }

    /// Whether the pointer that the reader is to know of has a bitmap that it does not have.
    private var hasNewBitmap: Bool { cursor?.update.bitmap.map { $0.serial != knownBitmap } ?? false }

    /// Has the reader told of the pointer.
    func show(_ update: CursorUpdate, _ bitmap: SharedBitmap?) { cursor = (update, bitmap) }

    /// Reads what the reader says.
    ///
    /// - Returns: whether it goes on; not when it closed its side or said what makes no sense.
    func readReplies() -> Bool {
        for _ in 0..<FrameSink.greatestReadCount {
            switch receive() {
            case .nothing: return true
            case .release(let release): if !take(release) { return false }
            case .other: return false
            }
        }
        return true
    }

    /// Lets the reader go on in new memory at the next picture, although it holds all slots.
    func takeBack() {
        (isTakenBack, isAlive) = (true, false)
        noteReading()
        if sentSincePool == nil { noteRoom() }
    }

    /// Has the next picture be whole.
    func refresh() { damage = .everything }

    func drop() -> Int {
        let count = waiting.count { $0.delivery != nil }
        if !waiting.isEmpty { forget() }
        return count
    }

    /// Lets go of the memory: what comes later is in other memory.
    func forget() {
        if let pool {
            if waiting.contains(where: { $0.message.descriptor != nil }) {
                // The reader never hears of it: the next one has its number.
                poolCount -= 1
            } else {
                heldElsewhere += pool.heldCount
            }
        }
        pool = nil
        waiting = []
        newestWhenFull = nil
        isTakenBack = false
        damage = .everything
    }

    // MARK: - What is unread

    private static func outcome(of error: Errno) -> WriteOutcome {
        switch error.code {
        case EAGAIN: .full
        // Too many descriptors lie in sockets of this user, or there is no memory: no fault of this reader.
        case ETOOMANYREFS, EMFILE, ENOBUFS, ENOMEM: .later
        default: .readerGone
        }
    }

    private func noteSending(_ message: FrameMessage) {
        let count = message.bytes.count + FrameSink.leastOverhead
        if let sum = sentSincePool { sentSincePool = sum + count }
        if let sum = sentSinceBitmap { sentSinceBitmap = sum + count }
    }

    /// Finds out whether the reader has read the pool and the bitmap that it was sent last.
    ///
    /// Messages are read in order: with no more in the socket than was sent since, that one is not among it. (The system counts a byte of one that is
    /// being read until it has told of it.) What the reader says proves nothing: it can release what it has not read of.
    private func noteReading() {
        guard sentSincePool != nil || sentSinceBitmap != nil else { return }
        let unread = Int(clinux_unread_bytes(socket.raw))
        if let sum = sentSinceBitmap, unread < sum + FrameSink.leastOverhead { sentSinceBitmap = nil }
        guard let sum = sentSincePool, unread < sum + FrameSink.leastOverhead else { return }
        sentSincePool = nil
        if isTakenBack { noteRoom() }
    }

    // MARK: - Slots

    /// Whether a picture can be drawn in this pool, or, without one, in new memory.
    private func hasRoom(in pool: SharedPool?) -> Bool {
        guard waiting.isEmpty else { return false }
        if let pool, !isTakenBack { return pool.hasFreeSlot }
        noteReading()
        return sentSincePool == nil
    }

    /// The memory that the reader has, or new one, which it is told of.
    private func usablePool(for packet: Packet) throws(Errno) -> SharedPool {
        if let pool, pool.period == packet.period, !isTakenBack { return pool }
        let wasTakenBack = isTakenBack
        forget()
        poolCount += 1
        let made = try SharedPool(number: poolCount, size: packet.size, period: packet.period)
        pool = made
        waiting.append((.pool(made, isTakenBack: wasTakenBack), nil, false))
        return made
    }

    private func take(_ release: FrameRelease) -> Bool {
        if let pool, release.pool == pool.number {
            guard pool.release(release.slot) else { return false }
            isAlive = true
            isTakenBack = false
            noteRoom()
            return true
        }
        // The reader did not know yet that these are its own now.
        guard release.pool >= 1, release.pool <= poolCount, heldElsewhere > 0 else { return false }
        heldElsewhere -= 1
        return true
    }

    /// Counts what the source has shown while the reader could have nothing, but for the newest, which it can have now.
    private func noteRoom() {
        guard let before = newestWhenFull else { return }
        newestWhenFull = nil
        let missed = source.newestSequence - before
        guard missed > 1 else { return }
        sequence += missed - 1
        counters.addCoalesced(missed - 1)
    }

    private enum Reply {
        case nothing
        case release(FrameRelease)
        /// The end, or what no reader should say.
        case other
    }

    private func receive() -> Reply {
        withUnsafeTemporaryAllocation(byteCount: FrameRelease.byteCount, alignment: 4) { buffer in
            // The length is that of the whole message, also when it does not fit. Descriptors that came with it are closed by the kernel.
            let count = recv(socket.raw, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT | MSG_TRUNC))
            if count < 0 { return errno == EAGAIN || errno == EINTR ? .nothing : .other }
            guard count == buffer.count, let release = FrameRelease(UnsafeRawBufferPointer(buffer)) else { return .other }
            return .release(release)
        }
    }
}

extension FrameMessage {
    /// A descriptor beside a message, as `cmsg(3)` wants it.
    private struct Passed {
        var header = cmsghdr()
        var descriptor: Int32 = -1
    }

    /// Sends it whole, or not at all.
    ///
    /// - Throws: `EAGAIN` when the reader has to read first.
    fileprivate func send(to socket: Int32) throws(Errno) {
        var passed = Passed()
        passed.header.cmsg_len = MemoryLayout<Passed>.size
        passed.header.cmsg_level = SOL_SOCKET
        passed.header.cmsg_type = Int32(SCM_RIGHTS)
        passed.descriptor = descriptor?.raw ?? -1
        let code = bytes.withUnsafeBytes { bytes in
            withUnsafeMutablePointer(to: &passed) { passed -> Int32 in
                // SAFETY: sendmsg(2) only reads what the vector points to.
                var part = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var header = msghdr()
                    (header.msg_iov, header.msg_iovlen) = (part, 1)
                    if descriptor != nil {
                        (header.msg_control, header.msg_controllen) = (UnsafeMutableRawPointer(passed), MemoryLayout<Passed>.size)
                    }
                    while sendmsg(socket, &header, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 {
                        if errno != EINTR { return errno }
                    }
                    return 0
                }
            }
        }
        guard code == 0 else { throw Errno(code) }
    }
}
