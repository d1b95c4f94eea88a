// SPDX-License-Identifier: MIT
import Composition
import Frames
import Loop
import PipeWire

let log = Log("capture")

/// What lives on the capture thread: PipeWire's loop and context, and the open requests.
final class CaptureLoop {
    private unowned let loop: EventLoop
    private var pipewire: PipeWireLoop?
    private var bell: FileDescriptor?
    private var bellWatch: Watch?
    private var streams: [UInt64: CaptureStream] = [:]
    private var composed: [UInt64: ComposedCapture] = [:]

    init(_ loop: EventLoop) { self.loop = loop }

    func handle(_ command: CaptureThread.Command) {
        switch command {
        case .open(let request): open(request, on: RemoteConnection())
        case .compose(let request): compose(request)
        case .setLayout(let id, let layout): composed[id]?.setLayout(layout)
        case .setView(let id, let view): setView(id, view)
        case .close(let id): close(id)
        case .stop: stop()
        }
    }

    private func open(_ request: CaptureRequest, on connection: RemoteConnection) {
        precondition(streams[request.id] == nil, "a request's id is used again")
        let stream = CaptureStream(request, on: connection, replacing: request.replaces.flatMap(writer), on: loop)
        streams[request.id] = stream
        do throws(CaptureError) {
            stream.start(try sharedContext())
        } catch {
            request.events.send(.failed(id: request.id, error))
        }
    }

    private func compose(_ request: CompositionRequest) {
        precondition(composed[request.id] == nil, "a request's id is used again")
        composed[request.id] = ComposedCapture(request, bell: composingBell(), replacing: request.replaces.flatMap(writer))
        let connection = RemoteConnection()
        for source in request.sources { open(source, on: connection) }
    }

    /// Has pictures composed again that found no slot. Nil without a descriptor: then it is the next change that brings them.
    private func composingBell() -> FileDescriptor? {
        if bell == nil, let made = try? FileDescriptor.makeBell() {
            bell = made
            bellWatch = loop.watch(made.raw, for: .read) { [unowned self] _ in
                made.silence()
                for picture in composed.values { picture.compose() }
            }
        }
        return bell
    }

    /// What a request writes into its pool with.
    private func writer(_ id: UInt64) -> (any PoolWriter)? { streams[id]?.writer ?? composed[id]?.composer }

    /// The context of all requests. It stays: a new one each time would load PipeWire's plugins and start its data thread each time.
    private func sharedContext() throws(CaptureError) -> OpaquePointer {
        if let pipewire { return pipewire.context }
        FaultGuard.install()
        let made: PipeWireLoop
        do throws(Errno) {
            made = try PipeWireLoop(on: loop, application: "Vitrine")
        } catch {
            throw .libraryFailed("\(error)")
        }
        made.onIterated = { [unowned self] in
            for stream in streams.values { stream.announce() }
            for picture in composed.values { picture.compose() }
        }
        pipewire = made
        return made.context
    }

    private func setView(_ id: UInt64, _ view: CaptureView) {
        if let stream = streams[id] {
            stream.setView(view)
            stream.request.events.send(.viewChanged(id: id))
        } else if let picture = composed[id] {
            picture.setView(view)
            picture.request.events.send(.viewChanged(id: id))
        }
    }

    private func close(_ id: UInt64) {
        if let picture = composed.removeValue(forKey: id) {
            // Their pools are let go of when nothing is written any more.
            let sources = picture.request.sources.filter { streams[$0.id] != nil }
            for source in sources { streams.removeValue(forKey: source.id)?.close() }
            picture.composer.close()
            goOn(picture.request.replaces)
            for source in sources { source.events.send(.closed(id: source.id)) }
            picture.request.events.send(.closed(id: id))
        } else if let stream = streams.removeValue(forKey: id) {
            stream.close()
            for picture in composed.values { picture.remove(id) }
            goOn(stream.request.replaces)
            stream.request.events.send(.closed(id: id))
        }
    }

    /// What was to be replaced is shown again.
    private func goOn(_ replaced: UInt64?) {
        guard let replaced else { return }
        streams[replaced]?.goOn()
        composed[replaced]?.goOn()
    }

    private func stop() {
        for stream in streams.values { stream.close() }
        for picture in composed.values { picture.composer.close() }
        (streams, composed) = ([:], [:])
        bellWatch?.cancel()
        pipewire?.close()
        pipewire = nil
    }
}
