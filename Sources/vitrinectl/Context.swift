// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop

/// What every verb works with: the loop, where its words go, and the person's wish to end.
final class Context {
    /// The one loop of the program.
    let loop: EventLoop
    /// Standard output: what was asked for.
    let out = Output(1)
    /// Standard error: complaints, and what must not mix with a stream on standard output.
    let err = Output(2)
    /// How often the person, or a closed terminal, has asked to end.
    private(set) var interrupts = 0
    /// How many of them a wait has ended for.
    private var heeded = 0
    /// Whether nobody reads any more what is written.
    private(set) var hasHungUp = false
    private var isDisconnected = false
    /// Of standard output, for its end.
    private var watchOfOutput: Watch?

    /// - Throws: when no loop can be had.
    init() throws(Failure) {
        do throws(Errno) {
            loop = try EventLoop()
            try loop.onSignals([SIGINT, SIGTERM, SIGHUP]) { [unowned self] number in
                if number == SIGHUP { hangUp() } else { interrupts += 1 }
            }
        } catch {
            throw .ended(.failed, "cannot begin: \(error)")
        }
        // A reader of our output that goes away is told apart from other ends by EPIPE.
        signal(SIGPIPE, SIG_IGN)
        // A file that has grown to its limit is an error of the write, like a full disk.
        signal(SIGXFSZ, SIG_IGN)
        out.onFailure = { [unowned self] in hangUp() }
        // It may also go away while there is nothing to tell it.
        watchOfOutput = loop.watch(1, for: []) { [unowned self] _ in
            watchOfOutput?.cancel()
            hangUp()
        }
    }

    /// Nobody reads any more. It is noticed in several ways, and is one wish to end: a second one would mean to leave without waiting.
    private func hangUp() {
        if !hasHungUp { interrupts += 1 }
        hasHungUp = true
    }

    /// Why ``wait(until:timeout:)`` returned.
    enum Outcome {
        case held, interrupted, timedOut
        /// The session bus has gone away.
        case disconnected
    }

    /// Runs the loop until the condition holds or the person has had enough, now or since the last wait.
    func wait(until condition: () -> Bool, timeout: Duration? = nil) -> Outcome {
        let ended = loop.run(until: { condition() || interrupts > heeded || isDisconnected }, timeout: timeout)
        if condition() { return .held }
        if isDisconnected { return .disconnected }
        if !ended { return .timedOut }
        heeded = interrupts
        return .interrupted
    }

    /// Connects to the session bus.
    func connect() throws(Failure) -> Connection {
        do throws(DBusError) { return try openBus() } catch { throw Failure(error) }
    }

    /// Like ``connect()``, for a caller that looks at the error itself.
    func openBus() throws(DBusError) -> Connection {
        let connection = try Connection.open(.session, on: loop)
        connection.onDisconnect = { [unowned self] in isDisconnected = true }
        return connection
    }

    /// Calls a method and waits for its answer, or for the person's interruption.
    ///
    /// - Parameter timeout: the longest time to wait; nil is for ever.
    func answer(to call: MethodCall, on connection: Connection, timeout: Duration? = .seconds(30)) throws(Failure) -> [Value] {
        switch try result(of: call, on: connection, timeout: timeout) {
        case .success(let values): return values
        case .failure(let error): throw Failure(error)
        }
    }

    /// Like ``answer(to:on:timeout:)``, for a caller that looks at the error itself.
    func result(
        of call: MethodCall, on connection: Connection, timeout: Duration? = .seconds(30)
    ) throws(Failure) -> Result<[Value], DBusError> {
        var answer: Result<[Value], DBusError>?
        let pending = connection.call(call, timeout: timeout) { answer = $0 }
        let outcome = wait(until: { answer != nil })
        if let answer { return answer }
        pending.cancel()
        throw Failure(outcome)
    }
}
