// SPDX-License-Identifier: MIT
import Capture
import Frames
import Loop

/// The captures of all tracks, on one thread that starts with the first of them.
final class Captures {
    let loop: EventLoop
    private var thread: CaptureThread?
    private var open: [UInt64: (pool: FramePool, handler: (CaptureEvent) -> Void)] = [:]
    private var lastID: UInt64 = 0
    private lazy var inbox = loop.makeInbox { [weak self] (event: CaptureEvent) in self?.route(event) }

    init(on loop: EventLoop) { self.loop = loop }

    /// Starts to capture a node into a pool.
    ///
    /// - Parameter remote: the portal's PipeWire connection; this capture owns it from now on.
    func open(
        remote: FileDescriptor, node: UInt32, serial: UInt64?, pool: FramePool, _ handler: @escaping (CaptureEvent) -> Void
    ) throws(Errno) -> UInt64 {
        if thread == nil { thread = try CaptureThread.start() }
        lastID += 1
        open[lastID] = (pool, handler)
        thread?.open(CaptureRequest(id: lastID, remote: remote, node: node, serial: serial, pool: pool, events: inbox))
        return lastID
    }

    /// Stops one. Its handler is not called again; its picture is forgotten as soon as the thread has let go of the pool.
    func close(_ id: UInt64) {
        open[id]?.handler = { _ in }
        thread?.close(id)
    }

    /// Ends the thread.
    func stop() {
        thread?.stop()
        thread = nil
    }

    private func route(_ event: CaptureEvent) {
        if case .closed(let id) = event {
            guard let closed = open.removeValue(forKey: id) else { return }
            // A broadcast that has begun meanwhile keeps its pictures.
            if !open.values.contains(where: { $0.pool === closed.pool }) { closed.pool.clear() }
            return
        }
        open[event.id]?.handler(event)
    }
}

extension CaptureEvent {
    /// The request that it belongs to.
    fileprivate var id: UInt64 {
        switch self {
        case .formatChanged(let id, _), .failed(let id, _): id
        case .firstFrame(let id), .paused(let id), .resumed(let id), .sourceRemoved(let id), .disconnected(let id), .closed(let id): id
        }
    }
}
