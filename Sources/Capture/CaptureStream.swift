// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Loop
import PipeWire

/// One request: its connection, its stream, and what became of it.
///
/// The order is: connect, see that the granted node is there, connect a stream to it and nothing else, agree on a format, copy frames. It ends once,
/// with one event; what belongs to PipeWire is destroyed soon after, outside its callbacks.
///
/// Thread: capture.
final class CaptureStream {
    /// What an answer of PipeWire is waited for.
    private enum Question {
        case isNodeThere
        case whatDoesItOffer
        case whyDidItEnd(CaptureEvent)
    }

    /// How long the daemon and its session manager have to agree on a format: PipeWire itself does not say when they cannot.
    private static let negotiationLimit = Duration.seconds(10)
    /// How long PipeWire has to say why a stream ended.
    private static let explanationLimit = Duration.milliseconds(500)
    /// A stream that pauses for less, as it does while it is negotiated anew, did not pause.
    private static let pauseLimit = Duration.milliseconds(250)
    /// A source that has begun to stream, or has another size, and sends nothing for so long has sent its picture before the graph ran, waits
    /// for a reason to send one, or is not heard any more.
    private static let pictureLimit = Duration.seconds(1)

    /// How often a stream is connected anew because the daemon gave it buffers without memory.
    private static let reconnectionLimit = 5
    /// What a session manager needs to get to know a source that has just appeared.
    private static let reconnectionDelay = Duration.milliseconds(200)

    let request: CaptureRequest
    let writer: FrameWriter
    private unowned let loop: EventLoop
    private let remote: Remote
    private var stream: OpaquePointer?
    private let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private var questions: [Int32: Question] = [:]
    private var negotiation: Timer?
    /// What was agreed on last; nil while nothing is.
    private var agreedSize: PixelSize?
    private var renegotiation: Timer?
    /// The size for which a stream was connected anew, because PipeWire had not.
    private var sizeConnectedFor: PixelSize?
    private var explanation: Timer?
    private var pausing: Timer?
    private var reminder: Timer?
    /// What was done already to get a picture out of a source that is silent, and how often the graph had run by then.
    private var (remindersDone, cyclesWhenSilent): (Int, UInt64) = (0, 0)
    private var isPaused = false
    private var offersDmaBuf = true
    private var hasEnded = false
    private var announced: StreamFormat?
    private var hasAnnouncedFrame = false
    private var hasWarned = false
    private var (isReconnecting, reconnections) = (false, 0)

    /// - Parameters:
    ///   - connection: of the portal's descriptor; several streams may have one.
    ///   - predecessor: writes into the same pool, until this one does.
    init(_ request: CaptureRequest, on connection: RemoteConnection, replacing predecessor: (any PoolWriter)? = nil, on loop: EventLoop) {
        (self.request, self.loop) = (request, loop)
        writer = FrameWriter(pool: request.pool, view: request.view, hasCursor: request.hasCursor, replacing: predecessor)
        remote = Remote(node: request.node, serial: request.serial, on: connection)
        hook.initialize(to: spa_hook())
    }

    deinit { hook.deallocate() }

    /// Connects with the portal's descriptor.
    func start(_ context: OpaquePointer) {
        guard request.node != SPA_ID_INVALID else { return fail(.nodeMissing(node: request.node)) }
        remote.onSynced = { [unowned self] sequence in answered(sequence) }
        remote.onLost = { [unowned self] in end(.disconnected(id: request.id)) }
        // A link that finds no common format ends in silence.
        remote.onFormatsChanged = { [unowned self] in
            remote.askForFormats()
            ask(.whatDoesItOffer)
        }
        remote.onNodeFailed = { [unowned self] text in endUnlessExplained(.failed(id: request.id, .streamFailed(text))) }
        remote.onNodeRemoved = { [unowned self] in end(.sourceRemoved(id: request.id)) }
        do throws(CaptureError) {
            try remote.connect(context, request.remote)
        } catch {
            return fail(error)
        }
        ask(.isNodeThere)
        negotiation = loop.after(CaptureStream.negotiationLimit) { [unowned self] in
            fail(stream == nil ? .cannotConnect(Errno(ETIMEDOUT)) : .negotiationTimedOut(offered: remote.formats.names))
        }
    }

    /// Destroys all of PipeWire's objects and lets go of the connection. Not inside a callback.
    func close() {
        hasEnded = true
        for timer in [negotiation, renegotiation, explanation, pausing, reminder] { timer?.cancel() }
        // Its listener hears of the buffers that go.
        if let stream { pw_stream_destroy(stream) }
        stream = nil
        remote.close()
    }

    /// Sends what the process callback only noted. Call it after each iteration of PipeWire's loop.
    func announce() {
        guard !hasEnded else { return }
        if let format = writer.format, format != announced {
            announced = format
            request.events.send(.formatChanged(id: request.id, format))
        }
        if writer.distrustsDamage && !hasWarned {
            hasWarned = true
            log.info("source \(request.node) changes more than it says; its pictures are compared as a whole from now on")
        }
        if writer.hasPicture && !hasAnnouncedFrame {
            hasAnnouncedFrame = true
            request.events.send(.firstFrame(id: request.id))
        }
    }

    /// Shows another part of the source. One that has ended still hides what is to be hidden, in the picture that it left.
    func setView(_ view: CaptureView) {
        guard view != writer.view else { return }
        let showsMore = writer.setView(view)
        announce()
        if showsMore { askForPicture() }
    }

    /// The request that was to replace this one is gone: this one's pictures are shown again.
    func goOn() {
        guard writer.isReplaced else { return }
        writer.goOn()
        askForPicture()
    }

    /// Stops and starts the source: a still one sends no picture of its own accord, but one when it starts.
    private func askForPicture() {
        guard let stream, !hasEnded, pw_stream_get_state(stream, nil) == PW_STREAM_STATE_STREAMING else { return }
        pw_stream_set_active(stream, false)
        pw_stream_set_active(stream, true)
    }

    // MARK: - Ends

    private func fail(_ error: CaptureError) { end(.failed(id: request.id, error)) }

    private func end(_ event: CaptureEvent) {
        guard !hasEnded else { return }
        hasEnded = true
        request.events.send(event)
        loop.later { [weak self] in self?.close() }
    }

    /// A stream that ends does not say why; the reason may come just after.
    private func endUnlessExplained(_ event: CaptureEvent) {
        guard !hasEnded, explanation == nil else { return }
        explanation = loop.after(CaptureStream.explanationLimit) { [unowned self] in end(event) }
        ask(.whyDidItEnd(event))
    }

    // MARK: - Questions

    private func ask(_ question: Question) {
        if let sequence = remote.sync() { questions[sequence] = question }
    }

    private func answered(_ sequence: Int32) {
        guard !hasEnded, let question = questions.removeValue(forKey: sequence) else { return }
        switch question {
        case .isNodeThere:
            guard remote.hasNode else { return fail(.nodeMissing(node: request.node)) }
            remote.askForFormats()
            connectStream()
            ask(.whatDoesItOffer)
        case .whatDoesItOffer:
            let formats = remote.formats
            if !formats.names.isEmpty && !formats.hasCommon { return fail(.noCommonFormat(offered: formats.names)) }
            expectSize()
        case .whyDidItEnd(let event):
            end(event)
        }
    }

    // MARK: - The stream

    /// Connects to the granted node: by its serial, since numbers are used again; and never to another one when it is gone.
    private func connectStream() {
        let properties = pw_properties_new_string(
            "media.type=Video media.category=Capture media.role=Screen node.name=vitrine node.dont-fallback=true node.dont-move=true")
        let serial = request.serial ?? remote.serial
        if let serial { pw_properties_set(properties, PW_KEY_TARGET_OBJECT, "\(serial)") }
        guard let core = remote.core, let stream = pw_stream_new(core, "vitrine", properties) else {
            return fail(.streamFailed("no stream: \(Errno.last)"))
        }
        self.stream = stream
        pw_stream_add_listener(stream, hook, StreamEvents.table, Unmanaged.passUnretained(self).toOpaque())
        let flags = PW_STREAM_FLAG_AUTOCONNECT.rawValue | PW_STREAM_FLAG_DONT_RECONNECT.rawValue
        let target = serial == nil ? request.node : UInt32(SPA_ID_INVALID)
        let code = Pod.withParameters(formats) { parameters, count in
            pw_stream_connect(stream, SPA_DIRECTION_INPUT, target, pw_stream_flags(flags), parameters, count)
        }
        if code < 0 { fail(.streamFailed("\(Errno(code))")) }
    }

    private var formats: [Pod] { Negotiation.formats(maxFrameRate: request.maxFrameRate, includesDmaBuf: offersDmaBuf) }

    private func update(_ pods: [Pod]) {
        guard let stream else { return }
        _ = Pod.withParameters(pods) { parameters, count in pw_stream_update_params(stream, parameters, count) }
    }

    func streamChanged(from old: pw_stream_state, to new: pw_stream_state, _ message: String) {
        guard !hasEnded, !isReconnecting else { return }
        switch new {
        case PW_STREAM_STATE_ERROR where announced == nil && remote.hasNode && reconnections < CaptureStream.reconnectionLimit:
            // The source is there, but WirePlumber has not heard of it yet: "no node available".
            reconnect("\(message)", after: CaptureStream.reconnectionDelay)
        case PW_STREAM_STATE_ERROR:
            endUnlessExplained(.failed(id: request.id, .streamFailed(message.isEmpty ? "no reason given" : message)))
        case PW_STREAM_STATE_UNCONNECTED:
            endUnlessExplained(.sourceRemoved(id: request.id))
        // A stream that is connected anew starts as one that pauses: the source may have done so meanwhile.
        case PW_STREAM_STATE_PAUSED where (old == PW_STREAM_STATE_STREAMING || writer.hasPicture) && !isPaused && pausing == nil:
            pausing = loop.after(CaptureStream.pauseLimit) { [unowned self] in
                (pausing, isPaused) = (nil, true)
                if !hasEnded { request.events.send(.paused(id: request.id)) }
            }
        case PW_STREAM_STATE_STREAMING:
            pausing?.cancel()
            pausing = nil
            if isPaused { request.events.send(.resumed(id: request.id)) }
            isPaused = false
            expectPicture()
        default: break
        }
    }

    /// A format was agreed on, anew or for the first time; nil when there is none for the moment.
    func streamFormatChanged(_ param: UnsafePointer<spa_pod>?) {
        guard !hasEnded else { return }
        agreedSize = nil
        guard let param else { return writer.agree(on: nil) }
        guard let agreement = Negotiation.Agreement(param) else {
            return fail(.noCommonFormat(offered: remote.formats.names))
        }
        negotiation?.cancel()
        do throws(Errno) {
            try writer.prepare(agreement.size)
        } catch {
            return fail(.unusableMemory("no memory for pictures of \(agreement.size): \(error)"))
        }
        writer.agree(on: agreement)
        agreedSize = agreement.size
        if sizeConnectedFor != agreement.size { sizeConnectedFor = nil }
        expectSize()
        update(Negotiation.buffers(isDmaBuf: agreement.isDmaBuf, hasCursor: request.hasCursor))
        expectPicture()
    }

    /// A source that offers one size only is shown in it: PipeWire 0.3.65 may not negotiate anew when a source changes its offer twice in a row, and a
    /// window would be shown in its old size for ever.
    private func expectSize() {
        renegotiation?.cancel()
        renegotiation = nil
        guard let agreedSize, let offered = remote.formats.onlySize, offered != agreedSize, offered != sizeConnectedFor else { return }
        renegotiation = loop.after(CaptureStream.pictureLimit) { [unowned self] in
            renegotiation = nil
            guard !hasEnded, self.agreedSize == agreedSize, remote.formats.onlySize == offered else { return }
            sizeConnectedFor = offered
            reconnect("it offers \(offered) and is shown in \(agreedSize)")
        }
    }

    /// A source that begins or changes shows itself: one that does not is started anew, and, since PipeWire 0.3.65 may stop to pass on what it sends when
    /// it changes its size just as it pauses, connected to once more. One that still is silent has nothing to say.
    private func expectPicture() {
        if writer.cycles != cyclesWhenSilent { (remindersDone, cyclesWhenSilent) = (0, writer.cycles) }
        reminder?.cancel()
        reminder = loop.after(CaptureStream.pictureLimit) { [unowned self] in
            reminder = nil
            guard let stream, !hasEnded, writer.cycles == cyclesWhenSilent else { return }
            guard pw_stream_get_state(stream, nil) == PW_STREAM_STATE_STREAMING else { return }
            remindersDone += 1
            switch remindersDone {
            case 1:
                askForPicture()
                expectPicture()
            case 2 where writer.hasPicture: reconnect("nothing comes from it any more")
            default: break
            }
        }
    }

    func streamAdded(_ buffer: UnsafeMutablePointer<pw_buffer>) {
        guard let spa = buffer.pointee.buffer, spa.pointee.n_datas > 0, let datas = spa.pointee.datas else { return }
        // All buffers of a link come so; the first of them has it replaced.
        if datas[0].type == SPA_ID_INVALID, isReconnecting || reconnections < CaptureStream.reconnectionLimit {
            return reconnect("its buffers came without memory", after: reconnections == 0 ? .zero : CaptureStream.reconnectionDelay)
        }
        do throws(CaptureError) {
            buffer.pointee.user_data = Unmanaged.passRetained(try MappedBuffer(datas[0])).toOpaque()
        } catch {
            unusable(error, isDmaBuf: datas[0].type == SPA_DATA_DmaBuf.rawValue)
        }
    }

    /// Connects once more.
    ///
    /// PipeWire 0.3.65 takes an answer to its session manager for the source's, now and then at a first link, and hands out buffers before
    /// the source has given them memory. A new link gets new ones.
    private func reconnect(_ reason: String, after delay: Duration = .zero) {
        guard !isReconnecting else { return }
        isReconnecting = true
        reconnections += 1
        loop.after(delay) { [weak self] in
            guard let self, !hasEnded else { return }
            if let stream { pw_stream_destroy(stream) }
            stream = nil
            writer.agree(on: nil)
            isReconnecting = false
            log.info("source \(request.node): \(reason); connecting again")
            negotiation?.cancel()
            negotiation = loop.after(CaptureStream.negotiationLimit) { [unowned self] in
                fail(.negotiationTimedOut(offered: remote.formats.names))
            }
            connectStream()
        }
    }

    /// Graphics memory that cannot be mapped is given up for shared memory, if the source has that too.
    private func unusable(_ error: CaptureError, isDmaBuf: Bool) {
        loop.later { [weak self] in
            guard let self, !hasEnded else { return }
            guard isDmaBuf, remote.formats.hasSharedMemory else { return fail(error) }
            // The other buffers of the same pool fail in the same way.
            guard offersDmaBuf else { return }
            log.info("source \(request.node): \(error); asking for shared memory")
            offersDmaBuf = false
            negotiation?.cancel()
            negotiation = loop.after(CaptureStream.negotiationLimit) { [unowned self] in fail(error) }
            update(formats)
        }
    }

    func streamRemoved(_ buffer: UnsafeMutablePointer<pw_buffer>) {
        guard let mapped = buffer.pointee.user_data else { return }
        buffer.pointee.user_data = nil
        Unmanaged<MappedBuffer>.fromOpaque(mapped).release()
    }

    /// Frames have come. See ``FrameWriter/process(_:)`` for what may be done here.
    func streamProcess() {
        guard let stream else { return }
        if hasEnded || writer.isReplaced {
            writer.skip(stream)
        } else {
            writer.process(stream)
        }
    }
}
