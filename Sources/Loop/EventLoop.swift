// SPDX-License-Identifier: MIT
import CLinux
import Glibc
import Synchronization

/// What a watched descriptor is ready for, or is wanted for.
public struct Readiness: OptionSet, Sendable {
    /// The bits of `poll(2)`.
    public let rawValue: Int16
    /// Takes bits of `poll(2)`.
    public init(rawValue: Int16) { self.rawValue = rawValue }
    /// There is something to read, or the end.
    public static let read = Readiness(rawValue: Int16(POLLIN))
    /// Writing would not block.
    public static let write = Readiness(rawValue: Int16(POLLOUT))
    /// The other end is gone. Always reported, never asked for.
    public static let hangUp = Readiness(rawValue: Int16(POLLHUP))
    /// The descriptor is broken or closed, or a pipe's reader is gone. Always reported, never asked for.
    public static let error = Readiness(rawValue: Int16(POLLERR))

    fileprivate init(polled events: Int16) {
        self.init(rawValue: events)
        if events & Int16(POLLNVAL) != 0 { insert(.error) }
    }
}

/// A descriptor that a loop watches until ``cancel()``.
public final class Watch {
    fileprivate let descriptor: Int32
    fileprivate let handler: (Readiness) -> Void
    fileprivate weak var loop: EventLoop?
    fileprivate let id: Int

    /// What is waited for; an empty set still reports `hangUp` and `error`.
    public var interest: Readiness {
        didSet { if interest != oldValue { loop?.pollSetIsStale = true } }
    }

    fileprivate init(_ descriptor: Int32, _ interest: Readiness, _ loop: EventLoop, _ id: Int, _ handler: @escaping (Readiness) -> Void) {
        (self.descriptor, self.interest, self.loop, self.id, self.handler) = (descriptor, interest, loop, id, handler)
    }

    /// Stops watching. The handler is not called again, also not for readiness that was already seen.
    public func cancel() {
        guard let loop, loop.watches.removeValue(forKey: id) != nil else { return }
        loop.pollSetIsStale = true
    }
}

/// A call that a loop makes once, later, unless it is cancelled.
public final class Timer {
    fileprivate let deadline: Instant
    fileprivate let body: () -> Void
    fileprivate weak var loop: EventLoop?

    fileprivate init(_ deadline: Instant, _ loop: EventLoop, _ body: @escaping () -> Void) {
        (self.deadline, self.loop, self.body) = (deadline, loop, body)
    }

    /// Takes the call back. Nothing happens when it was made already.
    public func cancel() { loop?.timers.removeAll { $0 === self } }
}

/// The sending end of a loop's queue of one kind of messages: the only way from one thread into another.
///
/// Thread: any. Messages of one inbox arrive in the order in which they were sent; two inboxes have no common order.
/// What is sent to a loop that has ended is dropped.
public struct Inbox<Message: Sendable>: Sendable {
    private final class Queue: Sendable {
        let messages = Mutex<[Message]>([])
    }
    private let queue: Queue
    private let id: Int
    private let mailroom: Mailroom

    fileprivate init(id: Int, mailroom: Mailroom) {
        (queue, self.id, self.mailroom) = (Queue(), id, mailroom)
    }

    /// Queues a message and wakes the loop.
    public func send(_ message: Message) {
        let wasEmpty = queue.messages.withLock { messages in
            messages.append(message)
            return messages.count == 1
        }
        if wasEmpty { mailroom.announce(id) }
    }

    fileprivate func takeAll() -> [Message] {
        queue.messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }
}

/// The inboxes that hold something, and the bell that wakes their loop.
private final class Mailroom: Sendable {
    let bell: FileDescriptor
    private let waiting = Mutex<[Int]>([])

    init() throws(Errno) { bell = try FileDescriptor.makeBell() }

    func announce(_ id: Int) {
        let ring = waiting.withLock { ids in
            ids.append(id)
            return ids.count == 1
        }
        if ring { bell.ring() }
    }

    func takeAll() -> [Int] {
        // The bell is emptied before the list: what comes in between rings again.
        bell.silence()
        return waiting.withLock { ids in
            defer { ids = [] }
            return ids
        }
    }
}

/// A `poll(2)` loop: descriptors, timers, messages from other threads. It sleeps when there is nothing to do.
///
/// Thread: the one that created it; it is not `Sendable`, so that the compiler keeps it, and all that hangs on it, there.
/// Handlers run on that thread, one at a time, never inside a call of the loop's own methods.
public final class EventLoop {
    fileprivate var watches: [Int: Watch] = [:]
    fileprivate var timers: [Timer] = []
    fileprivate var pollSetIsStale = true
    private var pollSet: [pollfd] = []
    private var polled: [Watch?] = []
    private var deferred: [() -> Void] = []
    private var drains: [Int: () -> Void] = [:]
    private var lastID = 0
    private var stopped = false
    private let mailroom: Mailroom

    /// - Throws: when no event descriptor can be had.
    public init() throws(Errno) { mailroom = try Mailroom() }

    /// Runs until ``stop()``.
    public func run() {
        stopped = false
        while !stopped { turn() }
    }

    /// Runs until the condition holds.
    ///
    /// - Parameter timeout: the longest time to wait; nil is for ever.
    /// - Returns: whether the condition holds.
    public func run(until condition: () -> Bool, timeout: Duration? = nil) -> Bool {
        let deadline = timeout.map { Instant.now + $0 }
        // The timer only bounds the sleep.
        let alarm = timeout.map { after($0) {} }
        defer { alarm?.cancel() }
        stopped = false
        while !condition() {
            if stopped { return false }
            if let deadline, Instant.now >= deadline { return condition() }
            turn()
        }
        return true
    }

    /// Makes ``run()`` return after the present turn.
    public func stop() { stopped = true }

    /// Watches a descriptor. The caller keeps it open until it cancels the watch.
    @discardableResult
    public func watch(_ descriptor: Int32, for interest: Readiness, _ handler: @escaping (Readiness) -> Void) -> Watch {
        lastID += 1
        let watch = Watch(descriptor, interest, self, lastID, handler)
        watches[lastID] = watch
        pollSetIsStale = true
        return watch
    }

    /// Calls `body` once, `delay` from now.
    @discardableResult
    public func after(_ delay: Duration, _ body: @escaping () -> Void) -> Timer { at(Instant.now + delay, body) }

    /// Calls `body` once, at `deadline`.
    @discardableResult
    public func at(_ deadline: Instant, _ body: @escaping () -> Void) -> Timer {
        let timer = Timer(deadline, self, body)
        let index = timers.firstIndex { $0.deadline > deadline } ?? timers.endIndex
        timers.insert(timer, at: index)
        return timer
    }

    /// Calls `body` soon, from the loop itself: for what must not happen inside the present callback.
    public func later(_ body: @escaping () -> Void) { deferred.append(body) }

    /// Makes a queue through which other threads hand messages to `handler`, which runs on this loop.
    public func makeInbox<Message: Sendable>(_ handler: @escaping (Message) -> Void) -> Inbox<Message> {
        lastID += 1
        let inbox = Inbox<Message>(id: lastID, mailroom: mailroom)
        drains[lastID] = { for message in inbox.takeAll() { handler(message) } }
        return inbox
    }

    /// Takes signals out of the loop's own descriptor instead of interrupting the program.
    ///
    /// Call it first thing in `main`, before any thread exists: threads inherit the mask.
    public func onSignals(_ signals: [Int32], _ handler: @escaping (Int32) -> Void) throws(Errno) {
        var mask = sigset_t()
        sigemptyset(&mask)
        for signal in signals { sigaddset(&mask, signal) }
        pthread_sigmask(SIG_BLOCK, &mask, nil)
        let descriptor = FileDescriptor(owning: try Errno.check { clinux_signalfd(&mask) })
        watch(descriptor.raw, for: .read) { _ in
            var info = signalfd_siginfo()
            while read(descriptor.raw, &info, MemoryLayout.size(ofValue: info)) == MemoryLayout.size(ofValue: info) {
                handler(Int32(bitPattern: info.ssi_signo))
            }
        }
    }

    private func turn() {
        // What was deferred may have brought about what `run(until:)` waits for: no sleep before it has looked.
        let mayHaveChanged = !deferred.isEmpty
        runDeferred()
        if stopped { return }
        rebuildPollSet()
        let count = poll(&pollSet, nfds_t(pollSet.count), mayHaveChanged ? 0 : pollTimeout())
        runTimers()
        if count > 0 { dispatch() }
        runDeferred()
    }

    private func runDeferred() {
        // One at a time: who runs the loop anew must not keep the others from it.
        while !deferred.isEmpty { deferred.removeFirst()() }
    }

    private func rebuildPollSet() {
        guard pollSetIsStale else { return }
        pollSetIsStale = false
        polled = [nil] + watches.values.map(Optional.some)
        pollSet = polled.map { watch in
            pollfd(fd: watch?.descriptor ?? mailroom.bell.raw, events: (watch?.interest ?? .read).rawValue, revents: 0)
        }
    }

    /// Milliseconds, rounded up so that a timer never fires early; -1 is for ever.
    private func pollTimeout() -> Int32 {
        guard let next = timers.first else { return -1 }
        let left = (next.deadline - Instant.now).nanoseconds
        return Int32(clamping: max(0, (left + 999_999) / 1_000_000))
    }

    private func runTimers() {
        // Only those that are due now: a timer that arms itself again waits for the next turn.
        let now = Instant.now
        var due = timers.prefix { $0.deadline <= now }
        while let timer = due.popFirst() {
            // An earlier one may have cancelled it.
            guard let index = timers.firstIndex(where: { $0 === timer }) else { continue }
            timers.remove(at: index)
            timer.body()
        }
    }

    private func dispatch() {
        let (entries, owners) = (pollSet, polled)
        for (entry, owner) in zip(entries, owners) where entry.revents != 0 {
            guard let owner else {
                for id in mailroom.takeAll() { drains[id]?() }
                continue
            }
            if watches[owner.id] === owner { owner.handler(Readiness(polled: entry.revents)) }
        }
    }
}
