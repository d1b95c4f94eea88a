// SPDX-License-Identifier: MIT
import CLinux
import Encoding
import Frames
public import Loop
public import Sound

/// All streams of one track.
///
/// Thread: the main loop's.
public final class TrackStreams {
    /// The most raw readers that a track has: each takes hundreds of megabytes a second.
    public static let greatestRawReaderCount = 8
    /// The most encodings of one track: each is a thread and, at 1080p, 75 MB.
    public static let greatestEncodingCount = 8

    /// Streams that have not ended, oldest first.
    public private(set) var readers: [ReaderStream] = []

    private let streams: Streams
    private let id: TrackID
    private let pool: FramePool
    /// Those without a stream rest: they end unless one comes soon.
    private(set) var groups: [EncodingGroup] = []
    private let precedence: Streams.Precedence
    private var isClosed = false
    /// Who waits for streams to end, and for which.
    private var waiting: [(streams: Set<StreamID>, completion: () -> Void)] = []

    init(_ streams: Streams, _ id: TrackID, pool: FramePool, rates: StreamRates, precedence: Streams.Precedence) {
        (self.streams, self.id, self.pool, self.rates, self.precedence) = (streams, id, pool, rates, precedence)
    }

    /// What streams follow that asked for nothing else. A change is for the running ones too, except for their size.
    public var rates: StreamRates {
        didSet { if rates != oldValue { for group in groups { group.follow(rates) } } }
    }

    /// Whether readers get the placeholder: the track is muted or not broadcasting. At first it is.
    ///
    /// Once true was set, no real picture is taken any more, and of those that wait for a slow reader it gets the rest of one that it has begun to get,
    /// and what lies in its pipe. After false, the first picture is the pool's newest: clear the pool
    /// when a broadcast ends, or that one's last picture is shown again.
    public var showsPlaceholder = true {
        didSet { if showsPlaceholder != oldValue { for group in groups { group.setPlaceholder(showsPlaceholder) } } }
    }

    /// Whether sound comes with the pictures. A stream that begins has a place for it then, in a format that can; one that has begun keeps what it has.
    public var hasSound = false {
        didSet { if hasSound != oldValue { streams.setSound(id, hasSound) } }
    }

    /// Whether any stream would carry sound now.
    public var wantsSound: Bool { readers.contains { $0.mayCarrySound && !$0.isPaused } }

    /// Called when ``wantsSound`` may have changed.
    public var onSoundWanted: (() -> Void)?

    /// What takes the track's sound, on any thread; nil while nobody reads.
    ///
    /// - Parameter gate: what it does not let pass when it is to be written is dropped.
    public func makeSoundInlet(_ gate: SoundGate) -> (@Sendable (SoundPacket) -> Void)? { streams.soundInlet(id, gate) }

    /// Whether a codec works at present.
    public var encoderIsRunning: Bool { groups.contains { !$0.streams.isEmpty && $0.encoder.isRunning } }

    /// Makes a stream, which begins with the first picture that there is.
    ///
    /// - Parameter events: called on the main loop.
    /// - Returns: the stream, and the reading end of its pipe or socket. Drop the latter once it was handed over: while it is open anywhere the reader seems to live.
    public func subscribe(
        _ options: StreamOptions = StreamOptions(), _ events: @escaping (StreamEvent) -> Void
    ) throws(StreamsError) -> (stream: ReaderStream, reading: FileDescriptor) {
        if isClosed || streams.isShutDown { throw .closed }
        if options.encoding == .raw, readers.count(where: { $0.options.encoding == .raw }) >= TrackStreams.greatestRawReaderCount {
            throw .rawReaderLimit(TrackStreams.greatestRawReaderCount)
        }
        let channel = try TrackStreams.makeChannel(options.format)
        let group = try self.group(for: options)
        let stream = ReaderStream(streams.makeStreamID(), options, in: group, events)
        readers.append(stream)
        streams.register(stream, of: self)
        group.add(stream, writingTo: channel.writing)
        stream.onSoundWanted = { [unowned self] in onSoundWanted?() }
        onSoundWanted?()
        return (stream, channel.reading)
    }

    /// Ends the streams that end with the broadcast.
    ///
    /// - Parameter completion: called on the main loop when they have ended, at most a second later.
    public func finishBroadcast(_ completion: @escaping () -> Void) {
        finish(readers.filter { $0.options.placeholder == .end }) { [self] in
            // What they have shown is over, and its size says nothing of the next broadcast's.
            streams.dropAllResting(of: self)
            completion()
        }
    }

    /// Ends all streams, for good.
    ///
    /// - Parameter completion: called on the main loop when they have ended, at most a second later.
    public func close(_ completion: @escaping () -> Void = {}) {
        isClosed = true
        hasSound = false
        streams.dropAllResting(of: self)
        finish(readers, completion)
    }

    private func finish(_ ending: [ReaderStream], _ completion: @escaping () -> Void) {
        if ending.isEmpty {
            streams.loop.later(completion)
            return
        }
        waiting.append((Set(ending.map(\.id)), completion))
        for stream in ending { stream.finish() }
    }

    func noteEnd(of stream: ReaderStream, _ reason: StreamEnd) {
        readers.removeAll { $0 === stream }
        if let group = stream.group {
            group.remove(stream)
            if case .failed = reason { group.hasFailed = true }
            if group.streams.isEmpty { if isClosed || group.hasFailed { drop(group) } else { streams.rest(group, of: self) } }
        }
        stream.noteEnd(reason)
        onSoundWanted?()
        for index in waiting.indices { waiting[index].streams.remove(stream.id) }
        let done = waiting.filter(\.streams.isEmpty)
        waiting.removeAll(where: \.streams.isEmpty)
        for entry in done { entry.completion() }
    }

    /// Ends an encoding without streams.
    func drop(_ group: EncodingGroup) {
        groups.removeAll { $0 === group }
        streams.stop(group)
    }

    /// The running encoding with these options and of the present picture's size, or a new one; where there may be no more, one of another size.
    private func group(for options: StreamOptions) throws(StreamsError) -> EncodingGroup {
        let wanted = EncodingOptions(
            codec: options.encoding, maxSize: options.maxSize ?? rates.maxSize,
            rates: EncodingRates(frameRate: options.frameRate ?? rates.frameRate, bitrate: options.bitrate ?? rates.bitrate),
            drawsCursor: options.format != .frames, holdsOnPlaceholder: options.placeholder == .hold)
        let suiting = groups.filter { $0.suits(wanted, options.followed) }
        let picture = presentSize
        if let group = suiting.first(where: { group in picture.map { group.fits($0) } ?? true }) {
            streams.wake(group)
            return group
        }
        do throws(StreamsError) {
            return try start(wanted, options)
        } catch {
            guard let group = suiting.first(where: { group in groups.contains { $0 === group } }) else { throw error }
            streams.wake(group)
            return group
        }
    }

    /// Pixels of the picture that is shown; nil when there is none.
    private var presentSize: PixelSize? {
        guard let lease = pool.latest() else { return nil }
        return lease.size
    }

    private func start(_ wanted: EncodingOptions, _ options: StreamOptions) throws(StreamsError) -> EncodingGroup {
        if groups.count >= TrackStreams.greatestEncodingCount { streams.dropResting(of: self) }
        guard groups.count < TrackStreams.greatestEncodingCount else { throw .encodingLimit(TrackStreams.greatestEncodingCount) }
        let started = try streams.start(
            wanted, followed: options.followed, of: id, hasSound: hasSound, pool: pool, showsPlaceholder: showsPlaceholder,
            precedence: precedence)
        groups.append(started)
        return started
    }

    /// A pipe or a pair of sockets whose writing end never blocks. A pipe is large enough for most pictures, so that few wake the writer twice.
    private static func makeChannel(
        _ format: StreamOptions.Format
    ) throws(StreamsError) -> (reading: FileDescriptor, writing: FileDescriptor) {
        do throws(Errno) {
            if format == .frames {
                let sockets = try FileDescriptor.messageSockets()
                try sockets.1.setNonBlocking()
                return (reading: sockets.0, writing: sockets.1)
            }
            let pipe = try FileDescriptor.pipe()
            try pipe.writing.setNonBlocking()
            // A user may have 64 MiB of pipes in all: refused is no harm.
            _ = clinux_set_pipe_size(pipe.writing.raw, format == .y4m ? 1 << 20 : 1 << 18)
            return pipe
        } catch {
            throw .outOfResources(error)
        }
    }
}
