// SPDX-License-Identifier: MIT
import CPipeWire
import Loop

let log = Log("capture")

/// PipeWire's library, set up once a process and kept.
private let isLibraryReady: Bool = {
    pw_init(nil, nil)
    FaultGuard.install()
    return true
}()

/// What lives on the capture thread: PipeWire's loop and context, and the open requests.
final class CaptureLoop {
    private unowned let loop: EventLoop
    private var pipewire: UnsafeMutablePointer<pw_loop>?
    private var context: OpaquePointer?
    private var watch: Watch?
    private var streams: [UInt64: CaptureStream] = [:]

    init(_ loop: EventLoop) { self.loop = loop }

    func handle(_ command: CaptureThread.Command) {
        switch command {
        case .open(let request): open(request)
        case .setView(let id, let view): setView(id, view)
        case .close(let id): close(id)
        case .stop: stop()
        }
    }

    private func open(_ request: CaptureRequest) {
        precondition(streams[request.id] == nil, "a request's id is used again")
        let stream = CaptureStream(request, replacing: request.replaces.flatMap { streams[$0] }, on: loop)
        streams[request.id] = stream
        do throws(CaptureError) {
            stream.start(try sharedContext())
        } catch {
            request.events.send(.failed(id: request.id, error))
        }
    }

    /// The context of all requests. It stays: a new one each time would load PipeWire's plugins and start its data thread each time.
    private func sharedContext() throws(CaptureError) -> OpaquePointer {
        if let context { return context }
        _ = isLibraryReady
        guard let pipewire = pw_loop_new(nil) else { throw .libraryFailed("\(Errno.last)") }
        guard let context = pw_context_new(pipewire, pw_properties_new_string("application.name=Vitrine"), 0) else {
            let reason = Errno.last
            pw_loop_destroy(pipewire)
            throw .libraryFailed("\(reason)")
        }
        (self.pipewire, self.context) = (pipewire, context)
        cpw_loop_enter(pipewire)
        watch = loop.watch(cpw_loop_get_fd(pipewire), for: .read) { [unowned self] _ in
            _ = cpw_loop_iterate(pipewire, 0)
            for stream in streams.values { stream.announce() }
        }
        return context
    }

    private func setView(_ id: UInt64, _ view: CaptureView) {
        guard let stream = streams[id] else { return }
        stream.setView(view)
        stream.request.events.send(.viewChanged(id: id))
    }

    private func close(_ id: UInt64) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        stream.close()
        if let replaced = stream.request.replaces { streams[replaced]?.goOn() }
        stream.request.events.send(.closed(id: id))
    }

    private func stop() {
        for stream in streams.values { stream.close() }
        streams = [:]
        watch?.cancel()
        if let context { pw_context_destroy(context) }
        if let pipewire {
            cpw_loop_leave(pipewire)
            pw_loop_destroy(pipewire)
        }
        (context, pipewire) = (nil, nil)
    }
}
