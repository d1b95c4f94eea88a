// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Glibc
import Loop
import Sound

/// What the main loop, and the encoders, tell the writer.
enum WriterCommand: Sendable {
    /// A new stream.
    struct Addition: Sendable {
        let id: StreamID
        let encoding: EncodingID
        let options: StreamOptions
        /// The writing end, non-blocking.
        let descriptor: FileDescriptor
        let counters: StreamCounters
        let isPaused: Bool
        /// Whether the encoder begins or resumes because of it, with a key frame.
        let hasKeyFrameComing: Bool
    }

    case addEncoding(EncodingID, Encoder, FramePool, Codec, of: TrackID)
    case removeEncoding(EncodingID)
    case add(Addition)
    case setPaused(StreamID, Bool, hasKeyFrameComing: Bool)
    case refresh(StreamID)
    /// What was sent must not be seen any more.
    case dropHidden(EncodingID)
    case finish(StreamID)
    case encoded(EncodingID, EncoderEvent)
    /// Whether the streams of a track that begin from now on have a place for sound.
    case setSound(TrackID, Bool)
    case sound(TrackID, SoundPacket, SoundGate)
}

/// What the writer tells the main loop.
enum WriterReport: Sendable {
    case started(StreamID, PixelSize, epoch: Instant, carriesSound: Bool)
    case ended(StreamID, StreamEnd)
}

/// What the writer's thread does: it gives each packet to the readers of its encoding, and waits for none of them.
final class StreamWriter {
    /// An encoding and the streams that it goes into.
    private final class Encoding {
        let encoder: Encoder
        let pool: FramePool
        let codec: Codec
        let track: TrackID
        var outputs: [Output] = []
        /// Repetitions of the last picture that were asked for, and of these answered.
        var (requested, answered): (UInt64, UInt64) = (0, 0)
        /// When a key frame was last asked for because of a reader that had not read.
        var lastRecovery = Instant(nanoseconds: 0)
        var recoveryTimer: Timer?
        var failure: StreamEnd?
        /// What readers that draw the pointer themselves must know of it.
        var cursor: (update: CursorUpdate, bitmap: SharedBitmap?)?

        init(_ encoder: Encoder, _ pool: FramePool, _ codec: Codec, _ track: TrackID) {
            (self.encoder, self.pool, self.codec, self.track) = (encoder, pool, codec, track)
        }
    }

    /// Readers that do not keep up cost the others a key frame at most this often.
    private static let recoveryInterval = Duration.seconds(2)
    /// How long a reader may hold all slots of its pool while there is a newer picture.
    private static let greatestHold = Duration.seconds(2)
    /// How long a stream that is to end waits for its reader.
    private static let greatestFarewell = Duration.milliseconds(800)

    /// Kept alive by its thread.
    private unowned let loop: EventLoop
    private let log = Log("streams")
    private let reports: Inbox<WriterReport>
    private var encodings: [EncodingID: Encoding] = [:]
    private var outputs: [StreamID: Output] = [:]
    private var tracksWithSound: Set<TrackID> = []

    init(_ loop: EventLoop, reports: Inbox<WriterReport>) {
        (self.loop, self.reports) = (loop, reports)
        // Writing into a pipe without a reader is an error that is handled, not a reason to die.
        var mask = sigset_t()
        sigemptyset(&mask)
        sigaddset(&mask, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &mask, nil)
    }

    deinit {
        // Of a stream that was not ended before the thread: these know its encoding, which has the stream.
        for output in outputs.values { (output.watch, output.patience) = (nil, nil) }
    }

    func handle(_ command: WriterCommand) {
        switch command {
        case .addEncoding(let id, let encoder, let pool, let codec, let track): encodings[id] = Encoding(encoder, pool, codec, track)
        case .removeEncoding(let id): encodings.removeValue(forKey: id)?.recoveryTimer?.cancel()
        case .add(let addition): add(addition)
        case .setPaused(let id, let isPaused, let hasKeyFrameComing): setPaused(id, isPaused, hasKeyFrameComing: hasKeyFrameComing)
        case .refresh(let id): refresh(id)
        case .dropHidden(let id): if let encoding = encodings[id] { for output in encoding.outputs { write(output, encoding) } }
        case .finish(let id): finish(id)
        case .encoded(let id, .packet(let packet)): if let encoding = encodings[id] { deliver(packet, encoding) }
        case .encoded(let id, .cursor(let update)): if let encoding = encodings[id] { show(update, encoding) }
        case .encoded(let id, .repeated(let request)): if let encoding = encodings[id] { noteRepetition(request, encoding) }
        case .encoded(let id, .failed(let error)): if let encoding = encodings[id] { fail(encoding, .failed(error.description)) }
        case .encoded(_, .stopped): break
        case .setSound(let track, let hasSound): setSound(track, hasSound)
        case .sound(let track, let packet, let gate): deliver(packet, track, gate)
        }
    }

    // MARK: - Streams

    private func add(_ addition: WriterCommand.Addition) {
        guard let encoding = encodings[addition.encoding] else { return }
        let output = Output(addition, encoding.encoder, encoding.pool)
        output.carrySound(tracksWithSound.contains(encoding.track))
        encoding.outputs.append(output)
        outputs[output.id] = output
        // A reader that goes away is an error, which is told without being asked for.
        output.watch = loop.watch(output.rawDescriptor, for: output.interest) { [unowned self, unowned output] readiness in
            if readiness.contains(.error) || readiness.contains(.hangUp) {
                end(output, .readerGone)
            } else {
                serve(output, encoding, readiness)
            }
        }
        if let cursor = encoding.cursor { output.frames?.show(cursor.update, cursor.bitmap) }
        if let failure = encoding.failure {
            end(output, failure)
        } else if encoding.codec == .raw || !addition.hasKeyFrameComing {
            ask(for: output, encoding)
        }
    }

    private func fail(_ encoding: Encoding, _ failure: StreamEnd) {
        encoding.failure = failure
        for output in encoding.outputs { end(output, failure) }
    }

    /// Asks the encoder for what a stream that lacks everything needs.
    private func ask(for output: Output, _ encoding: Encoding) {
        if output.isPaused { return }
        switch encoding.codec {
        case .video: encoding.encoder.requestKeyFrame()
        case .raw:
            if output.isReady {
                encoding.encoder.requestPicture(again: output.isBehind)
            } else {
                awaitRelease(output, encoding)
                awaitReading(output, encoding)
            }
        }
    }

    /// Has a reader that holds all its slots for too long go on without them, as soon as there is a newer picture.
    private func awaitRelease(_ output: Output, _ encoding: Encoding) {
        guard output.patience == nil, let frames = output.frames, frames.mayBeTakenBack else { return }
        output.patience = loop.after(StreamWriter.greatestHold) { [unowned self, unowned output, unowned frames] in
            output.patience = nil
            frames.takeBack()
            ask(for: output, encoding)
        }
    }

    /// Has a reader from which something is kept back go on when it has read. One that does not, because it was stopped say, wakes nobody.
    private func awaitReading(_ output: Output, _ encoding: Encoding) {
        guard output.reading == nil, output.awaitsReading else { return }
        do throws(Errno) {
            let bell = try output.makeReadingBell()
            let watch = loop.watch(bell.rawDescriptor, for: .read) { [unowned self, unowned output, unowned encoding] _ in
                // It may end in here.
                let output = output
                bell.silence()
                write(output, encoding)
                if !output.awaitsReading { forgetReading(of: output) }
            }
            output.reading = (bell, watch)
        } catch {
            retry(output, encoding)
        }
    }

    private func forgetReading(of output: Output) {
        output.reading?.watch.cancel()
        output.reading = nil
    }

    /// Has what there was no memory or descriptor for tried again after a while.
    private func retry(_ output: Output, _ encoding: Encoding) {
        guard output.retry == nil else { return }
        output.retry = loop.after(output.retryDelay) { [unowned self, unowned output, unowned encoding] in
            output.retry = nil
            write(output, encoding)
        }
        output.retryDelay = min(output.retryDelay * 2, Output.greatestRetryDelay)
    }

    private func setPaused(_ id: StreamID, _ isPaused: Bool, hasKeyFrameComing: Bool) {
        guard let output = outputs[id], output.isPaused != isPaused, let encoding = encodings[output.encoding] else { return }
        output.setPaused(isPaused)
        output.patience?.cancel()
        output.patience = nil
        if !isPaused, encoding.codec == .raw || !hasKeyFrameComing { ask(for: output, encoding) }
    }

    private func refresh(_ id: StreamID) {
        guard let output = outputs[id], let encoding = encodings[output.encoding] else { return }
        output.refresh()
        ask(for: output, encoding)
    }

    private func end(_ output: Output, _ reason: StreamEnd) {
        guard outputs.removeValue(forKey: output.id) != nil else { return }
        output.watch?.cancel()
        output.deadline?.cancel()
        output.patience?.cancel()
        output.retry?.cancel()
        forgetReading(of: output)
        encodings[output.encoding]?.outputs.removeAll { $0 === output }
        reports.send(.ended(output.id, reason))
    }

    // MARK: - Packets

    private func deliver(_ packet: Packet, _ encoding: Encoding) {
        let showable = encoding.encoder.showable
        guard showable.includes(packet) else { return skip(packet, encoding, isOver: packet.period != showable.period) }
        let delivery = Delivery(packet, from: encoding.pool)
        // Over a copy: a reader that is found to be gone is taken out.
        for output in encoding.outputs {
            let isFirst = !output.hasStarted
            guard output.accept(delivery) else {
                // It asked for a real picture, and this was the answer.
                if encoding.codec == .raw, packet.isPlaceholder, output.isReady { encoding.encoder.requestPicture(again: false) }
                awaitReading(output, encoding)
                continue
            }
            if isFirst { reports.send(.started(output.id, packet.size, epoch: packet.time, carriesSound: output.carriesSound)) }
            write(output, encoding)
        }
    }

    /// Gives a packet to nobody that must not be seen any more, and has what is shown instead come.
    ///
    /// - Parameter isOver: whether its period is: the next one begins with a key frame.
    private func skip(_ packet: Packet, _ encoding: Encoding, isOver: Bool) {
        for output in encoding.outputs { output.skip(packet) }
        if encoding.codec == .raw {
            for output in encoding.outputs { ask(for: output, encoding) }
        } else if !isOver && !packet.isRepetition {
            encoding.encoder.requestKeyFrame()
        }
    }

    private func setSound(_ track: TrackID, _ hasSound: Bool) {
        if hasSound { tracksWithSound.insert(track) } else { tracksWithSound.remove(track) }
        for encoding in encodings.values where encoding.track == track {
            for output in encoding.outputs { output.carrySound(hasSound) }
        }
    }

    /// A packet of sound waits for no picture, and no picture for it.
    private func deliver(_ sound: SoundPacket, _ track: TrackID, _ gate: SoundGate) {
        for encoding in encodings.values where encoding.track == track && encoding.codec != .raw {
            for output in encoding.outputs {
                output.accept(sound, gate)
                write(output, encoding)
            }
        }
    }

    private func show(_ update: CursorUpdate, _ encoding: Encoding) {
        var bitmap = encoding.cursor?.bitmap
        if let wanted = update.bitmap, bitmap?.bitmap.serial != wanted.serial {
            do throws(Errno) { bitmap = try SharedBitmap(wanted) } catch { return log.error("no memory for a pointer: \(error)") }
        }
        encoding.cursor = (update, bitmap)
        for output in encoding.outputs {
            guard let frames = output.frames else { continue }
            frames.show(update, bitmap)
            write(output, encoding)
        }
    }

    private func serve(_ output: Output, _ encoding: Encoding, _ readiness: Readiness) {
        if readiness.contains(.read) {
            guard output.readReplies() else { return end(output, .readerGone) }
            if output.isReady {
                output.patience?.cancel()
                output.patience = nil
            }
        }
        write(output, encoding)
    }

    private func write(_ output: Output, _ encoding: Encoding) {
        let outcome = output.write()
        switch outcome {
        case .readerGone:
            end(output, .readerGone)
            return
        case .failed(let reason):
            end(output, .failed(reason))
            return
        case .drained, .later:
            if output.isClosing && output.isDrained {
                end(output, .finished)
                return
            }
            awaitReading(output, encoding)
            if outcome == .later {
                retry(output, encoding)
            } else if output.retry == nil {
                output.retryDelay = Output.leastRetryDelay
            }
            if encoding.codec == .raw { ask(for: output, encoding) }
        case .full: break
        }
        if output.needsKeyFrame { recover(encoding) }
    }

    /// Asks for a key frame for readers that lost packets, now or when one was asked for long enough ago.
    private func recover(_ encoding: Encoding) {
        guard encoding.recoveryTimer == nil else { return }
        let due = encoding.lastRecovery + StreamWriter.recoveryInterval
        if due <= .now {
            encoding.lastRecovery = .now
            encoding.encoder.requestKeyFrame()
            return
        }
        encoding.recoveryTimer = loop.at(due) { [unowned self, unowned encoding] in
            encoding.recoveryTimer = nil
            if encoding.outputs.contains(where: { $0.needsKeyFrame && $0.hasStarted }) { recover(encoding) }
        }
    }

    // MARK: - The end of a stream

    private func finish(_ id: StreamID) {
        guard let output = outputs[id], output.deadline == nil, let encoding = encodings[output.encoding] else { return }
        output.deadline = loop.after(StreamWriter.greatestFarewell) { [unowned self, unowned output] in end(output, .finished) }
        guard output.hasStarted, !output.isPaused else {
            close(output)
            return
        }
        // One that waits for its turn shares the next repetition with all that come meanwhile.
        output.lastRequest = encoding.requested + 1
        if encoding.requested == encoding.answered { requestRepetition(encoding) }
    }

    private func requestRepetition(_ encoding: Encoding) {
        encoding.requested += 1
        let request = encoding.requested
        let leaving = encoding.outputs.filter { $0.lastRequest == request }
        for output in leaving { output.awaitsFarewell = true }
        let needsKeyFrame = leaving.contains(where: \.needsKeyFrame)
        encoding.encoder.repeatLastPicture(request, isKeyFrame: needsKeyFrame)
    }

    private func noteRepetition(_ request: UInt64, _ encoding: Encoding) {
        encoding.answered = request
        for output in encoding.outputs { if let last = output.lastRequest, last <= request { close(output) } }
        if encoding.outputs.contains(where: { $0.lastRequest != nil && !$0.isClosing }) { requestRepetition(encoding) }
    }

    /// Ends a stream as soon as all that waits is written.
    private func close(_ output: Output) {
        output.isClosing = true
        if output.isDrained { end(output, .finished) }
    }
}
