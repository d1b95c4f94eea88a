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

/// The packets that wait for one reader. Whole packets only: one that it has begun to get is written to its end, the others may be dropped.
struct PacketQueue {
    enum Entry {
        case picture(Delivery)
        case sound(SoundPacket)

        var bytes: [UInt8] {
            switch self {
            case .picture(let delivery): delivery.packet.bytes
            case .sound(let packet): packet.bytes
            }
        }
    }

    private var entries: [Entry] = []
    /// The entries before this one are written.
    private var head = 0
    /// What goes before the bytes of the first entry, and how much of all is written. Nil before a byte of it is.
    private var begun: (prefix: [UInt8], written: Int)?
    /// Bytes that are not written yet, those aside that a muxer will put before packets that the reader has not begun to get.
    private(set) var byteCount = 0

    var isEmpty: Bool { head == entries.count }

    mutating func append(_ entry: Entry) {
        entries.append(entry)
        byteCount += entry.bytes.count
    }

    /// Drops all that the reader has not begun to get.
    ///
    /// - Returns: how many of it are pictures.
    mutating func drop() -> Int {
        let kept = begun == nil ? head : head + 1
        var pictureCount = 0
        for entry in entries[kept...] {
            byteCount -= entry.bytes.count
            if case .picture = entry { pictureCount += 1 }
        }
        entries.removeSubrange(kept...)
        if isEmpty { (entries, head) = ([], 0) }
        return pictureCount
    }

    /// Writes as much of the first packet as goes without waiting.
    ///
    /// - Parameters:
    ///   - muxer: packs it. It hears of what is written, and of nothing that is dropped: so a cluster or a beginning is never missing.
    ///   - finished: called when it is written in full and shows a picture.
    /// - Returns: how it ended, and how many bytes were written.
    mutating func writeFirst(
        to descriptor: Int32, _ muxer: inout any Muxer, _ finished: (Delivery) -> Void
    ) -> (outcome: WriteOutcome, byteCount: Int) {
        guard !isEmpty else { return (.drained, 0) }
        let entry = entries[head]
        // Over a copy: nothing has been said while nothing is written.
        var after = muxer
        let next = begun ?? PacketQueue.prefix(of: entry, &after).map { ($0, 0) }
        guard let (prefix, written) = next else {
            byteCount -= entry.bytes.count
            removeHead()
            return (.drained, 0)
        }
        let payload = entry.bytes
        var count = PacketQueue.write(prefix, payload, from: written, to: descriptor)
        while count < 0 && errno == EINTR { count = PacketQueue.write(prefix, payload, from: written, to: descriptor) }
        if count < 0 { return (errno == EAGAIN ? .full : .readerGone, 0) }
        if begun == nil {
            muxer = after
            byteCount += prefix.count
        }
        byteCount -= count
        guard written + count == prefix.count + payload.count else {
            begun = (prefix, written + count)
            return (.full, count)
        }
        begun = nil
        if case .picture(let delivery) = entry { finished(delivery) }
        removeHead()
        return (.drained, count)
    }

    private static func prefix(of entry: Entry, _ muxer: inout any Muxer) -> [UInt8]? {
        switch entry {
        case .picture(let delivery): muxer.prefix(of: delivery.packet)
        case .sound(let packet): muxer.prefix(of: packet)
        }
    }

    private mutating func removeHead() {
        let byteCount = entries[head].bytes.count
        head += 1
        // Packets go as soon as they are written: the array is moved up before half of it is dead.
        if head == entries.count {
            entries.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 16 || byteCount > 65_536 {
            entries.removeFirst(head)
            head = 0
        }
    }

    private static func write(_ prefix: [UInt8], _ payload: [UInt8], from written: Int, to descriptor: Int32) -> Int {
        prefix.withUnsafeBytes { prefix in
            payload.withUnsafeBytes { payload in
                let prefixDone = min(written, prefix.count)
                let payloadDone = written - prefixDone
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
