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
    /// What the size is, or will be, fitted into: what the encoder has.
    private var maxSize: PixelSize?
    private var rates: EncodingRates
    private(set) var streams: [ReaderStream] = []
    /// What its pictures have for good, once there was one.
    private(set) var size: PixelSize?
    private var isSuspended = true
    /// Whether the encoder has given up: nobody may join.
    var hasFailed = false
    /// Which of the rates are the track's: the same for all its streams.
    private let followed: StreamOptions.Followed

    init(
        _ id: EncodingID, _ encoder: Encoder, _ options: EncodingOptions, followed: StreamOptions.Followed, writer: Inbox<WriterCommand>
    ) {
        (self.id, self.encoder, self.followed, self.writer) = (id, encoder, followed, writer)
        drawsCursor = options.drawsCursor
        (codec, holdsOnPlaceholder, maxSize, rates) = (options.codec, options.holdsOnPlaceholder, options.maxSize, options.rates)
    }

    /// What the encoder does at present: a stream with these options may join.
    var options: EncodingOptions {
        EncodingOptions(
            codec: codec, maxSize: maxSize, rates: rates, drawsCursor: drawsCursor, holdsOnPlaceholder: holdsOnPlaceholder)
    }

    /// Whether a stream would get here what it asked for, now and whatever becomes of the track.
    func suits(_ wanted: EncodingOptions, _ followed: StreamOptions.Followed) -> Bool {
        !hasFailed && options == wanted && self.followed == followed
    }

    /// Whether pictures of that size are not scaled here more than a stream asked for: not into those of another window, say.
    func fits(_ picture: PixelSize) -> Bool { size.map { $0 == picture.fitted(into: maxSize) } ?? true }

    func noteSize(_ size: PixelSize) { self.size = size }

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

    /// Says whether the placeholder is shown. What waits for slow readers of what it hides goes.
    func setPlaceholder(_ showsPlaceholder: Bool) {
        encoder.setPlaceholder(showsPlaceholder)
        if showsPlaceholder { send(.dropHidden(id)) }
    }

    /// Encodes nothing while all streams are paused.
    private func updateSuspension() {
        let suspends = streams.allSatisfy(\.isPaused)
        guard suspends != isSuspended else { return }
        isSuspended = suspends
        encoder.setSuspended(suspends)
    }

    /// Follows the track's rates, except for those that the streams of the group asked for by number.
    func follow(_ track: StreamRates) {
        let changed = EncodingRates(
            frameRate: followed.frameRate ? track.frameRate : rates.frameRate, bitrate: followed.bitrate ? track.bitrate : rates.bitrate)
        if changed != rates {
            rates = changed
            encoder.setRates(changed)
        }
        if followed.maxSize, maxSize != track.maxSize, encoder.setMaxSize(track.maxSize) { maxSize = track.maxSize }
    }
}
