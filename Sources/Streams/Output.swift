// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Sound

/// Names a stream for as long as the program runs.
struct StreamID: Hashable, Sendable {
    let number: Int
}

/// Names a track for as long as the program runs.
struct TrackID: Hashable, Sendable {
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
    /// How soon it is tried for the first time whether memory or descriptors have become free, and how often at last.
    static let leastRetryDelay = Duration.milliseconds(10)
    static let greatestRetryDelay = Duration.seconds(1)

    let id: StreamID
    let encoding: EncodingID
    private let descriptor: FileDescriptor
    private let isRaw: Bool
    private let counters: StreamCounters
    private let encoder: Encoder
    private let sink: any Sink
    /// The same, of a stream whose pictures are in shared memory.
    let frames: FrameSink?
    var watch: Watch?
    /// Ends it when its reader does not read.
    var deadline: Timer?
    /// Takes all slots back from a reader that holds them for too long.
    var patience: Timer?
    /// Tells when its reader has read of what it was sent: there while something is kept back until then.
    var reading: (bell: ReadingBell, watch: Watch)?
    /// Tries again what there was no memory or descriptor for, ...
    var retry: Timer?
    /// ... less and less often.
    var retryDelay = Output.leastRetryDelay

    private(set) var hasStarted = false
    /// Whether its track has sound; of one that has started, whether it had then.
    private(set) var carriesSound = false
    private(set) var isPaused: Bool
    /// Whether it lacks what came before: a key frame must be next, or, of raw pictures, it has not had the one that is shown.
    private(set) var isBehind = true
    /// Whether what comes next begins with a key frame anyway.
    private var hasKeyFrameComing = false
    /// What of its encoding may be sent, as it was last seen: nothing waits that is not.
    private var showable: Showable
    /// It ends when this repetition was answered, ...
    var lastRequest: UInt64?
    /// Whether that repetition is the next one to come.
    var awaitsFarewell = false
    /// ... and is written.
    var isClosing = false

    /// - Parameters:
    ///   - encoder: what makes its packets.
    ///   - pool: where the pictures come from.
    init(_ request: WriterCommand.Addition, _ encoder: Encoder, _ pool: FramePool) {
        (self.encoder, showable) = (encoder, encoder.showable)
        (id, encoding, descriptor, counters) = (request.id, request.encoding, request.descriptor, request.counters)
        isRaw = request.options.encoding == .raw
        if let muxer = request.options.makeMuxer() {
            (sink, frames) = (PipeSink(request.descriptor, muxer, isRaw: isRaw), nil)
        } else {
            let frames = FrameSink(request.descriptor, pool, request.counters)
            (sink, self.frames) = (frames, frames)
        }
        isPaused = request.isPaused
    }

    var rawDescriptor: Int32 { descriptor.raw }
    func makeReadingBell() throws(Errno) -> ReadingBell { try ReadingBell(descriptor) }
    /// What its descriptor is watched for while nothing waits to be written.
    var interest: Readiness { sink.readsReplies ? .read : [] }
    var isDrained: Bool { sink.isDrained }
    /// Whether a raw picture would be taken now.
    var isReady: Bool { !isPaused && !isClosing && sink.isReady }
    /// Whether something is kept back until the reader has read what it was sent.
    var awaitsReading: Bool { !isPaused && !isClosing && frames?.awaitsReading == true }
    /// Whether it would take a key frame now and has none coming.
    var needsKeyFrame: Bool {
        !isRaw && isBehind && !hasKeyFrameComing && !isPaused && sink.queuedBytes <= Output.greatestQueue / 2
    }

    func setPaused(_ isPaused: Bool) {
        self.isPaused = isPaused
        guard isPaused else { return }
        drop()
        isBehind = true
        frames?.forget()
    }

    /// Has the picture that is shown come again, whole.
    func refresh() {
        isBehind = true
        frames?.refresh()
    }

    /// Drops what waits, but for what the reader has begun to get.
    private func drop() {
        let count = sink.drop()
        guard count > 0 else { return }
        isBehind = true
        counters.addCoalesced(UInt64(count))
        counters.setQueuedBytes(sink.queuedBytes)
    }

    /// Drops what waits, when something was hidden since it came: the reader goes on with what may be seen.
    private func dropHidden() {
        let present = encoder.showable
        guard present != showable else { return }
        if present.period != showable.period { hasKeyFrameComing = true }
        showable = present
        drop()
    }

    /// Notes a packet that must not be seen any more. It is not for want of reading that this reader does not get it.
    func skip(_ packet: Packet) {
        sink.note(packet)
        if !packet.isRepetition { (isBehind, hasKeyFrameComing) = (true, true) }
    }

    /// Queues a packet, unless this reader cannot have it.
    ///
    /// - Returns: whether it was queued.
    func accept(_ delivery: Delivery) -> Bool {
        let packet = delivery.packet
        dropHidden()
        if packet.isKeyFrame { hasKeyFrameComing = false }
        sink.note(packet)
        if isPaused || isClosing {
            isBehind = true
            return false
        }
        if packet.isPlaceholder && !hasStarted { return false }
        let isOfUse = isRaw && !packet.isFarewell ? isBehind || lastRequest != nil : awaitsFarewell && !isBehind
        if packet.isRepetition && !isOfUse { return false }
        guard isBehind ? packet.isKeyFrame : true, sink.hasRoom(for: packet) else {
            isBehind = true
            // A reader of frames is asked at another time what it has missed.
            if hasStarted && !packet.isRepetition && frames == nil { counters.addCoalesced(1) }
            return false
        }
        isBehind = false
        hasStarted = true
        sink.append(delivery)
        return true
    }

    /// Says whether the track has sound, before the stream begins.
    func carrySound(_ carriesSound: Bool) {
        guard !hasStarted else { return }
        self.carriesSound = carriesSound
        sink.carrySound(carriesSound)
    }

    /// Queues a packet of sound, if its gate lets it pass. A stream begins with a picture.
    func accept(_ sound: SoundPacket, _ gate: SoundGate) {
        // In this order: a gate is closed before pictures are hidden.
        dropHidden()
        if hasStarted, !isPaused, !isClosing, gate.lets(sound) { sink.append(sound) }
    }

    /// Writes what goes without waiting, of what may still be seen.
    func write() -> WriteOutcome {
        var (outcome, sum) = (WriteOutcome.drained, 0)
        repeat {
            dropHidden()
            let (ending, byteCount) = sink.write { delivery, isKeyFrame in
                counters.addSent(isKeyFrame: isKeyFrame)
                delivery.arrive()
            }
            outcome = ending
            sum += byteCount
        } while outcome == .drained && !isDrained
        counters.addBytes(sum)
        counters.setQueuedBytes(sink.queuedBytes)
        watch?.interest = outcome == .full ? interest.union(.write) : interest
        return outcome
    }

    /// Reads what the reader says.
    ///
    /// - Returns: whether it goes on.
    func readReplies() -> Bool {
        guard let frames else { return true }
        defer { counters.setQueuedBytes(frames.queuedBytes) }
        return frames.readReplies()
    }
}
