// SPDX-License-Identifier: MIT
import CLinux
import Glibc
import Synchronization

/// A thread that runs one event loop.
public final class LoopThread: Sendable {
    private let stopper: Inbox<Void>
    private let handle: Mutex<pthread_t?>

    private init(stopper: Inbox<Void>, handle: pthread_t) {
        self.stopper = stopper
        self.handle = Mutex(handle)
    }

    /// Starts a thread, runs `setUp` on it and hands its result over; then the loop runs until ``stop()``.
    ///
    /// `setUp` makes what lives on that thread and returns the inboxes through which it is reached.
    ///
    /// - Parameter name: at most 15 bytes, as `top -H` shows it.
    /// - Throws: when no thread or no event descriptor can be had.
    public static func start<Result: Sendable>(
        name: String, _ setUp: @escaping @Sendable (EventLoop) -> Result
    ) throws(Errno) -> (thread: LoopThread, result: Result) {
        let handover = try Handover<Swift.Result<(Inbox<Void>, Result), Errno>>()
        let handle = try startThread(name: name) {
            do throws(Errno) {
                let loop = try EventLoop()
                let stopper = loop.makeInbox { [unowned loop] (_: Void) in loop.stop() }
                handover.give(.success((stopper, setUp(loop))))
                loop.run()
            } catch {
                handover.give(.failure(error))
            }
        }
        switch handover.take() {
        case .success(let (stopper, result)):
            return (LoopThread(stopper: stopper, handle: handle), result)
        case .failure(let error):
            pthread_join(handle, nil)
            throw error
        }
    }

    /// Ends the loop after its present turn and waits for the thread. Messages sent before are still handled.
    public func stop() {
        stopper.send(())
        guard let handle = handle.withLock({ $0.take() }) else { return }
        pthread_join(handle, nil)
    }

    private static func startThread(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) -> pthread_t {
        final class Start {
            let name: String
            let body: @Sendable () -> Void
            init(_ name: String, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }
        }
        let start = Unmanaged.passRetained(Start(name, body))
        var handle = pthread_t()
        let code = pthread_create(
            &handle, nil,
            { context in
                guard let context else { return nil }
                let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                clinux_set_thread_name(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw Errno(code)
        }
        return handle
    }
}

/// One value that one thread waits for and another gives.
private final class Handover<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let bell: FileDescriptor

    /// - Throws: when no descriptor is left, for which nobody could ever be woken.
    init() throws(Errno) { bell = try FileDescriptor.makeBell() }

    func give(_ given: Value) {
        value.withLock { $0 = given }
        bell.ring()
    }

    func take() -> Value {
        while true {
            if let value = value.withLock({ $0.take() }) { return value }
            var entry = pollfd(fd: bell.raw, events: Int16(POLLIN), revents: 0)
            poll(&entry, 1, -1)
        }
    }
}
