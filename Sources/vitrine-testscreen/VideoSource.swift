// SPDX-License-Identifier: MIT
import CPipeWire
import Glibc
import Loop
import PipeWire

/// A `Video/Source` node that shows a ``Painter``'s pictures, and misbehaves as its settings say.
///
/// Thread: the loop's. ``destroy()`` must be called, from outside of its own callbacks.
final class VideoSource {
    /// So many buffers are remembered at least.
    private static let timelineLength = 8_192

    let index: Int
    /// The node exists; its id is known.
    var onNode: ((UInt32) -> Void)?

    private(set) var node: UInt32?
    private(set) var agreement: Agreement?
    private(set) var state = "unconnected"
    private(set) var framesSent: UInt64 = 0
    private(set) var nullDequeues: UInt64 = 0
    /// The last buffers that were handed over: the number of the picture, and when.
    private(set) var timeline: [(number: UInt32, time: Instant)] = []
    /// Of the newest picture.
    var number: UInt32 { painter?.number ?? lastNumber }
    var bufferCount: Int { buffers.count }

    /// A size of its own, whatever the settings say.
    private let ownSize: Size?
    private var settings: Settings
    /// The settings at the last agreement: where pixels lie changes with the format, and not before.
    private var agreedSettings: Settings
    private let cursorMode: UInt32
    private var pointer: Pointer
    private let pipeWire: PipeWire
    private let loop: EventLoop
    private let stream: OpaquePointer
    private let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private let events = UnsafeMutablePointer<pw_stream_events>.allocate(capacity: 1)
    private let start = Instant.now

    private var painter: Painter?
    /// Nobody has had the painter's present picture yet.
    private var isFresh = false
    private var buffers: [UnsafeMutablePointer<pw_buffer>: SourceBuffer] = [:]
    /// Dequeued and not yet filled.
    private var hand: [UnsafeMutablePointer<pw_buffer>] = []
    private var sequence: UInt64 = 0
    private var lastNumber: UInt32
    private var isStreaming = false
    private var owesPicture = false
    /// Whoever looks may not have the pointer's shape.
    private var owesShape = true
    private var owesPointer: Timer?
    private var isResized = false
    private var offers: UInt32 = 0
    private var timer: Timer?
    private var lastDue = Instant.now
    private var overwriter: Timer?
    private var greeting: Timer?
    private var pushes: (left: UInt32, done: (UInt32?) -> Void)?

    /// Offers a node of that name; it exists once ``onNode`` was called.
    ///
    /// - Parameter firstNumber: one less than the number of the first picture.
    init?(_ pipeWire: PipeWire, on loop: EventLoop, index: Int, name: String, firstNumber: UInt32, cursorMode: UInt32, settings: Settings) {
        let settings = settings.resolved(cursorMode: cursorMode)
        agreedSettings = settings
        ownSize = settings.nextSize
        (self.cursorMode, pointer) = (cursorMode, Pointer(ownSize ?? settings.size(of: index)))
        (self.pipeWire, self.loop, self.index, self.settings, lastNumber) = (pipeWire, loop, index, settings, firstNumber)
        let items = [
            (PW_KEY_MEDIA_CLASS, "Video/Source"), (PW_KEY_MEDIA_ROLE, "Screen"), (PW_KEY_NODE_NAME, name),
            (PW_KEY_NODE_DESCRIPTION, "Vitrine test screen"),
        ].map { (strdup($0.0), strdup($0.1)) }
        defer {
            for item in items {
                free(item.0)
                free(item.1)
            }
        }
        let entries = items.map { spa_dict_item(key: $0.0, value: $0.1) }
        let properties = entries.withUnsafeBufferPointer { entries in
            var dictionary = spa_dict(flags: 0, n_items: UInt32(entries.count), items: entries.baseAddress)
            return pw_properties_new_dict(&dictionary)
        }
        guard let stream = pw_stream_new(pipeWire.core, name, properties) else { return nil }
        self.stream = stream
        hook.initialize(to: spa_hook())
        events.initialize(to: pw_stream_events())
        events.pointee.version = UInt32(PW_VERSION_STREAM_EVENTS)
        events.pointee.state_changed = stateChanged
        events.pointee.param_changed = paramChanged
        events.pointee.add_buffer = addBuffer
        events.pointee.remove_buffer = removeBuffer
        pw_stream_add_listener(stream, hook, events, Unmanaged.passUnretained(self).toOpaque())
        var flags = PW_STREAM_FLAG_DRIVER.rawValue
        flags |= settings.memory == .memptr ? PW_STREAM_FLAG_MAP_BUFFERS.rawValue : PW_STREAM_FLAG_ALLOC_BUFFERS.rawValue
        let result = Pod.withParameters(settings.formatParams(offeredSize, rate: offeredRate)) { params, count in
            pw_stream_connect(stream, SPA_DIRECTION_OUTPUT, UInt32.max, pw_stream_flags(rawValue: flags), params, count)
        }
        guard result >= 0 else {
            destroy()
            return nil
        }
        rearmOverwriter()
    }

    deinit {
        hook.deallocate()
        events.deallocate()
    }

    /// Removes the node.
    func destroy() {
        timer?.cancel()
        overwriter?.cancel()
        greeting?.cancel()
        owesPointer?.cancel()
        finishPushes(nil)
        pw_stream_destroy(stream)
    }

    // MARK: - Commands

    /// Takes new settings and does what they ask of a source that runs.
    func apply(_ new: Settings, _ effects: [Knob.Effect]) {
        settings = new.resolved(cursorMode: cursorMode)
        if effects.contains(.repaint) {
            repaint()
            owesPicture = true
        }
        if effects.contains(.renegotiate) { renegotiate() }
        if effects.contains(.pointer) {
            owesShape = true
            sendPointer()
        }
        rearmOverwriter()
        schedule()
    }

    /// Shows the pointer as it is now.
    private func sendPointer() {
        owesPointer?.cancel()
        owesPointer = nil
        guard isStreaming else { return }
        if settings.drawsPointer {
            owesPicture = true
            schedule()
        } else if settings.cursor != .absent, !send(.cursorOnly) {
            // No buffer yet: they come back within milliseconds.
            owesPointer = loop.after(.milliseconds(5)) { [unowned self] in sendPointer() }
        }
    }

    func setActive(_ active: Bool) { pw_stream_set_active(stream, active) }

    /// Sends so many new pictures, at the rate that is set.
    ///
    /// - Parameter done: gets the last one's number; nil when nobody looks or the source went.
    func push(_ count: UInt32, _ done: @escaping (UInt32?) -> Void) {
        finishPushes(nil)
        guard isStreaming else { return done(nil) }
        guard count > 0 else { return done(number) }
        pushes = (count, done)
        lastDue = Instant(nanoseconds: 0)
        schedule()
    }

    /// Sends one buffer that has no picture, only metadata.
    func sendCursorOnly() { _ = isStreaming && send(.cursorOnly) }

    /// Sends one buffer that is marked as corrupted.
    func sendCorrupted(inHeader: Bool) { _ = isStreaming && send(inHeader ? .corruptHeader : .corruptChunk) }

    /// Puts the node into its error state.
    func setError(_ text: String) { _ = cpw_stream_set_error(stream, -EIO, text) }

    /// Somebody new sees the source.
    func greet() {
        owesShape = true
        guard settings.sendsFirst else { return }
        // For the daemon a reader runs a little before buffers reach it: one of thirty that were sent at once was lost.
        // Where more pictures come, that does not matter.
        guard !runsByItself else {
            owesPicture = true
            return schedule()
        }
        greeting?.cancel()
        greeting = loop.after(.milliseconds(50)) { [unowned self] in
            owesPicture = true
            schedule()
        }
    }

    // MARK: - Negotiation

    /// Of the picture, upright.
    var size: Size { ownSize ?? settings.size(of: index) }

    private var offeredSize: Size {
        let size = isResized ? settings.resizeTo : self.size
        return settings.transform.exchangesSides ? size.turned : size
    }

    /// Offers that differ make PipeWire negotiate again where only the buffers are to change.
    private var offeredRate: UInt32 { max(1, settings.rate) + offers % 2 }

    private func renegotiate() {
        offers &+= 1
        _ = Pod.withParameters(settings.formatParams(offeredSize, rate: offeredRate)) { pw_stream_update_params(stream, $0, $1) }
    }

    fileprivate func formatChanged(_ param: UnsafePointer<spa_pod>?) {
        guard let param, let agreed = Agreement(param) else {
            agreement = nil
            return
        }
        agreement = agreed
        agreedSettings = settings
        repaint()
        _ = Pod.withParameters(settings.bufferParams(agreed)) { pw_stream_update_params(stream, $0, $1) }
    }

    /// The settings, as far as pictures follow them already.
    private var presentSettings: Settings {
        var present = settings
        (present.transform, present.crop) = (agreedSettings.transform, agreedSettings.crop)
        (present.stridePadding, present.offset) = (agreedSettings.stridePadding, agreedSettings.offset)
        return present
    }

    private func repaint() {
        guard let agreement else { return }
        lastNumber = painter?.number ?? lastNumber
        let layout = SourceBuffer.Layout(agreement, presentSettings)
        painter = Painter(
            size: layout.picture, format: agreement.format, rest: settings.unusedByte, workload: settings.workload, number: lastNumber &+ 1)
        pointer = Pointer(layout.picture)
        owesShape = true
        isFresh = true
        for buffer in buffers.values { buffer.markStale(nil) }
    }

    fileprivate func changed(to new: pw_stream_state) {
        state = String(cString: pw_stream_state_as_string(new))
        let wasStreaming = isStreaming
        isStreaming = new == PW_STREAM_STATE_STREAMING
        if new == PW_STREAM_STATE_PAUSED, node == nil {
            let id = pw_stream_get_node_id(stream)
            node = id
            onNode?(id)
        }
        if isStreaming, !wasStreaming {
            lastDue = Instant.now
            if let node, pipeWire.consumers.doFlow(from: node) { greet() }
        }
        schedule()
    }

    fileprivate func added(_ buffer: UnsafeMutablePointer<pw_buffer>) {
        guard settings.memory != .dmabuf, let agreement else { return }
        buffers[buffer] =
            settings.memory == .memptr
            ? .adopting(buffer) : .allocating(buffer, bytes: agreement.byteCount(settings), settings: settings)
    }

    fileprivate func removed(_ buffer: UnsafeMutablePointer<pw_buffer>) {
        buffers[buffer] = nil
        hand.removeAll { $0 == buffer }
    }

    // MARK: - Time

    private var runsByItself: Bool { !settings.isManual && settings.workload != .still }

    /// Arms the timer for the next picture, or disarms it where none is due.
    private func schedule() {
        timer?.cancel()
        timer = nil
        guard isStreaming, painter != nil, owesPicture || runsByItself || pushes != nil else { return }
        let due = owesPicture ? Instant.now : lastDue + interval
        timer = loop.at(due) { [unowned self] in tick() }
    }

    private var interval: Duration {
        var rate = min(settings.rate, settings.workload.limit)
        if settings.slowestRate > 0 {
            rate = .random(in: min(rate, settings.slowestRate)...max(rate, settings.slowestRate))
        }
        return rate == 0 ? .milliseconds(1) : .nanoseconds(1_000_000_000 / Int64(rate))
    }

    private func tick() {
        let isOwed = owesPicture
        let isNew = pushes != nil || (runsByItself && settings.workload.changes)
        lastDue = max(lastDue + interval, Instant.now + .nanoseconds(-20_000_000))
        let sent = send(isNew ? .next : .same)
        if sent {
            owesPicture = false
            if !isOwed || isNew, let pushes {
                self.pushes?.left = pushes.left - 1
                if pushes.left <= 1 { finishPushes(number) }
            }
            if settings.resizeEvery > 0, framesSent % UInt64(settings.resizeEvery) == 0 {
                isResized.toggle()
                renegotiate()
            }
        } else if !isOwed, !buffers.isEmpty {
            nullDequeues += 1
        } else {
            // No buffer yet: they come, or come back, within milliseconds.
            owesPicture = false
            timer = loop.after(.milliseconds(5)) { [unowned self] in
                owesPicture = isOwed
                schedule()
            }
            return
        }
        schedule()
    }

    private func finishPushes(_ number: UInt32?) {
        let done = pushes?.done
        pushes = nil
        done?(number)
    }

    private func rearmOverwriter() {
        overwriter?.cancel()
        overwriter = nil
        guard settings.overwrites else { return }
        takeAll()
        overwriter = loop.after(.milliseconds(1)) { [unowned self] in rearmOverwriter() }
    }

    // MARK: - Sending

    private enum Content { case next, same, cursorOnly, corruptHeader, corruptChunk }

    private func takeAll() {
        guard isStreaming else { return }
        while let buffer = pw_stream_dequeue_buffer(stream) {
            buffers[buffer]?.fillWithGarbage(seed: UInt32(truncatingIfNeeded: sequence))
            hand.append(buffer)
        }
    }

    private func take() -> UnsafeMutablePointer<pw_buffer>? {
        if settings.overwrites { takeAll() }
        if !hand.isEmpty { return hand.removeFirst() }
        return pw_stream_dequeue_buffer(stream)
    }

    /// Fills one buffer and hands it over; false when there is no buffer.
    private func send(_ wanted: Content) -> Bool {
        guard let agreement, let painter, let buffer = take() else { return false }
        sequence += settings.gapEvery > 0 && sequence % UInt64(settings.gapEvery) == 0 ? 10 : 1
        let content = spoiled(wanted)
        let present = presentSettings
        let layout = SourceBuffer.Layout(agreement, present)
        let damage = draw(content, on: painter, layout)
        if let own = buffers[buffer] {
            if content == .next || content == .same {
                own.update(from: painter.canvas, layout)
                if settings.drawsPointer { own.draw(settings.cursorShape, at: pointer.place(settings), layout, painter.canvas) }
            } else {
                own.fillWithGarbage(seed: UInt32(truncatingIfNeeded: sequence))
            }
        }
        var announcement = Announcement(
            sequence: sequence, isCorrupted: content == .corruptHeader, damage: damage, pointer: pointer.place(settings))
        announcement.hasShape = owesShape || framesSent % 30 == 0
        owesShape = false
        guard let spa = buffer.pointee.buffer else { return false }
        MetadataWriter(settings: present, layout: layout, start: start).write(announcement, into: spa)
        writeChunks(content, layout, spa)
        if timeline.count >= 2 * VideoSource.timelineLength { timeline.removeFirst(VideoSource.timelineLength) }
        timeline.append((number, .now))
        pw_stream_queue_buffer(stream, buffer)
        pw_stream_trigger_process(stream)
        framesSent += 1
        return true
    }

    /// Paints the next picture where there is to be one.
    ///
    /// - Returns: what is different from the picture before.
    private func draw(_ content: Content, on painter: Painter, _ layout: SourceBuffer.Layout) -> [Rect] {
        let old = pointer.place(settings)
        switch content {
        case .next where !isFresh:
            if settings.workload == .moving { pointer.move() }
            let damage = painter.advance()
            for buffer in buffers.values { buffer.markStale(damage) }
            let new = pointer.place(settings)
            return settings.drawsPointer && old != new ? damage + [old, new] : damage
        case .next, .same:
            isFresh = false
            return [Rect(layout.picture)]
        case .cursorOnly:
            pointer.move()
            return []
        case .corruptHeader, .corruptChunk: return [Rect(layout.picture)]
        }
    }

    private func spoiled(_ content: Content) -> Content {
        func isDue(_ every: UInt32) -> Bool { every > 0 && (framesSent + 1) % UInt64(every) == 0 }
        guard content == .next || content == .same else { return content }
        if isDue(settings.corruptHeaderEvery) { return .corruptHeader }
        if isDue(settings.corruptChunkEvery) { return .corruptChunk }
        return isDue(settings.cursorOnlyEvery) ? .cursorOnly : content
    }

    private func writeChunks(_ content: Content, _ layout: SourceBuffer.Layout, _ spa: UnsafeMutablePointer<spa_buffer>) {
        for plane in 0..<Int(spa.pointee.n_datas) {
            guard let chunk = spa.pointee.datas[plane].chunk else { continue }
            chunk.pointee.offset = plane == 0 ? UInt32(layout.offset) : 0
            chunk.pointee.stride = plane == 0 ? settings.chunkStride ?? Int32(clamping: layout.stride) : 0
            let bytes = plane == 0 ? layout.stride * layout.agreement.size.height : 0
            chunk.pointee.size = content == .cursorOnly ? 0 : settings.chunkSize ?? UInt32(clamping: bytes)
            chunk.pointee.flags = content == .corruptChunk ? Int32(SPA_CHUNK_FLAG_CORRUPTED) : 0
        }
    }
}

// MARK: - Callbacks

private func source(_ context: UnsafeMutableRawPointer?) -> VideoSource? {
    context.map { Unmanaged<VideoSource>.fromOpaque($0).takeUnretainedValue() }
}

private func stateChanged(_ context: UnsafeMutableRawPointer?, _: pw_stream_state, _ new: pw_stream_state, _: UnsafePointer<CChar>?) {
    source(context)?.changed(to: new)
}

private func paramChanged(_ context: UnsafeMutableRawPointer?, _ id: UInt32, _ param: UnsafePointer<spa_pod>?) {
    guard id == SPA_PARAM_Format.rawValue else { return }
    source(context)?.formatChanged(param)
}

private func addBuffer(_ context: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<pw_buffer>?) {
    guard let buffer else { return }
    source(context)?.added(buffer)
}

private func removeBuffer(_ context: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<pw_buffer>?) {
    guard let buffer else { return }
    source(context)?.removed(buffer)
}
