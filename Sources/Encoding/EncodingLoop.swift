// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop

/// What an encoder's thread does: it takes the newest picture of the pool, draws it on the canvas, and encodes what has changed.
///
/// Between pictures it sleeps. Its timers exist only while something is pending: a picture that came too early for the frame rate, or blocks that
/// are not sharp yet.
final class EncodingLoop {
    /// What is on the canvas.
    private enum Shown {
        case nothing
        /// The picture that was sent last.
        case picture
        /// A picture that was not sent, because the placeholder was asked for meanwhile.
        case unsentPicture
        case placeholder
    }

    /// So many packets without a key frame, then one is made anyway: a damaged recording can be joined again.
    private static let greatestKeyFrameDistance = 3_000
    /// Requests that come sooner than this after a key frame share the next one: however many readers come, the others' picture stays sharp.
    private static let keyFrameInterval = Duration.milliseconds(500)
    /// The coarsest quantizer of the first key frame, and of one of a screen that stands still: who joins must not blur the others' picture.
    private static let (firstQuantizer, stillQuantizer) = (36, 24)

    /// Kept alive by its thread.
    private unowned let loop: EventLoop
    private let pool: FramePool
    private let reader: FramePool.ReaderID
    private let flags: Encoder.Flags
    private let events: @Sendable (EncoderEvent) -> Void
    private var options: EncodingOptions
    private var watch: Watch?
    private var limit: FrameRateLimit
    private var limitTimer: Timer?
    private var refinementTimer: Timer?
    private var keyFrameTimer: Timer?
    private var lastKeyFrame = Instant(nanoseconds: 0)
    private var nextRefinement = Instant(nanoseconds: 0)
    /// Whether the next picture is to make still blocks sharper too.
    private var refinementRides = false

    private var isStopped = false
    private var isSuspended = true
    private var isServing = false
    /// Whether the placeholder is to be shown, as far as the messages say that were handled.
    private var isHidden: Bool
    /// Whether the pool may have a frame that was not looked at.
    private var isRung = true
    private var wantsKeyFrame = true
    /// Whether a raw encoding may make its next packet, and whether what is shown will do.
    private var (isWanted, isWantedAgain) = (false, false)

    private var shown = Shown.nothing
    /// Whether the canvas shows what the source shows. Nothing but the placeholder is sent while it does not.
    private var isCurrent = false
    /// Number of the frame that was drawn last.
    private var drawn: UInt64 = 0
    private var canvas: Canvas?
    private let cursor = CursorImage()
    private let noCursor = CursorImage()
    /// What the readers know of the pointer that draw it themselves.
    private var sentCursor = CursorUpdate.hidden
    private var blocks = BlockMap(size: PixelSize(width: 16, height: 16))
    /// What of the canvas no raw packet has shown yet.
    private var unsentDamage = Damage.everything
    /// See ``Packet/period``.
    private var period: Int
    private var codec: VPXEncoder?
    private var lastTime = Instant(nanoseconds: 0)
    private var cadence = Cadence()
    private var packetsSinceKeyFrame = 0

    init(
        _ loop: EventLoop, pool: FramePool, bell: FileDescriptor, options: EncodingOptions, flags: Encoder.Flags,
        events: @escaping @Sendable (EncoderEvent) -> Void
    ) {
        (self.loop, self.pool, self.options, self.flags, self.events) = (loop, pool, options, flags, events)
        limit = FrameRateLimit(frameRate: options.rates.frameRate)
        isHidden = flags.showsPlaceholder.load(ordering: .sequentiallyConsistent)
        period = flags.period.load(ordering: .sequentiallyConsistent)
        reader = pool.addReader(bell: bell, followsCursor: true)
        pool.setNextDue(reader, Instant(nanoseconds: .max))
        watch = loop.watch(bell.raw, for: .read) { [unowned self] _ in
            bell.silence()
            isRung = true
            serveSoon()
        }
    }

    func handle(_ command: Encoder.Command) {
        if isStopped {
            if case .stop = command { events(.stopped) }
            return
        }
        switch command {
        case .keyFrame:
            let due = lastKeyFrame + EncodingLoop.keyFrameInterval
            if shown != .nothing && !wantsKeyFrame && Instant.now < due {
                askLater(at: due)
                return
            }
            wantsKeyFrame = true
        case .rates(let rates):
            options.rates = rates
            limit.setFrameRate(rates.frameRate)
            limitTimer?.cancel()
            limitTimer = nil
        case .placeholder(let isHidden):
            period = flags.period.load(ordering: .sequentiallyConsistent)
            setHidden(isHidden)
        case .suspended(let isSuspended):
            self.isSuspended = isSuspended
            wantsKeyFrame = true
        case .wanted(let again):
            isWanted = true
            isWantedAgain = isWantedAgain || again
        case .repetition(let request, let isKeyFrame):
            // What came last belongs to the end, whatever the frame-rate limit says.
            limit.lift()
            serve()
            if !isStopped { repeatPicture(isKeyFrame: isKeyFrame) }
            events(.repeated(request))
            return
        case .stop:
            end()
            events(.stopped)
            return
        }
        serveSoon()
    }

    /// Does what there is to do once all messages that are here already have been handled: ten requests make one key frame.
    private func serveSoon() {
        if isServing { return }
        isServing = true
        loop.later { [unowned self] in
            isServing = false
            serve()
        }
    }

    /// Does what there is to do now.
    private func serve() {
        guard !isStopped else { return }
        do throws(EncodingError) {
            if isHidden || isSuspended || flags.showsPlaceholder.load(ordering: .sequentiallyConsistent) {
                cancelTimers()
                pool.setNextDue(reader, Instant(nanoseconds: .max))
                if isHidden { try sendPlaceholder() }
            } else if options.codec != .raw || isWanted {
                try sendNewest()
                sendCursor()
            } else {
                pool.setNextDue(reader, Instant(nanoseconds: .max))
                sendCursor()
            }
        } catch {
            fail(error)
        }
    }

    // MARK: - Pictures

    private func sendNewest() throws(EncodingError) {
        let now = Instant.now
        if isCurrent && !wantsKeyFrame && now < limit.due {
            pool.setNextDue(reader, limit.due)
            if isRung && limitTimer == nil { armLimitTimer() }
        } else if let lease = takeNewest() {
            _ = pool.takeCursor(reader, into: cursor)
            let isChanged = try draw(lease, now)
            let (time, origin) = EncodingLoop.times(of: lease.info, at: now)
            // The slot goes back before the picture is encoded.
            _ = consume lease
            if isChanged || wantsKeyFrame { try encodeNewest(at: time, origin: origin, now) }
        } else if try drawCursor(now) {
            try encodeNewest(at: now, origin: nil, now)
        } else if wantsKeyFrame && isCurrent && options.codec != .raw {
            // Of a picture that has only just been shown it takes the time, so that it lies no nearer to the next one.
            try encodeCanvas(at: now - lastTime < limit.interval ? lastTime : now, origin: nil, asked: now)
        } else {
            pool.setNextDue(reader, limit.due)
        }
        guard isWanted, isWantedAgain, isCurrent, options.codec == .raw else { return }
        // A picture that nobody was sent, because the placeholder was asked for while it was drawn, is none to repeat.
        if shown == .picture && !flags.showsPlaceholder.load(ordering: .sequentiallyConsistent) { sendRaw(at: now, isRepetition: true) }
    }

    private func encodeNewest(at time: Instant, origin: Instant?, _ now: Instant) throws(EncodingError) {
        limit.note(now)
        pool.setNextDue(reader, limit.due)
        try encodeCanvas(at: time, origin: origin, asked: now)
    }

    /// What is newer than the canvas, or the retained picture when the canvas shows something else.
    private func takeNewest() -> FrameLease? {
        isRung = false
        if let lease = pool.take(reader) { return lease }
        return isCurrent ? nil : pool.latest()
    }

    /// Draws a frame on the canvas, which the first one brings into being.
    ///
    /// - Returns: whether anything looks different.
    private func draw(_ lease: borrowing FrameLease, _ now: Instant) throws(EncodingError) -> Bool {
        let canvas: Canvas
        if let made = self.canvas { canvas = made } else { canvas = try makeCanvas(for: lease.size) }
        let damage = shown == .picture || shown == .unsentPicture ? lease.info.damage : .everything
        try lease.withPlanes { planes throws(EncodingError) in
            try canvas.draw(planes, damage, options.drawsCursor ? cursor : noCursor, selecting: &blocks)
        }
        drawn = lease.info.sequence
        return noteDrawn(now)
    }

    /// Draws the pointer where it is now, over a picture that is the same as before.
    ///
    /// - Returns: whether anything looks different.
    private func drawCursor(_ now: Instant) throws(EncodingError) -> Bool {
        guard options.drawsCursor, isCurrent, let canvas, pool.takeCursor(reader, into: cursor) else { return false }
        try canvas.draw(nil, .none, cursor, selecting: &blocks)
        return noteDrawn(now)
    }

    private func noteDrawn(_ now: Instant) -> Bool {
        let isChanged = !blocks.selectsNothing || !isCurrent
        if options.codec == .raw, let canvas { unsentDamage.merge(isCurrent ? blocks.damage(in: canvas.size) : .everything) }
        isCurrent = true
        if isChanged {
            blocks.noteChanges(at: now)
            cadence.note(now)
        }
        return isChanged
    }

    private func makeCanvas(for source: PixelSize) throws(EncodingError) -> Canvas {
        let size = source.fitted(into: flags.fixMaxSize())
        let made = try Canvas(size: size)
        if case .video(let kind) = options.codec { codec = try VPXEncoder(kind, size: size, rates: options.rates) }
        blocks = BlockMap(size: size)
        canvas = made
        flags.isRunning.store(true, ordering: .relaxed)
        return made
    }

    /// Encodes the selected blocks of the canvas, or all of it, and sends the packet.
    ///
    /// - Parameter asked: when the encoder set about it.
    private func encodeCanvas(at time: Instant, origin: Instant?, asked: Instant) throws(EncodingError) {
        guard let codec else {
            sendRaw(at: time, origin: origin)
            return
        }
        var request = VPXEncoder.Request()
        request.isKeyFrame = wantsKeyFrame || packetsSinceKeyFrame >= EncodingLoop.greatestKeyFrameDistance
        if request.isKeyFrame {
            let isFirst = shown == .nothing
            let isStill = cadence.last + BlockMap.settlingTime <= asked
            if isFirst || isStill { request.greatestQuantizer = isFirst ? EncodingLoop.firstQuantizer : EncodingLoop.stillQuantizer }
        }
        var isRefined = false
        if refinementRides && !request.isKeyFrame, let quantizer = blocks.selectForRefinement(at: asked) {
            request.greatestQuantizer = quantizer
            isRefined = true
        }
        try codec.setRates(options.rates)
        let bytes = try encode(with: codec, request, at: time, origin: origin)
        if isRefined || request.isKeyFrame {
            refinementRides = false
            refinementTimer?.cancel()
            refinementTimer = nil
        }
        if isRefined { nextRefinement = asked + pause(after: bytes, at: asked) }
        scheduleRefinement()
    }

    /// Encodes the canvas and sends the packet, unless the placeholder was asked for meanwhile.
    @discardableResult
    private func encode(
        with codec: VPXEncoder, _ request: VPXEncoder.Request, at time: Instant, origin: Instant? = nil, isPlaceholder: Bool = false
    ) throws(EncodingError) -> Int {
        guard let canvas else { return 0 }
        if request.isKeyFrame { blocks.selectAll() }
        let time = max(time, lastTime + .milliseconds(1))
        guard let output = try codec.encode(canvas.planes, blocks: &blocks.selected, at: time, request) else { return 0 }
        if request.isReference { blocks.noteEncoded(quantizer: min(output.quantizer, request.greatestQuantizer)) }
        let packet = Packet(
            bytes: output.bytes, time: time, origin: origin, isKeyFrame: output.isKeyFrame, isPlaceholder: isPlaceholder,
            isRepetition: !request.isReference, isFarewell: !request.isReference, size: canvas.size, period: period, frame: drawn,
            frameRate: options.rates.frameRate)
        send(packet)
        return output.bytes.count
    }

    private func sendRaw(
        at time: Instant, origin: Instant? = nil, isPlaceholder: Bool = false, isRepetition: Bool = false, isFarewell: Bool = false
    ) {
        guard let canvas else { return }
        let packet = Packet(
            bytes: canvas.packed(), time: max(time, lastTime + .milliseconds(1)), origin: origin, isKeyFrame: true,
            isPlaceholder: isPlaceholder, isRepetition: isRepetition, isFarewell: isFarewell, size: canvas.size, damage: unsentDamage,
            period: period, frame: drawn, frameRate: options.rates.frameRate)
        guard send(packet) else { return }
        // A farewell is for those alone who have all of it already.
        if isFarewell { return }
        (unsentDamage, isWantedAgain) = (.none, false)
        // Those who have the picture do not take a repetition, and go on waiting for the next one.
        if !isRepetition { isWanted = false }
    }

    /// Sends a packet, unless it shows a picture and the placeholder was asked for meanwhile, or one that was withdrawn.
    @discardableResult
    private func send(_ packet: Packet) -> Bool {
        let isUnwanted = !packet.isRepetition && flags.showsPlaceholder.load(ordering: .sequentiallyConsistent)
        if !packet.isPlaceholder && (isUnwanted || drawn < pool.oldestShowable) {
            // The codec builds on a picture that nobody has.
            shown = .unsentPicture
            wantsKeyFrame = true
            return false
        }
        if !packet.isRepetition { shown = packet.isPlaceholder ? .placeholder : .picture }
        if packet.isKeyFrame {
            (wantsKeyFrame, lastKeyFrame) = (false, .now)
            keyFrameTimer?.cancel()
            keyFrameTimer = nil
        }
        packetsSinceKeyFrame = packet.isKeyFrame ? 0 : packetsSinceKeyFrame + 1
        // Who leaves does not set the others' clock forward.
        if !packet.isFarewell { lastTime = packet.time }
        events(.packet(packet))
        return true
    }

    // MARK: - The pointer

    /// Sends the pointer where it is now, to readers that draw it over the picture that they have.
    private func sendCursor() {
        guard !options.drawsCursor else { return }
        _ = pool.takeCursor(reader, into: cursor)
        guard let canvas, isCurrent, shown == .picture, drawn >= pool.oldestShowable else { return }
        guard let area = canvas.place(cursor) else { return send(.hidden) }
        let now = cursor.cursor
        let known = sentCursor.bitmap
        // Some producers send the same bitmap with every place.
        let isKnown = known.map { $0.size == now.size && cursor.pixels.elementsEqual($0.pixels) } ?? false
        let bitmap = CursorUpdate.Bitmap(
            serial: isKnown ? known?.serial ?? 0 : now.bitmapSerial, size: now.size, hotspotX: now.hotspotX, hotspotY: now.hotspotY,
            pixels: isKnown ? known?.pixels ?? [] : Array(cursor.pixels))
        send(CursorUpdate(area: area, bitmap: bitmap))
    }

    private func send(_ update: CursorUpdate) {
        guard update != sentCursor else { return }
        if update.bitmap != nil && flags.showsPlaceholder.load(ordering: .sequentiallyConsistent) { return }
        sentCursor = update
        events(.cursor(update))
    }

    /// Sends the last picture once more, at the present time, or when the next one would be due if that is later.
    private func repeatPicture(isKeyFrame: Bool) {
        guard shown == .picture || shown == .placeholder else { return }
        let time = max(.now, lastTime + limit.interval)
        do throws(EncodingError) {
            guard let codec else {
                sendRaw(at: time, isPlaceholder: shown == .placeholder, isRepetition: true, isFarewell: true)
                return
            }
            blocks.selectNothing()
            let request = VPXEncoder.Request(
                isKeyFrame: isKeyFrame, isReference: isKeyFrame, greatestQuantizer: EncodingLoop.stillQuantizer)
            try encode(with: codec, request, at: isKeyFrame ? .now : time, isPlaceholder: shown == .placeholder)
            scheduleRefinement()
        } catch {
            fail(error)
        }
    }

    // MARK: - The placeholder

    private func setHidden(_ isHidden: Bool) {
        guard isHidden != self.isHidden else { return }
        self.isHidden = isHidden
        isCurrent = false
        wantsKeyFrame = true
        if isHidden { send(.hidden) }
    }

    /// Shows the placeholder to those who have had a picture, once, and again when a key frame is asked for.
    private func sendPlaceholder() throws(EncodingError) {
        guard !options.holdsOnPlaceholder, let canvas, shown != .nothing else { return }
        if shown != .placeholder {
            try canvas.drawPlaceholder()
            unsentDamage = .everything
        }
        if let codec {
            guard wantsKeyFrame || shown != .placeholder else { return }
            try encode(with: codec, VPXEncoder.Request(isKeyFrame: true), at: .now, isPlaceholder: true)
            return
        }
        shown = .placeholder
        if isWanted && (wantsKeyFrame || isWantedAgain) { sendRaw(at: .now, isPlaceholder: true, isRepetition: !wantsKeyFrame) }
    }

    // MARK: - Timers

    private func armLimitTimer() {
        limitTimer = loop.at(limit.due) { [unowned self] in
            limitTimer = nil
            serve()
        }
    }

    private func askLater(at due: Instant) {
        guard keyFrameTimer == nil else { return }
        keyFrameTimer = loop.at(due) { [unowned self] in
            keyFrameTimer = nil
            wantsKeyFrame = true
            serve()
        }
    }

    /// Has blocks made sharp that are not, once they stand still.
    private func scheduleRefinement() {
        guard blocks.hasBlurred, shown == .picture, isCurrent, refinementTimer == nil else { return }
        refinementTimer = loop.at(max(nextRefinement, .now + BlockMap.settlingTime)) { [unowned self] in
            refinementTimer = nil
            refine()
        }
    }

    private func refine() {
        guard let codec, isCurrent, shown == .picture, !isHidden, !isSuspended else { return }
        let now = Instant.now
        // While pictures come it rides on the next of them: one of its own would be one more than the frame rate that was asked for.
        let quiet = max(lastTime + limit.interval, cadence.quiet)
        if now < quiet {
            refinementRides = true
            refinementTimer = loop.at(quiet) { [unowned self] in
                refinementTimer = nil
                refine()
            }
            return
        }
        refinementRides = false
        blocks.selectNothing()
        if let quantizer = blocks.selectForRefinement(at: now) {
            do throws(EncodingError) {
                let bytes = try encode(with: codec, VPXEncoder.Request(greatestQuantizer: quantizer), at: now)
                limit.note(now)
                pool.setNextDue(reader, limit.due)
                nextRefinement = now + pause(after: bytes, at: now)
            } catch {
                fail(error)
                return
            }
        }
        scheduleRefinement()
    }

    /// How long refinement rests after so many bytes: as long as they take at the bit rate, within limits that have it done in a second and a half.
    /// While other blocks move it leaves most of the rate to them.
    private func pause(after bytes: Int, at now: Instant) -> Duration {
        let bitrate = canvas.map { options.rates.bitrate(for: $0.size) } ?? 0
        let isMoving = now - cadence.last < BlockMap.settlingTime
        let cost = Duration.milliseconds(bytes * (isMoving ? 32_000 : 8_000) / max(bitrate, 1))
        return isMoving ? min(max(cost, .milliseconds(300)), .milliseconds(600)) : min(max(cost, .milliseconds(100)), .milliseconds(350))
    }

    private func cancelTimers() {
        limitTimer?.cancel()
        refinementTimer?.cancel()
        (limitTimer, refinementTimer, refinementRides) = (nil, nil, false)
    }

    // MARK: - The end

    private func fail(_ error: EncodingError) {
        end()
        events(.failed(error))
    }

    private func end() {
        isStopped = true
        cancelTimers()
        keyFrameTimer?.cancel()
        watch?.cancel()
        pool.removeReader(reader)
        (codec, canvas) = (nil, nil)
        flags.isRunning.store(false, ordering: .relaxed)
    }

    /// When a frame was shown, if its producer says something that can be, else when it came: for the stream, and for its latency.
    ///
    /// One that was there long before, on a screen that stands still, is shown to its reader from now on, and says nothing of latency.
    private static func times(of info: FrameInfo, at now: Instant) -> (time: Instant, origin: Instant?) {
        guard now - info.arrival < .seconds(1) else { return (now, nil) }
        let isLikely = info.time <= info.arrival && info.arrival - info.time < .seconds(1)
        let time = isLikely ? info.time : info.arrival
        return (time, time)
    }
}
