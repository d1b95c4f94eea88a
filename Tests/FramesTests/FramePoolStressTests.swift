// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop
import Synchronization
import TestSupport
import Testing

/// One writer, several readers, a thread that clears and resizes: no torn picture, and every frame is counted once.
@Suite struct FramePoolStressTests {
    /// What the threads of a run share.
    private final class Run: Sendable {
        let pool = FramePool(capacity: 6)
        let isOver = Mutex(false)
        let torn = Mutex(0)
        let takenTwice = Mutex(0)
        let taken = Mutex<UInt64>(0)
    }

    @Test func severalThreads() throws {
        let run = Run()
        var threads: [pthread_t] = []
        for number in 0..<3 { threads.append(try start { try? read(run, UInt64(number)) }) }
        threads.append(
            try start {
                for _ in 0..<50 {
                    usleep(2_000)
                    run.pool.clear()
                }
            })
        var random = SeededGenerator(seed: 11)
        let sizes = [PixelSize(width: 320, height: 200), PixelSize(width: 33, height: 77), PixelSize(width: 640, height: 33)]
        var size = sizes[0]
        for step in 0..<5_000 {
            if step % 200 == 0 {
                size = sizes[Int.random(in: 0..<sizes.count, using: &random)]
                try run.pool.prepare(size: size)
            }
            let luma = UInt8.random(in: 0...255, using: &random)
            if Int.random(in: 0..<20, using: &random) == 0 { run.pool.count([.corrupted, .cursorOnly, .dropped, .superseded][step % 4]) }
            run.pool.write(size: size, time: .now, arrival: .now) { planes, _ in
                Conversion.fill(planes, luma: luma, blue: luma, red: luma)
                return luma != 13
            }
            run.pool.wakeReaders()
            let s = run.pool.statistics
            #expect(s.received == s.delivered + s.coalesced + s.unread + s.corrupted + s.cursorOnly + s.dropped + s.inFlight)
        }
        run.isOver.withLock { $0 = true }
        for thread in threads { pthread_join(thread, nil) }
        #expect(run.torn.withLock { $0 } == 0 && run.takenTwice.withLock { $0 } == 0)
        #expect(run.taken.withLock { $0 } > 0)
        run.pool.clear()
        let s = run.pool.statistics
        #expect(s.inFlight == 0 && s.footprint == 0 && s.readers == 0 && s.delivered <= run.taken.withLock { $0 })
        #expect(s.received == s.delivered + s.coalesced + s.unread + s.corrupted + s.cursorOnly + s.dropped)
    }

    private func read(_ run: Run, _ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bell = try FileDescriptor.makeBell()
        let reader = run.pool.addReader(bell: bell)
        defer { run.pool.removeReader(reader) }
        var last: UInt64 = 0
        while !run.isOver.withLock({ $0 }) {
            var entry = pollfd(fd: bell.raw, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 10) == 1 else { continue }
            bell.silence()
            guard let lease = run.pool.take(reader) else { continue }
            run.taken.withLock { $0 += 1 }
            if lease.info.sequence <= last { run.takenTwice.withLock { $0 += 1 } }
            last = lease.info.sequence
            let isTorn = lease.withPlanes { planes in
                let luma = planes.luma[0]
                usleep(UInt32.random(in: 0...500, using: &random))
                for y in 0..<planes.size.height {
                    for x in 0..<planes.size.width where planes.luma[y * planes.lumaStride + x] != luma { return true }
                }
                return false
            }
            if isTorn { run.torn.withLock { $0 += 1 } }
            if Bool.random(using: &random) { run.pool.setNextDue(reader, Instant.now + .microseconds(300)) }
        }
    }

    private func start(_ body: @escaping @Sendable () -> Void) throws -> pthread_t {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
                return nil
            }, Unmanaged.passRetained(Box(body)).toOpaque())
        #expect(code == 0)
        return thread
    }
}
