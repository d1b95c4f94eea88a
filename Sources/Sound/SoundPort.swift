// SPDX-License-Identifier: MIT
import CPipeWire
import Loop

/// PipeWire's stream of one input. It names no device: the session manager links it to the default one, and moves it along when that changes.
///
/// The stream of the system's sound is passive: it hears an output that plays, and keeps none awake that does not.
///
/// Thread: the sound thread's, but for ``process()``. The callbacks' context is unretained: ``close()`` comes before this object goes, and never
/// inside a callback.
final class SoundPort {
    let input: SoundInput
    let ring = SampleRing()
    /// The session manager has no device for it, or PipeWire is gone: it is to be connected anew.
    var onBroken: (() -> Void)?

    private let bell: FileDescriptor
    private var stream: OpaquePointer?
    /// It must not move.
    private let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)

    /// - Parameter bell: rung when there is something in the ring.
    init(_ input: SoundInput, bell: FileDescriptor) {
        (self.input, self.bell) = (input, bell)
        hook.initialize(to: spa_hook())
    }

    deinit {
        close()
        hook.deallocate()
    }

    var isConnected: Bool { stream != nil }

    /// Asks PipeWire for the input.
    ///
    /// - Returns: whether that worked so far.
    func connect(_ core: OpaquePointer) -> Bool {
        close()
        let properties = pw_properties_new_string(
            "media.type=Audio media.category=Capture media.role=Screen node.latency=1024/48000 application.name=Vitrine "
                + (input == .system
                    ? "node.name=vitrine-system stream.capture.sink=true node.passive=true" : "node.name=vitrine-microphone"))
        guard let stream = pw_stream_new(core, "Vitrine", properties) else { return false }
        self.stream = stream
        pw_stream_add_listener(stream, hook, SoundPortEvents.table, Unmanaged.passUnretained(self).toOpaque())
        let flags = PW_STREAM_FLAG_AUTOCONNECT.rawValue | PW_STREAM_FLAG_MAP_BUFFERS.rawValue | PW_STREAM_FLAG_RT_PROCESS.rawValue
        let code = cpw_stream_connect_audio(stream, flags, UInt32(SampleClock.rate))
        if code < 0 { log.warning("no sound of the \(input): \(Errno(code))") }
        return code >= 0
    }

    func close() {
        if let stream { pw_stream_destroy(stream) }
        stream = nil
    }

    fileprivate func changed(to state: pw_stream_state, _ message: String) {
        log.debug("the stream of the \(input) is \(String(cString: pw_stream_state_as_string(state))) \(message)")
        if state == PW_STREAM_STATE_ERROR || state == PW_STREAM_STATE_UNCONNECTED, stream != nil { onBroken?() }
    }

    /// Blocks have come.
    ///
    /// Thread: PipeWire's data thread. No allocation, no lock, no logging.
    fileprivate func process() {
        guard let stream else { return }
        var clock = pw_time()
        pw_stream_get_time_n(stream, &clock, MemoryLayout<pw_time>.size)
        var rings = false
        while let buffer = pw_stream_dequeue_buffer(stream) {
            if push(buffer, clock) { rings = true }
            pw_stream_queue_buffer(stream, buffer)
        }
        if rings { bell.ring() }
    }

    /// A cycle's time as PipeWire says it, unless it says none or one that cannot be.
    static func credible(_ time: Int64, now: Int64) -> Int64 {
        let greatestError: Int64 = 2_000_000_000
        return time > now - greatestError && time < now + greatestError ? time : now
    }

    /// A device's delay in nanoseconds, at most a second of it: the device says what it likes.
    ///
    /// - Parameter delay: in units of `numerator` / `denominator` seconds.
    static func crediblePart(of delay: Int64, _ numerator: UInt32, _ denominator: UInt32) -> Int64 {
        guard denominator > 0 else { return 0 }
        let nanoseconds = Double(delay) * Double(numerator) / Double(denominator) * 1e9
        return Int64(max(0, min(nanoseconds, 1e9)))
    }

    private func push(_ buffer: UnsafeMutablePointer<pw_buffer>, _ clock: pw_time) -> Bool {
        guard let spa = buffer.pointee.buffer, spa.pointee.n_datas > 0, let data = spa.pointee.datas, let memory = data.pointee.data,
            let chunk = data.pointee.chunk
        else { return false }
        // What a peer says of its memory is not believed further than the memory goes.
        let (size, most) = (Int(chunk.pointee.size), Int(data.pointee.maxsize))
        let offset = most > 0 ? Int(chunk.pointee.offset) % most : 0
        let stride = MemoryLayout<Float>.size * SampleClock.channelCount
        let count = min(size, most - offset) / stride
        guard count > 0, offset % MemoryLayout<Float>.alignment == 0 else { return false }
        var time = SoundPort.credible(clock.now, now: Instant.now.nanoseconds)
        // A microphone's samples were taken before they came; what is played is taken as it is handed over.
        if input == .microphone {
            time -= Int64(count) * 1_000_000 / 48 + SoundPort.crediblePart(of: clock.delay, clock.rate.num, clock.rate.denom)
        }
        return ring.push((memory + offset).assumingMemoryBound(to: Float.self), count: count, at: time)
    }
}

/// SAFETY: `nonisolated(unsafe)` because it is a pointer; written once, here, and only read afterwards.
private enum SoundPortEvents {
    nonisolated(unsafe) static let table = {
        let events = UnsafeMutablePointer<pw_stream_events>.allocate(capacity: 1)
        events.initialize(to: pw_stream_events())
        events.pointee.version = UInt32(PW_VERSION_STREAM_EVENTS)
        events.pointee.state_changed = onStateChanged
        events.pointee.process = onProcess
        return events
    }()
}

private func port(_ context: UnsafeMutableRawPointer?) -> SoundPort? {
    context.map { Unmanaged<SoundPort>.fromOpaque($0).takeUnretainedValue() }
}

private func onStateChanged(
    _ context: UnsafeMutableRawPointer?, _ old: pw_stream_state, _ new: pw_stream_state, _ error: UnsafePointer<CChar>?
) {
    port(context)?.changed(to: new, error.map { String(cString: $0) } ?? "")
}

private func onProcess(_ context: UnsafeMutableRawPointer?) { port(context)?.process() }
