// SPDX-License-Identifier: MIT
import Capture
import Composition
import Frames
import Loop

/// The captures of all tracks, on one thread that starts with the first of them.
final class Captures {
    let loop: EventLoop
    private var thread: CaptureThread?
    private var open: [UInt64: Entry] = [:]
    private var lastID: UInt64 = 0
    private lazy var inbox = loop.makeInbox { [weak self] (event: CaptureEvent) in self?.route(event) }

    private struct Entry {
        let pool: FramePool
        var handler: (CaptureEvent) -> Void
        /// Of a composed picture: what is captured for it.
        var sources: [UInt64] = []
        /// Who waits for a view to be shown, in the order in which the views were set.
        var waiting: [() -> Void] = []
    }

    init(on loop: EventLoop) { self.loop = loop }

    /// Starts to capture a node into a pool.
    ///
    /// - Parameters:
    ///   - remote: the portal's PipeWire connection; this capture owns it from now on.
    ///   - hasCursor: whether the pointer comes beside the pixels.
    ///   - replaced: the capture that writes into the pool until this one does.
    func open(
        remote: FileDescriptor, node: UInt32, serial: UInt64?, pool: FramePool, view: CaptureView, hasCursor: Bool,
        replacing replaced: UInt64? = nil, _ handler: @escaping (CaptureEvent) -> Void
    ) throws(Errno) -> UInt64 {
        if thread == nil { thread = try CaptureThread.start() }
        lastID += 1
        open[lastID] = Entry(pool: pool, handler: handler)
        thread?.open(
            CaptureRequest(
                id: lastID, remote: remote, node: node, serial: serial, pool: pool, view: view, hasCursor: hasCursor, replaces: replaced,
                events: inbox))
        return lastID
    }

    /// One of several sources that are captured together.
    struct Source {
        let node: UInt32
        let serial: UInt64?
        /// What it is taken to measure before its first picture.
        let expectedSize: PixelSize?
    }

    /// Starts to capture several nodes, and to compose them into a pool.
    ///
    /// - Parameter handler: gets the events of the picture and of all its sources.
    /// - Returns: the composed picture, which is closed and replaced as one, and its sources, in their order.
    func compose(
        remote: FileDescriptor, _ sources: [Source], pool: FramePool, view: CaptureView, layout: Layout, hasCursor: Bool,
        replacing replaced: UInt64? = nil, _ handler: @escaping (CaptureEvent) -> Void
    ) throws(Errno) -> (picture: UInt64, sources: [UInt64]) {
        if thread == nil { thread = try CaptureThread.start() }
        let requests = sources.map { source in
            lastID += 1
            let input = FramePool(capacity: Composer.slotsOfInput)
            open[lastID] = Entry(pool: input, handler: handler)
            return CaptureRequest(
                id: lastID, remote: remote, node: source.node, serial: source.serial, pool: input, hasCursor: hasCursor, events: inbox)
        }
        lastID += 1
        open[lastID] = Entry(pool: pool, handler: handler, sources: requests.map(\.id))
        thread?.compose(
            CompositionRequest(
                id: lastID, sources: requests, expectedSizes: sources.map(\.expectedSize), pool: pool, view: view, layout: layout,
                replaces: replaced, events: inbox))
        return (lastID, requests.map(\.id))
    }

    /// Lays out in another way what is composed into a pool.
    func setLayout(_ layout: Layout, of pool: FramePool) {
        for (id, entry) in open where entry.pool === pool && !entry.sources.isEmpty { thread?.setLayout(id, layout) }
    }

    /// Changes what is shown of all that is captured into a pool.
    ///
    /// - Parameter completion: called when no picture shows any more what the view hides; at once when nothing is captured.
    func setView(_ view: CaptureView, of pool: FramePool, _ completion: @escaping () -> Void) {
        let ids = open.filter { $0.value.pool === pool }.map(\.key)
        var left = ids.count
        if left == 0 { return completion() }
        for id in ids {
            open[id]?.waiting.append {
                left -= 1
                if left == 0 { completion() }
            }
            thread?.setView(id, view)
        }
    }

    /// Stops one. Its handler is not called again; its picture is forgotten as soon as the thread has let go of the pool.
    func close(_ id: UInt64) {
        for ended in [id] + (open[id]?.sources ?? []) { open[ended]?.handler = { _ in } }
        thread?.close(id)
    }

    /// Ends the thread.
    func stop() {
        thread?.stop()
        thread = nil
    }

    private func route(_ event: CaptureEvent) {
        switch event {
        case .closed(let id):
            guard let closed = open.removeValue(forKey: id) else { return }
            // A capture that has begun meanwhile keeps its pictures.
            if !open.values.contains(where: { $0.pool === closed.pool }) { closed.pool.clear() }
            for completion in closed.waiting { completion() }
        case .viewChanged(let id):
            if let completion = open[id]?.waiting.first {
                open[id]?.waiting.removeFirst()
                completion()
            }
        default:
            open[event.id]?.handler(event)
        }
    }
}

extension CaptureEvent {
    /// The request that it belongs to.
    fileprivate var id: UInt64 {
        switch self {
        case .formatChanged(let id, _), .failed(let id, _): id
        case .composed(let id, _, _), .firstFrame(let id), .paused(let id), .resumed(let id), .viewChanged(let id): id
        case .sourceRemoved(let id), .disconnected(let id), .closed(let id): id
        }
    }
}
