// SPDX-License-Identifier: MIT
public import Composition
public import Frames
public import Loop

/// The thread on which PipeWire lives: it reads the streams of all tracks and writes their pictures into the tracks' pools.
///
/// Thread: any may call; nothing here waits, except ``stop()``.
public final class CaptureThread: Sendable {
    private let thread: LoopThread
    private let commands: Inbox<Command>

    enum Command: Sendable {
        case open(CaptureRequest)
        case compose(CompositionRequest)
        case setLayout(id: UInt64, Layout)
        case setView(id: UInt64, CaptureView)
        case close(id: UInt64)
        case stop
    }

    private init(thread: LoopThread, commands: Inbox<Command>) { (self.thread, self.commands) = (thread, commands) }

    /// Starts the thread. PipeWire's library is loaded with the first request.
    ///
    /// - Throws: when there is no thread or descriptor to be had.
    public static func start() throws(Errno) -> CaptureThread {
        let (thread, commands) = try LoopThread.start(name: "capture") { loop in
            let capture = CaptureLoop(loop)
            return loop.makeInbox { (command: Command) in capture.handle(command) }
        }
        return CaptureThread(thread: thread, commands: commands)
    }

    /// Begins to capture. Failures come as events.
    public func open(_ request: CaptureRequest) { commands.send(.open(request)) }

    /// Begins to capture several sources and to compose them. Failures of each come as events of its own; the others go on.
    public func compose(_ request: CompositionRequest) { commands.send(.compose(request)) }

    /// Lays the sources of a composed picture out in another way. Nothing happens when there is no such request.
    public func setLayout(_ id: UInt64, _ layout: Layout) { commands.send(.setLayout(id: id, layout)) }

    /// Changes what of a source is shown, from the next picture on. What it hides is hidden at once, also in the picture that is already there,
    /// and in those that are being encoded. ``CaptureEvent/viewChanged(id:)`` follows; nothing happens when there is no such request.
    public func setView(_ id: UInt64, _ view: CaptureView) { commands.send(.setView(id: id, view)) }

    /// Ends a request, whatever state it is in. ``CaptureEvent/closed(id:)`` follows; nothing happens when there is no such request.
    /// A source of a composed picture is taken out of it, and the end of that picture is the end of all its sources.
    public func close(_ id: UInt64) { commands.send(.close(id: id)) }

    /// Closes what is open, without events, and ends the thread. Returns when it has ended.
    public func stop() {
        commands.send(.stop)
        thread.stop()
    }
}
