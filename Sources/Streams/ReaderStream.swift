// SPDX-License-Identifier: MIT
public import Frames
public import Loop

/// The stream that one reader gets.
///
/// Thread: the main loop's.
public final class ReaderStream {
    /// What the reader asked for.
    public let options: StreamOptions
    /// Pixels of all its pictures; nil before the first.
    public private(set) var size: PixelSize?
    /// The stream's time 0, that of its first picture; nil before.
    public private(set) var epoch: Instant?
    /// Whether nothing more will be written, and the writing end is closed.
    public private(set) var hasEnded = false

    let id: StreamID
    let counters = StreamCounters()
    /// The streams that it shares an encoder with; nil once it has ended.
    private(set) var group: EncodingGroup?
    private let events: (StreamEvent) -> Void
    /// Whether it has a place for sound, or may get one when it begins.
    private(set) var mayCarrySound: Bool
    /// The track's: whether it wants sound may have changed.
    var onSoundWanted: (() -> Void)?
    private var pauses = false
    private var isFinishing = false

    init(_ id: StreamID, _ options: StreamOptions, in group: EncodingGroup, _ events: @escaping (StreamEvent) -> Void) {
        (self.id, self.options, self.group, self.events) = (id, options, group, events)
        mayCarrySound = options.format == .webm
    }

    /// What was counted so far.
    public var statistics: StreamStatistics { counters.snapshot }

    /// Whether nothing is sent at present. It goes on with a key frame.
    public var isPaused: Bool {
        get { pauses }
        set {
            guard newValue != pauses, !hasEnded else { return }
            pauses = newValue
            group?.notePause(of: self)
            onSoundWanted?()
        }
    }

    /// Asks for a picture with which decoding may begin; of frames, for the whole picture once more.
    public func requestKeyFrame() {
        guard !pauses, let group else { return }
        if options.format == .frames { group.send(.refresh(id)) } else { group.encoder.requestKeyFrame() }
    }

    /// Ends the stream: the last picture is written once more at the present time, then the writing end is closed.
    ///
    /// `ended` comes within a second, also when the reader does not read.
    public func finish() {
        guard !hasEnded, !isFinishing else { return }
        isFinishing = true
        group?.send(.finish(id))
    }

    /// Whoever could write it has gone, and tells nothing any more.
    func abandon() { group = nil }

    func noteStart(_ size: PixelSize, epoch: Instant, carriesSound: Bool) {
        (self.size, self.epoch) = (size, epoch)
        group?.noteSize(size)
        mayCarrySound = mayCarrySound && carriesSound
        events(.started)
        onSoundWanted?()
    }

    func noteEnd(_ reason: StreamEnd) {
        hasEnded = true
        group = nil
        events(.ended(reason))
    }
}
