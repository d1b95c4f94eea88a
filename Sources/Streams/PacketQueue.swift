// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Glibc
import Loop
import Sound

/// One packet on its way to all readers of an encoding.
final class Delivery {
    let packet: Packet
    private let pool: FramePool
    private var hasArrived = false

    init(_ packet: Packet, from pool: FramePool) { (self.packet, self.pool) = (packet, pool) }

    /// Notes that a reader has all of it: of the first, how long it took.
    func arrive() {
        if hasArrived { return }
        hasArrived = true
        if let origin = packet.origin { pool.noteLatency(Instant.now - origin) }
    }
}

/// The packets that wait for one reader, each behind the bytes that its muxer puts before it. Whole packets only.
struct PacketQueue {
    private struct Entry {
        let prefix: [UInt8]
        let payload: [UInt8]
        /// Of a picture.
        let delivery: Delivery?
        var written = 0
        var byteCount: Int { prefix.count + payload.count }
    }

    private var entries: [Entry] = []
    /// The entries before this one are written.
    private var head = 0
    /// Bytes that are not written yet.
    private(set) var byteCount = 0

    var isEmpty: Bool { head == entries.count }

    mutating func append(_ delivery: Delivery, behind prefix: [UInt8]) {
        append(Entry(prefix: prefix, payload: delivery.packet.bytes, delivery: delivery))
    }

    mutating func append(_ sound: SoundPacket, behind prefix: [UInt8]) {
        append(Entry(prefix: prefix, payload: sound.bytes, delivery: nil))
    }

    private mutating func append(_ entry: Entry) {
        entries.append(entry)
        byteCount += entry.byteCount
    }

    /// Writes as much as goes without waiting.
    ///
    /// - Parameter finished: called for each picture that is written in full now.
    /// - Returns: how it ended, and how many bytes were written.
    mutating func write(to descriptor: Int32, _ finished: (Delivery) -> Void) -> (outcome: WriteOutcome, byteCount: Int) {
        var sum = 0
        while head < entries.count {
            let count = PacketQueue.write(entries[head], to: descriptor)
            if count < 0 {
                let isFull = errno == EAGAIN
                if errno == EINTR { continue }
                return (isFull ? .full : .readerGone, sum)
            }
            sum += count
            byteCount -= count
            entries[head].written += count
            guard entries[head].written == entries[head].byteCount else { continue }
            if let delivery = entries[head].delivery { finished(delivery) }
            removeHead()
        }
        return (.drained, sum)
    }

    private mutating func removeHead() {
        head += 1
        // Packets go as soon as they are written: the array is moved up before half of it is dead.
        if head == entries.count {
            entries.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 16 || entries[head - 1].byteCount > 65_536 {
            entries.removeFirst(head)
            head = 0
        }
    }

    private static func write(_ entry: Entry, to descriptor: Int32) -> Int {
        entry.prefix.withUnsafeBytes { prefix in
            entry.payload.withUnsafeBytes { payload in
                let prefixDone = min(entry.written, prefix.count)
                let payloadDone = entry.written - prefixDone
                // SAFETY: writev(2) only reads what the vectors point to.
                var parts = [
                    iovec(
                        iov_base: UnsafeMutableRawPointer(mutating: prefix.baseAddress.map { $0 + prefixDone }),
                        iov_len: prefix.count - prefixDone),
                    iovec(
                        iov_base: UnsafeMutableRawPointer(mutating: payload.baseAddress.map { $0 + payloadDone }),
                        iov_len: payload.count - payloadDone),
                ]
                return writev(descriptor, &parts, 2)
            }
        }
    }
}
