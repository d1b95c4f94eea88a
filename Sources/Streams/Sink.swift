// SPDX-License-Identifier: MIT
import Encoding
import Sound

/// How a write ended.
enum WriteOutcome: Equatable {
    /// Everything is written.
    case drained
    /// The reader has to read first.
    case full
    /// Memory or descriptors have to become free, and nothing tells when: it is to be tried again after a while.
    case later
    /// Nobody will ever read.
    case readerGone
    /// There is no memory or descriptor for what the reader must have; in words.
    case failed(String)
}

/// What takes one stream's packets to its reader, without ever waiting for it.
///
/// Thread: the writer's.
protocol Sink: AnyObject {
    /// Bytes that wait for the reader.
    var queuedBytes: Int { get }
    /// Whether all that was appended is written.
    var isDrained: Bool { get }
    /// Whether a raw picture would be taken now.
    var isReady: Bool { get }
    /// Whether the reader has something to say.
    var readsReplies: Bool { get }

    /// Notes a packet of the encoding, whether it is for this reader or not. Each comes here first, in order.
    func note(_ packet: Packet)
    /// Whether the reader can have this packet.
    func hasRoom(for packet: Packet) -> Bool
    func append(_ delivery: Delivery)
    /// Says whether sound comes with the pictures, before the first of them.
    func carrySound(_ carriesSound: Bool)
    /// Queues a packet of sound, where the stream has a place and the queue has room for it.
    func append(_ sound: SoundPacket)
    /// Drops what waits, but for what the reader has begun to get.
    ///
    /// - Returns: how many of it are pictures.
    func drop() -> Int
    /// Writes of what waits at least the first that goes without waiting.
    ///
    /// - Parameter finished: called for each packet that is written in full now.
    /// - Returns: how it ended, and how many bytes were written.
    func write(_ finished: (Delivery, _ isKeyFrame: Bool) -> Void) -> (outcome: WriteOutcome, byteCount: Int)
}
