// SPDX-License-Identifier: MIT
import CPipeWire
public import Loop

/// PipeWire's library, set up once a process and kept.
private let isLibraryReady: Bool = {
    pw_init(nil, nil)
    return true
}()

/// PipeWire's own loop, which an event loop iterates, and the context that connections are made in.
///
/// Making one loads PipeWire's plugins and starts its data thread.
///
/// Thread: the event loop's. ``close()`` comes before this object goes, not inside a callback, and after everything that was made in the context.
public final class PipeWireLoop {
    /// For `pw_context_connect` and its like.
    public let context: OpaquePointer
    /// Called after each iteration.
    public var onIterated: (() -> Void)?

    private let loop: UnsafeMutablePointer<pw_loop>
    private var watch: Watch?

    /// - Parameter application: what PipeWire's tools show the program as.
    /// - Throws: when the library cannot start.
    public init(on eventLoop: EventLoop, application: String) throws(Errno) {
        _ = isLibraryReady
        guard let loop = pw_loop_new(nil) else { throw .last }
        let properties = pw_properties_new_string("")
        pw_properties_set(properties, PW_KEY_APP_NAME, application)
        guard let context = pw_context_new(loop, properties, 0) else {
            let reason = Errno.last
            pw_loop_destroy(loop)
            throw reason
        }
        (self.loop, self.context) = (loop, context)
        cpw_loop_enter(loop)
        watch = eventLoop.watch(cpw_loop_get_fd(loop), for: .read) { [unowned self] _ in
            _ = cpw_loop_iterate(loop, 0)
            onIterated?()
        }
    }

    /// Ends the data thread and lets go of the plugins.
    public func close() {
        watch?.cancel()
        pw_context_destroy(context)
        cpw_loop_leave(loop)
        pw_loop_destroy(loop)
    }
}
