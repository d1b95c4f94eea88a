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

    func append(_ delivery: Delivery) { queue.append(delivery, behind: muxer.prefix(of: delivery.packet)) }

    func carrySound(_ carriesSound: Bool) { muxer.carrySound(carriesSound) }

    func append(_ sound: SoundPacket) {
        guard queue.byteCount + sound.bytes.count <= Output.greatestQueue, let prefix = muxer.prefix(of: sound) else { return }
        queue.append(sound, behind: prefix)
    }

    func write(_ finished: (Delivery, _ isKeyFrame: Bool) -> Void) -> (outcome: WriteOutcome, byteCount: Int) {
        queue.write(to: descriptor.raw) { finished($0, $0.packet.isKeyFrame) }
    }
}
