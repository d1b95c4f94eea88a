// SPDX-License-Identifier: MIT
import CPipeWire

/// The table of callbacks of all streams. Their context is an unretained ``CaptureStream``, which destroys its stream before it goes.
enum StreamEvents {
    /// SAFETY: `nonisolated(unsafe)` because it is a pointer; written once, here, and only read afterwards.
    nonisolated(unsafe) static let table = {
        let events = UnsafeMutablePointer<pw_stream_events>.allocate(capacity: 1)
        events.initialize(to: pw_stream_events())
        events.pointee.version = UInt32(PW_VERSION_STREAM_EVENTS)
        events.pointee.state_changed = onStateChanged
        events.pointee.param_changed = onParamChanged
        events.pointee.add_buffer = onAddBuffer
        events.pointee.remove_buffer = onRemoveBuffer
        events.pointee.process = onProcess
        return events
    }()
}

private func stream(_ context: UnsafeMutableRawPointer?) -> CaptureStream? {
    context.map { Unmanaged<CaptureStream>.fromOpaque($0).takeUnretainedValue() }
}

private func onStateChanged(
    _ context: UnsafeMutableRawPointer?, _ old: pw_stream_state, _ new: pw_stream_state, _ error: UnsafePointer<CChar>?
) {
    stream(context)?.streamChanged(from: old, to: new, error.map { String(cString: $0) } ?? "")
}

private func onParamChanged(_ context: UnsafeMutableRawPointer?, _ id: UInt32, _ param: UnsafePointer<spa_pod>?) {
    if id == SPA_PARAM_Format.rawValue { stream(context)?.streamFormatChanged(param) }
}

private func onAddBuffer(_ context: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<pw_buffer>?) {
    if let buffer { stream(context)?.streamAdded(buffer) }
}

private func onRemoveBuffer(_ context: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<pw_buffer>?) {
    if let buffer { stream(context)?.streamRemoved(buffer) }
}

private func onProcess(_ context: UnsafeMutableRawPointer?) { stream(context)?.streamProcess() }
