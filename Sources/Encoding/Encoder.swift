// SPDX-License-Identifier: MIT
public import Frames
public import Loop
import Synchronization

/// What an encoder tells its user, on the encoder's own thread.
public enum EncoderEvent: Sendable {
    /// An encoded picture.
    case packet(Packet)
    /// The pointer has changed over the pictures of an encoding that does not draw it.
    case cursor(CursorUpdate)
    /// The answer to ``Encoder/repeatLastPicture(_:isKeyFrame:)``; what it caused was sent before. The number is the request's.
    case repeated(UInt64)
    /// It cannot go on. Nothing but `stopped` comes after this.
    case failed(EncodingError)
    /// The answer to ``Encoder/stop()``: everything is freed, and nothing comes after this.
    case stopped
}

/// One encoding of a pool's pictures, on a thread of its own.
///
/// Thread: any. Each call only leaves a message for the encoder's thread. Whoever starts an encoder must ``stop()`` and ``join()`` it.
public final class Encoder: Sendable {
    enum Command: Sendable {
        case keyFrame
        case rates(EncodingRates)
        case placeholder(Bool)
        case suspended(Bool)
        case wanted(again: Bool)
        case repetition(UInt64, isKeyFrame: Bool)
        case stop
    }

    /// What the encoder's thread and others look at without a message.
    final class Flags: Sendable {
        let showsPlaceholder: Atomic<Bool>
        /// How often the placeholder was asked for: see ``Packet/period``.
        let period = Atomic(0)
        let isRunning = Atomic(false)
        /// What the first picture is scaled into, and whether that was done.
        private let limit: Mutex<(maxSize: PixelSize?, isFixed: Bool)>

        init(showsPlaceholder: Bool, maxSize: PixelSize?) {
            self.showsPlaceholder = Atomic(showsPlaceholder)
            limit = Mutex((maxSize: maxSize, isFixed: false))
        }

        /// - Returns: whether it was not too late.
        func setMaxSize(_ maxSize: PixelSize?) -> Bool {
            limit.withLock { limit in
                if !limit.isFixed { limit.maxSize = maxSize }
                return !limit.isFixed
            }
        }

        /// What is scaled into from now on.
        func fixMaxSize() -> PixelSize? {
            limit.withLock { limit in
                limit.isFixed = true
                return limit.maxSize
            }
        }
    }

    private let thread: LoopThread
    private let commands: Inbox<Command>
    private let flags: Flags
    private let pool: FramePool

    private init(_ thread: LoopThread, _ commands: Inbox<Command>, _ flags: Flags, _ pool: FramePool) {
        (self.thread, self.commands, self.flags, self.pool) = (thread, commands, flags, pool)
    }

    /// Starts a thread that encodes the pool's newest picture whenever there is one, from the first ``setSuspended(_:)`` with false on.
    ///
    /// - Parameters:
    ///   - number: tells threads apart in `top -H`: `enc-7`.
    ///   - showsPlaceholder: see ``setPlaceholder(_:)``.
    ///   - events: called on the encoder's thread; it must not block.
    /// - Throws: when no thread or no event descriptor can be had.
    public static func start(
        number: Int, pool: FramePool, options: EncodingOptions, showsPlaceholder: Bool, events: @escaping @Sendable (EncoderEvent) -> Void
    ) throws(Errno) -> Encoder {
        let flags = Flags(showsPlaceholder: showsPlaceholder, maxSize: options.maxSize)
        let bell = try FileDescriptor.makeBell()
        let (thread, commands) = try LoopThread.start(name: "enc-\(number)") { loop in
            let encoding = EncodingLoop(loop, pool: pool, bell: bell, options: options, flags: flags, events: events)
            return loop.makeInbox { encoding.handle($0) }
        }
        return Encoder(thread, commands, flags, pool)
    }

    /// Whether a codec exists at present: from the first picture until it is stopped.
    public var isRunning: Bool { flags.isRunning.load(ordering: .relaxed) }

    /// Which of its packets may be sent. What it told `events` of before may be hidden by now: whoever passes it on looks here first.
    public var showable: Showable {
        Showable(period: flags.period.load(ordering: .sequentiallyConsistent), oldestFrame: pool.oldestShowable)
    }

    /// Asks for a key frame at once, of the newest picture there is. Nothing comes of it before the first picture.
    public func requestKeyFrame() { commands.send(.keyFrame) }

    /// Changes the rates from the next picture on.
    public func setRates(_ rates: EncodingRates) { commands.send(.rates(rates)) }

    /// Changes what the first picture is scaled into.
    ///
    /// - Returns: whether it does: the size of an encoding that has begun is fixed.
    public func setMaxSize(_ maxSize: PixelSize?) -> Bool { flags.setMaxSize(maxSize) }

    /// Says whether there is a real picture to show. Once this returns, no real picture is taken, or sent but for one that is on its way to `events` already, until it is said again that there is one;
    /// then the first is a key frame. Packets of before are not ``showable`` any more.
    public func setPlaceholder(_ showsPlaceholder: Bool) {
        guard flags.showsPlaceholder.exchange(showsPlaceholder, ordering: .sequentiallyConsistent) != showsPlaceholder else { return }
        if showsPlaceholder { flags.period.wrappingAdd(1, ordering: .sequentiallyConsistent) }
        commands.send(.placeholder(showsPlaceholder))
    }

    /// Stops and resumes taking pictures at all, for when nobody reads. It starts suspended, and resumes with a key frame.
    public func setSuspended(_ isSuspended: Bool) { commands.send(.suspended(isSuspended)) }

    /// Asks a raw encoding for its next picture: it makes one packet for each call, so that slow readers cost nothing.
    ///
    /// - Parameter again: whether the picture that is shown will do, for readers that have not had it.
    public func requestPicture(again: Bool) { commands.send(.wanted(again: again)) }

    /// Asks for the last picture once more, at the present time, answered by `repeated`.
    ///
    /// - Parameter isKeyFrame: whether its reader cannot do with less; then it is an ordinary picture, for everybody.
    public func repeatLastPicture(_ request: UInt64, isKeyFrame: Bool) { commands.send(.repetition(request, isKeyFrame: isKeyFrame)) }

    /// Ends the encoding after the picture that is being encoded. The answer is `stopped`; after that ``join()`` does not wait.
    public func stop() { commands.send(.stop) }

    /// Ends the thread and waits for it: for the rest of one picture at most.
    public func join() { thread.stop() }
}
