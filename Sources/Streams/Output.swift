// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop

/// Names a stream for as long as the program runs.
struct StreamID: Hashable, Sendable {
    let number: Int
}

/// Names an encoding for as long as the program runs.
struct EncodingID: Hashable, Sendable {
    let number: Int
}

/// One stream as its writer sees it: what waits for the reader, and what the reader must have next.
///
/// Thread: the writer's.
final class Output {
    /// Bytes that may wait for a reader.
    static let greatestQueue = 4 << 20

    let id: StreamID
    let encoding: EncodingID
    private let descriptor: FileDescriptor
    private let isRaw: Bool
    private var muxer: any Muxer
    private let counters: StreamCounters
    private var queue = PacketQueue()
    var watch: Watch?
    /// Ends it when its reader does not read.
    var deadline: Timer?

    private(set) var hasStarted = false
    private(set) var isPaused: Bool
    /// Whether it lacks what came before: a key frame must be next, or, of raw pictures, it has not had the one that is shown.
    private(set) var isBehind = true
    /// It ends when this repetition was answered, ...
    var lastRequest: UInt64?
    /// ... and is written.
    var isClosing = false

    init(_ request: WriterCommand.Addition) {
        (id, encoding, descriptor, counters) = (request.id, request.encoding, request.descriptor, request.counters)
        isRaw = request.options.encoding == .raw
        muxer = request.options.makeMuxer()
        isPaused = request.isPaused
    }

    var rawDescriptor: Int32 { descriptor.raw }
    var isDrained: Bool { queue.isEmpty }
    /// Whether it would take a key frame now and has none coming.
    var needsKeyFrame: Bool { !isRaw && isBehind && !isPaused && queue.byteCount <= Output.greatestQueue / 2 }

    func setPaused(_ isPaused: Bool) {
        self.isPaused = isPaused
        if isPaused { isBehind = true }
    }

    /// Queues a packet, unless this reader cannot have it.
    ///
    /// - Returns: whether it was queued.
    func accept(_ delivery: Delivery) -> Bool {
        let packet = delivery.packet
        if isPaused || isClosing {
            isBehind = true
            return false
        }
        if packet.isPlaceholder && !hasStarted { return false }
        if packet.isRepetition && !(isRaw ? isBehind || lastRequest != nil : lastRequest != nil && !isBehind) { return false }
        guard isBehind ? packet.isKeyFrame : true, hasRoom(for: packet) else {
            isBehind = true
            if hasStarted && !packet.isRepetition { counters.addCoalesced() }
            return false
        }
        isBehind = false
        hasStarted = true
        queue.append(delivery, behind: muxer.prefix(of: packet))
        return true
    }

    /// Writes what the pipe takes.
    func write() -> PacketQueue.Outcome {
        let (outcome, byteCount) = queue.write(to: descriptor.raw) { delivery in
            counters.addSent(isKeyFrame: delivery.packet.isKeyFrame)
            delivery.arrive()
        }
        counters.addBytes(byteCount)
        counters.setQueuedBytes(queue.byteCount)
        watch?.interest = outcome == .full ? .write : []
        return outcome
    }

    /// One picture at a time of raw ones; of others as many as fit, and one of any size.
    private func hasRoom(for packet: Packet) -> Bool {
        queue.isEmpty || !isRaw && queue.byteCount + packet.bytes.count <= Output.greatestQueue
    }
}
