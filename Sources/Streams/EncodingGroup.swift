// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop

/// The streams of a track that share one encoder, as the main loop sees them.
final class EncodingGroup {
    let id: EncodingID
    let encoder: Encoder
    private let writer: Inbox<WriterCommand>
    private let codec: Codec
    private let drawsCursor: Bool
    private let holdsOnPlaceholder: Bool
    /// What the size is, or will be, fitted into.
    private var maxSize: PixelSize?
    private var rates: EncodingRates
    private(set) var streams: [ReaderStream] = []
    private var isSuspended = true
    /// Whether the encoder has given up: nobody may join.
    var hasFailed = false

    init(_ id: EncodingID, _ encoder: Encoder, _ options: EncodingOptions, writer: Inbox<WriterCommand>) {
        (self.id, self.encoder, self.writer) = (id, encoder, writer)
        drawsCursor = options.drawsCursor
        (codec, holdsOnPlaceholder, maxSize, rates) = (options.codec, options.holdsOnPlaceholder, options.maxSize, options.rates)
    }

    /// What the encoder does at present: a stream with these options may join.
    var options: EncodingOptions {
        EncodingOptions(
            codec: codec, maxSize: maxSize, rates: rates, drawsCursor: drawsCursor, holdsOnPlaceholder: holdsOnPlaceholder)
    }

    func send(_ command: WriterCommand) { writer.send(command) }

    func add(_ stream: ReaderStream, writingTo descriptor: FileDescriptor) {
        streams.append(stream)
        let resumes = isSuspended && !stream.isPaused
        let addition = WriterCommand.Addition(
            id: stream.id, encoding: id, options: stream.options, descriptor: descriptor, counters: stream.counters,
            isPaused: stream.isPaused, hasKeyFrameComing: resumes)
        send(.add(addition))
        updateSuspension()
    }

    func remove(_ stream: ReaderStream) {
        streams.removeAll { $0 === stream }
        updateSuspension()
    }

    func notePause(of stream: ReaderStream) {
        send(.setPaused(stream.id, stream.isPaused, hasKeyFrameComing: isSuspended && !stream.isPaused))
        updateSuspension()
    }

    /// Encodes nothing while all streams are paused.
    private func updateSuspension() {
        let suspends = streams.allSatisfy(\.isPaused)
        guard suspends != isSuspended else { return }
        isSuspended = suspends
        encoder.setSuspended(suspends)
    }

    /// Follows the track's rates, except for those that a stream of the group asked for by number.
    ///
    /// Streams that asked for a number joined because it is the group's, so that they never disagree.
    func follow(_ track: StreamRates) {
        let changed = EncodingRates(
            frameRate: streams.lazy.compactMap(\.options.frameRate).first ?? track.frameRate,
            bitrate: streams.lazy.compactMap(\.options.bitrate).first ?? track.bitrate)
        if changed != rates {
            rates = changed
            encoder.setRates(changed)
        }
        let hasSize = encoder.isRunning || streams.contains { $0.size != nil }
        guard !hasSize, streams.allSatisfy({ $0.options.maxSize == nil }), maxSize != track.maxSize else { return }
        maxSize = track.maxSize
        encoder.setMaxSize(maxSize)
    }
}
