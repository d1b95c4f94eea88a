// SPDX-License-Identifier: MIT
import Encoding
public import Frames
public import Loop
import Sound

/// The streams of all tracks, and the threads behind them: one per encoding in use, and one that writes.
///
/// No thread exists before the first stream.
///
/// Thread: the main loop's.
public final class Streams {
    let loop: EventLoop
    private let log = Log("streams")
    private var writer: (thread: LoopThread, commands: Inbox<WriterCommand>)?
    private let reports: Inbox<WriterReport>
    private let stopped: Inbox<EncodingID>
    private var owners: [StreamID: (stream: ReaderStream, track: TrackStreams)] = [:]
    /// Encoders that were told to stop and have not answered.
    private var stopping: [EncodingID: Encoder] = [:]
    private var running: [EncodingID: Encoder] = [:]
    /// Encodings without a reader, oldest first, which wait for one that comes back: a view that is made again costs no new encoder.
    private var resting: [(group: EncodingGroup, track: TrackStreams, timer: Timer)] = []
    /// How long they wait.
    static let grace = Duration.seconds(2)
    /// Which tracks get encodings when there are few left.
    public enum Precedence: Sendable {
        /// They leave half of all to others.
        case last
        case usual
        /// They get theirs also when other tracks have used up all that there are.
        case first

        /// The most encodings of all tracks together, beside which one may begin.
        var greatestEncodingCount: Int {
            switch self {
            case .last: 16
            case .usual: 32
            case .first: 32 + TrackStreams.greatestEncodingCount
            }
        }
    }
    private var lastStream = 0
    private var lastEncoding = 0
    private var lastTrack = 0
    private(set) var isShutDown = false

    /// - Parameter loop: the main loop, where all events come.
    public init(on loop: EventLoop) {
        self.loop = loop
        final class Receiver { weak var streams: Streams? }
        let receiver = Receiver()
        reports = loop.makeInbox { receiver.streams?.handle($0) }
        stopped = loop.makeInbox { receiver.streams?.noteStop($0) }
        receiver.streams = self
    }

    /// The streams of one more track.
    ///
    /// - Parameter pool: where the track's pictures are.
    ///
    /// - Parameter precedence: whether it gets encodings when there are few left.
    public func openTrack(pool: FramePool, rates: StreamRates, precedence: Precedence = .usual) -> TrackStreams {
        lastTrack += 1
        return TrackStreams(self, TrackID(number: lastTrack), pool: pool, rates: rates, precedence: precedence)
    }

    /// Ends all streams at once and all threads. For a clean end, call ``TrackStreams/close(_:)`` of each track first and wait for it.
    ///
    /// It waits for pictures that are being encoded. No event comes afterwards.
    public func shutdown() {
        isShutDown = true
        for owner in owners.values { owner.stream.abandon() }
        owners = [:]
        for entry in resting { entry.timer.cancel() }
        resting = []
        for encoder in running.values { encoder.stop() }
        for encoder in Array(running.values) + Array(stopping.values) { encoder.join() }
        (running, stopping) = ([:], [:])
        writer?.thread.stop()
        writer = nil
    }

    // MARK: - For tracks

    func makeStreamID() -> StreamID {
        lastStream += 1
        return StreamID(number: lastStream)
    }

    func register(_ stream: ReaderStream, of track: TrackStreams) { owners[stream.id] = (stream, track) }

    /// Starts an encoder, which does nothing until a stream was added.
    func start(
        _ options: EncodingOptions, followed: StreamOptions.Followed, of track: TrackID, hasSound: Bool, pool: FramePool,
        showsPlaceholder: Bool, precedence: Precedence
    ) throws(StreamsError) -> EncodingGroup {
        let limit = precedence.greatestEncodingCount
        if running.count >= limit { dropResting() }
        guard running.count < limit else { throw .encodingLimit(limit) }
        let stopped = self.stopped
        do throws(Errno) {
            let writer = try startedWriter()
            lastEncoding += 1
            let id = EncodingID(number: lastEncoding)
            let encoder = try Encoder.start(number: lastEncoding, pool: pool, options: options, showsPlaceholder: showsPlaceholder) {
                event in
                if case .stopped = event { stopped.send(id) } else { writer.send(.encoded(id, event)) }
            }
            running[id] = encoder
            writer.send(.addEncoding(id, encoder, pool, options.codec, of: track))
            writer.send(.setSound(track, hasSound))
            return EncodingGroup(id, encoder, options, followed: followed, writer: writer)
        } catch {
            log.error("no thread for a stream: \(error)")
            throw .outOfResources(error)
        }
    }

    /// Says whether streams of a track that begin have a place for sound. A track without an encoding says so when it gets one.
    func setSound(_ track: TrackID, _ hasSound: Bool) { writer?.commands.send(.setSound(track, hasSound)) }

    /// Where the sound of a track goes; nil when nobody reads.
    func soundInlet(_ track: TrackID, _ gate: SoundGate) -> (@Sendable (SoundPacket) -> Void)? {
        guard let commands = writer?.commands else { return nil }
        return { commands.send(.sound(track, $0, gate)) }
    }

    /// Ends an encoder that has no streams any more, without waiting for it.
    func stop(_ group: EncodingGroup) {
        guard let encoder = running.removeValue(forKey: group.id) else { return }
        stopping[group.id] = encoder
        group.send(.removeEncoding(group.id))
        encoder.stop()
    }

    /// Keeps an encoder that has no streams any more for a while, suspended.
    func rest(_ group: EncodingGroup, of track: TrackStreams) {
        let timer = loop.after(Streams.grace) { [unowned self, unowned group] in
            resting.removeAll { $0.group === group }
            track.drop(group)
        }
        resting.append((group, track, timer))
    }

    /// Takes an encoder out of its rest: it has a stream again.
    func wake(_ group: EncodingGroup) {
        for entry in resting where entry.group === group { entry.timer.cancel() }
        resting.removeAll { $0.group === group }
    }

    /// Ends the encoder that has rested longest, of one track or of all: another one takes its place.
    func dropResting(of track: TrackStreams? = nil) {
        guard let index = resting.firstIndex(where: { track == nil || $0.track === track }) else { return }
        let entry = resting.remove(at: index)
        entry.timer.cancel()
        entry.track.drop(entry.group)
    }

    /// Ends the encoders of one track that rest.
    func dropAllResting(of track: TrackStreams) {
        while resting.contains(where: { $0.track === track }) { dropResting(of: track) }
    }

    private func startedWriter() throws(Errno) -> Inbox<WriterCommand> {
        if let writer { return writer.commands }
        let reports = self.reports
        let started = try LoopThread.start(name: "writer") { loop in
            let writer = StreamWriter(loop, reports: reports)
            return loop.makeInbox { (command: WriterCommand) in writer.handle(command) }
        }
        writer = (started.thread, started.result)
        return started.result
    }

    private func noteStop(_ id: EncodingID) {
        stopping.removeValue(forKey: id)?.join()
        // Once for all that end together.
        if stopping.isEmpty { Environment.returnFreedPages() }
    }

    private func handle(_ report: WriterReport) {
        switch report {
        case .started(let id, let size, let epoch, let carriesSound):
            guard let owner = owners[id] else { return }
            log.debug("stream \(id.number) began: \(size)")
            owner.stream.noteStart(size, epoch: epoch, carriesSound: carriesSound)
        case .ended(let id, let reason):
            guard let owner = owners.removeValue(forKey: id) else { return }
            log.debug("stream \(id.number) ended: \(reason)")
            owner.track.noteEnd(of: owner.stream, reason)
        }
    }
}
