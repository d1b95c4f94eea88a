// SPDX-License-Identifier: MIT
import DBus
import Frames
import Streams

/// One reader of a track, as an object on the bus.
///
/// It lives as long as its stream: until a clean end, or until nobody holds the reading end any more.
final class TrackSubscription {
    let path: ObjectPath
    let subscriber: BusName
    let identity: Identity
    private(set) var hasEnded = false

    private unowned let track: Track
    private let options: SubscribeOptions
    private let stream: ReaderStream
    private var object: PublishedObject?
    private var onEnded: [() -> Void] = []

    /// - Throws: `LimitExceeded` or `Failed` when there can be no more streams.
    static func make(
        _ path: ObjectPath, _ options: SubscribeOptions, of track: Track, for subscriber: BusName, _ identity: Identity
    ) throws(AgentError) -> (subscription: TrackSubscription, reading: Value) {
        // The stream's events find their subscription through this box: the stream exists first.
        final class Box { weak var subscription: TrackSubscription? }
        let box = Box()
        do throws(StreamsError) {
            let (stream, reading) = try track.streams.subscribe(options.asStreamOptions) { event in box.subscription?.handle(event) }
            let subscription = TrackSubscription(path, options, track, stream, subscriber, identity)
            box.subscription = subscription
            return (subscription, .descriptor(reading))
        } catch {
            throw AgentError(error)
        }
    }

    private init(
        _ path: ObjectPath, _ options: SubscribeOptions, _ track: Track, _ stream: ReaderStream, _ subscriber: BusName, _ identity: Identity
    ) {
        (self.path, self.options, self.track, self.stream) = (path, options, track, stream)
        (self.subscriber, self.identity) = (subscriber, identity)
        object = PublishedObject(
            path, track.agent.descriptions.subscription, on: track.agent.server,
            methods: [
                "Unsubscribe": { [weak self] call in self?.whenPermitted(call) { $0.end { call.reply() } } },
                "RequestKeyFrame": { [weak self] call in self?.whenPermitted(call) { $0.requestKeyFrame(call) } },
            ],
            properties: [
                "Paused": Property(
                    get: { [stream] in .bool(stream.isPaused) },
                    set: { [weak self] value, call in self?.whenPermitted(call) { $0.setPaused(value, call) } }),
                "Format": Property(get: { .string(options.format.rawValue) }),
                "Codec": Property(get: { .string(options.codecName) }),
                "Subscriber": Property(get: { .string(subscriber.text) }),
                "SubscriberIdentity": Property(get: { .string(identity.name) }),
                "Size": Property(get: { [stream] in (stream.size ?? PixelSize(width: 0, height: 0)).asValue }),
                "Epoch": Property(get: { [stream] in .uint64(UInt64(clamping: stream.epoch?.microseconds ?? 0)) }),
                "Statistics": Property(get: { [stream] in stream.statistics.asValue }),
            ])
    }

    /// Ends the stream cleanly; `completion` is called when it has ended.
    func end(_ completion: @escaping () -> Void = {}) {
        if hasEnded { return completion() }
        onEnded.append(completion)
        stream.finish()
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .started:
            object?.publish()
        case .ended(let why):
            hasEnded = true
            object?.remove()
            object = nil
            track.forget(self, why)
            for completion in onEnded { completion() }
            onEnded = []
        }
    }

    /// The subscriber itself, and who manages the track.
    private func whenPermitted(_ call: Call, _ body: @escaping (TrackSubscription) -> Void) {
        if call.sender == subscriber { return body(self) }
        track.whenPermitted(.manage, call) { [weak self] _ in
            guard let self else { return call.fail(AgentError(.unknownObject, "the subscription has ended")) }
            body(self)
        }
    }

    private func requestKeyFrame(_ call: Call) {
        guard track.isActive else {
            return call.fail(AgentError(.notActive, "nothing is being broadcast: the stream begins with a key frame when it is"))
        }
        stream.requestKeyFrame()
        call.reply()
    }

    private func setPaused(_ value: Value, _ call: Call) {
        stream.isPaused = value.asBool ?? false
        object?.publish()
        call.reply()
    }
}

extension SubscribeOptions {
    fileprivate var asStreamOptions: StreamOptions {
        var options = StreamOptions()
        switch format {
        case .webm: options.format = .webm
        case .ivf: options.format = .ivf
        case .y4m: options.format = .y4m
        case .frames: options.format = .frames
        }
        options.codec = codec
        switch placeholder {
        case .picture: options.placeholder = .picture
        case .hold: options.placeholder = .hold
        case .end: options.placeholder = .end
        }
        (options.maxSize, options.frameRate, options.bitrate) = (maxSize, frameRate, bitrate)
        return options
    }
}

extension AgentError {
    fileprivate init(_ error: StreamsError) {
        switch error {
        case .rawReaderLimit(let limit):
            self.init(.limitExceeded, "a track has at most \(limit) raw readers: end one of them, or take webm or ivf")
        case .encodingLimit(let limit):
            self.init(.limitExceeded, "\(limit) different encodings run already: subscribe with the options of another reader")
        case .outOfResources(let number):
            self.init(.failed, "no stream can be made: \(number)")
        case .closed:
            self.init(.unknownObject, "the track is being destroyed")
        }
    }
}

extension StreamStatistics {
    fileprivate var asValue: Value {
        .dictionary(
            key: "s", value: "t",
            [("sent", sent), ("coalesced", coalesced), ("bytes", bytes), ("queued-bytes", queuedBytes), ("keyframes", keyFrames)].map {
                Value.Entry(key: .string($0.0), value: .uint64($0.1))
            })
    }
}
