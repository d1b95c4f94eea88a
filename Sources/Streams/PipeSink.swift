// SPDX-License-Identifier: MIT
import Encoding
import Loop
import Sound

/// A stream of bytes into a pipe.
final class PipeSink: Sink {
    private let descriptor: FileDescriptor
    private let isRaw: Bool
    private var muxer: any Muxer
    private var queue = PacketQueue()
    /// Whether the reader has begun to get the first packet.
    private var hasBegun = false

    init(_ descriptor: FileDescriptor, _ muxer: any Muxer, isRaw: Bool) {
        (self.descriptor, self.muxer, self.isRaw) = (descriptor, muxer, isRaw)
    }

    var queuedBytes: Int { queue.byteCount }
    var isDrained: Bool { queue.isEmpty }
    var isReady: Bool { isDrained }
    var readsReplies: Bool { false }

    func note(_ packet: Packet) {}

    /// One picture at a time of raw ones; of others as many as fit, and one of any size.
    func hasRoom(for packet: Packet) -> Bool {
        queue.isEmpty || !isRaw && queue.byteCount + packet.bytes.count <= Output.greatestQueue
    }

    func append(_ delivery: Delivery) { queue.append(.picture(delivery)) }

    func carrySound(_ carriesSound: Bool) { muxer.carrySound(carriesSound) }

    func append(_ sound: SoundPacket) {
        // Whether it has a place in the stream: nothing is said to the muxer itself before it is written.
        var copy = muxer
        guard queue.byteCount + sound.bytes.count <= Output.greatestQueue, copy.prefix(of: sound) != nil else { return }
        queue.append(.sound(sound))
    }

    /// Its first picture stays: the time of that one was told as the stream's.
    func drop() -> Int { hasBegun ? queue.drop() : 0 }

    func write(_ finished: (Delivery, _ isKeyFrame: Bool) -> Void) -> (outcome: WriteOutcome, byteCount: Int) {
        let (outcome, byteCount) = queue.writeFirst(to: descriptor.raw, &muxer) { finished($0, $0.packet.isKeyFrame) }
        hasBegun = hasBegun || byteCount > 0
        return (outcome, byteCount)
    }
}
