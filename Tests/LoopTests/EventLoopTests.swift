// SPDX-License-Identifier: MIT
import Glibc
import Loop
import Synchronization
import Testing

@Suite struct EventLoopTests {
    private static let patience = Duration.seconds(30)

    @Test func tellsWhenAPipeHasSomethingToRead() throws {
        let loop = try EventLoop()
        let (reading, writing) = try FileDescriptor.pipe()
        var seen: Readiness = []
        loop.watch(reading.raw, for: .read) { seen = $0 }
        #expect(write(writing.raw, "x", 1) == 1)
        #expect(loop.run(until: { seen.contains(.read) }, timeout: Self.patience))
    }

    /// A writer that waits for nothing still hears of it: `poll(2)` reports POLLERR alone.
    @Test func tellsAWriterThatTheReaderIsGone() throws {
        let loop = try EventLoop()
        var (reading, writing): (FileDescriptor?, FileDescriptor) = try FileDescriptor.pipe()
        var seen: Readiness = []
        loop.watch(writing.raw, for: []) { seen = $0 }
        _ = reading
        reading = nil
        #expect(loop.run(until: { seen.contains(.error) }, timeout: Self.patience))
    }

    @Test func tellsAReaderThatTheWriterIsGone() throws {
        let loop = try EventLoop()
        var (reading, writing): (FileDescriptor, FileDescriptor?) = try FileDescriptor.pipe()
        var seen: Readiness = []
        loop.watch(reading.raw, for: .read) { seen = $0 }
        _ = writing
        writing = nil
        #expect(loop.run(until: { seen.contains(.hangUp) }, timeout: Self.patience))
    }

    @Test func callsNobodyAfterCancel() throws {
        let loop = try EventLoop()
        let (reading, writing) = try FileDescriptor.pipe()
        #expect(write(writing.raw, "x", 1) == 1)
        var calls = 0
        var watches: [Watch] = []
        // Both are ready in the same turn: whichever comes first takes the other out.
        for _ in 0..<2 {
            watches.append(
                loop.watch(reading.raw, for: .read) { _ in
                    calls += 1
                    for watch in watches { watch.cancel() }
                })
        }
        var isOver = false
        loop.after(.milliseconds(50)) { isOver = true }
        #expect(loop.run(until: { isOver }, timeout: Self.patience))
        #expect(calls == 1)
        // They know each other.
        watches = []
    }

    @Test func aCallThatRunsTheLoopKeepsNobodyFromIt() throws {
        let loop = try EventLoop()
        var (calls, inner, isOver) = (0, 0, false)
        loop.later {
            #expect(loop.run(until: { calls == 1 }, timeout: Self.patience))
            inner = calls
            isOver = true
        }
        loop.later { calls += 1 }
        #expect(loop.run(until: { isOver }, timeout: Self.patience))
        #expect(inner == 1)
    }

    @Test func runsTimersInOrderAndNotWhenCancelled() throws {
        let loop = try EventLoop()
        var order: [Int] = []
        loop.after(.milliseconds(20)) { order.append(2) }
        loop.after(.milliseconds(10)) { order.append(1) }
        let cancelled = loop.after(.milliseconds(15)) { order.append(0) }
        loop.after(.milliseconds(12)) { cancelled.cancel() }
        #expect(loop.run(until: { order.count == 2 }, timeout: Self.patience))
        #expect(order == [1, 2])
    }

    @Test func givesUpWaitingAtTheDeadline() throws {
        let loop = try EventLoop()
        #expect(!loop.run(until: { false }, timeout: .milliseconds(5)))
    }

    @Test func runsWhatIsDeferredOutsideThePresentCall() throws {
        let loop = try EventLoop()
        var isInside = false
        var wasInside: Bool?
        loop.later {
            isInside = true
            loop.later { wasInside = isInside }
            isInside = false
        }
        #expect(loop.run(until: { wasInside != nil }, timeout: Self.patience))
        #expect(wasInside == false)
    }

    @Test func deliversMessagesOfAnotherThreadInOrder() throws {
        let loop = try EventLoop()
        var got: [Int] = []
        let inbox = loop.makeInbox { (number: Int) in got.append(number) }
        let (thread, _) = try LoopThread.start(name: "test") { other in
            other.later { for number in 0..<10_000 { inbox.send(number) } }
        }
        #expect(loop.run(until: { got.count == 10_000 }, timeout: Self.patience))
        thread.stop()
        #expect(got == Array(0..<10_000))
    }

    @Test func handlesWhatWasSentBeforeTheStop() throws {
        let handled = Atomic<Int>(0)
        let (thread, inbox) = try LoopThread.start(name: "test") { loop in
            loop.makeInbox { (_: Int) in handled.add(1, ordering: .relaxed) }
        }
        for number in 0..<100 { inbox.send(number) }
        thread.stop()
        #expect(handled.load(ordering: .relaxed) == 100)
        thread.stop()
        inbox.send(1)
    }

    @Test func keepsNoThreadAndNoDescriptor() throws {
        for _ in 0..<3 { try LoopThread.start(name: "test") { _ in }.thread.stop() }
        let before = try Files.names(in: "/proc/self/task").count
        for _ in 0..<50 { try LoopThread.start(name: "test") { _ in }.thread.stop() }
        // Other suites run beside this one, and have threads of their own.
        #expect(try Files.names(in: "/proc/self/task").count < before + 50)
    }
}

@Suite struct FileDescriptorTests {
    @Test func closesWithItsLastReference() throws {
        var (reading, writing): (FileDescriptor, FileDescriptor?) = try FileDescriptor.pipe()
        let second = try writing.map { FileDescriptor(owning: try $0.duplicateRaw()) }
        writing = nil
        try reading.setNonBlocking()
        var byte: UInt8 = 0
        #expect(read(reading.raw, &byte, 1) == -1 && errno == EAGAIN)
        withExtendedLifetime(second) {}
    }

    @Test func keepsDescriptorsFromChildren() throws {
        let (reading, writing) = try FileDescriptor.pipe()
        let second = FileDescriptor(owning: try reading.duplicateRaw())
        for descriptor in [reading, writing, second, try FileDescriptor.makeBell()] {
            #expect(fcntl(descriptor.raw, F_GETFD) & FD_CLOEXEC != 0)
        }
    }
}

@Suite struct InstantTests {
    @Test func addsWithoutOverflow() {
        #expect(Instant(nanoseconds: .max) + .seconds(1) == Instant(nanoseconds: .max))
        #expect(Instant(nanoseconds: 5) + .nanoseconds(3) == Instant(nanoseconds: 8))
        #expect((Instant(nanoseconds: 2_000) - Instant(nanoseconds: 500)).nanoseconds == 1_500)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
    }

    @Test func namesAnError() {
        #expect(Errno(-ENOENT) == Errno(ENOENT))
        #expect("\(Errno(ENOENT))" == "No such file or directory")
    }
}

@Suite struct LogTests {
    @Test func knowsItsLevels() {
        #expect(LogLevel(name: "debug") == .debug)
        #expect(LogLevel(name: "loud") == nil)
        #expect(LogLevel.error < LogLevel.debug)
    }
}

/// What the program is started with.
@Suite struct EnvironmentTests {
    @Test func theSoftLimitOfOpenFilesIsRaisedToTheHardOne() {
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        #expect(getrlimit(kind, &limit) == 0)
        limit.rlim_cur = min(limit.rlim_max, 1_000)
        #expect(setrlimit(kind, &limit) == 0)
        Environment.raiseFileLimit()
        #expect(getrlimit(kind, &limit) == 0 && limit.rlim_cur == min(limit.rlim_max, 65_536))
    }
}
