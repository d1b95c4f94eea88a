// SPDX-License-Identifier: MIT
import CAllocations
import CPipeWire
import Frames
import Glibc
import Loop
import Testing

@testable import Capture

extension AllCaptureTests {
    /// What is not a picture, and what the counters say of it.
    @Suite struct Counters {
        private func send(_ stage: Stage, _ producer: Producer, _ frame: ProducerFrame) throws {
            let before = stage.pool.statistics.received
            producer.send(frame)
            try stage.wait("frame \(frame.number)") {
                let statistics = stage.pool.statistics
                return statistics.received > before && statistics.inFlight == 0
            }
        }

        // Faults: B14 B15
        @Test func corruptedAndCursorOnly() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(40)).shows(40))
            var frame = ProducerFrame(41)
            frame.isCorruptHeader = true
            try send(stage, producer, frame)
            frame = ProducerFrame(42)
            frame.isCorruptChunk = true
            try send(stage, producer, frame)
            frame = ProducerFrame(43)
            frame.isCursorOnly = true
            try send(stage, producer, frame)
            let statistics = stage.pool.statistics
            #expect(statistics.corrupted == 2 && statistics.cursorOnly == 1 && statistics.received == 4)
            let lease = stage.pool.latest()
            if let lease { #expect(Shot(lease).shows(40)) }
            #expect(try stage.show(producer, ProducerFrame(44)).shows(44))
        }

        // Faults: B23
        @Test func boundsThatLieAreDropped() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.hasMetas = false
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(98)).shows(98))
            var lies: [ProducerFrame] = []
            for stride in [-256, 255, 257, .max, .min] as [Int32] {
                var frame = ProducerFrame(1)
                frame.stride = stride
                lies.append(frame)
            }
            for offset in [4, 12_287, .max] as [UInt32] {
                var frame = ProducerFrame(1)
                frame.chunkOffset = offset
                lies.append(frame)
            }
            for lie in lies { try send(stage, producer, lie) }
            #expect(stage.pool.statistics.dropped == UInt64(lies.count) && stage.pool.statistics.received == UInt64(lies.count) + 1)
            #expect(try stage.show(producer, ProducerFrame(99)).shows(99))
        }

        // Faults: B23
        @Test func memoryThatIsCutShortIsSurvived() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(50)).shows(50))
            producer.tell(.truncate(4_096))
            let before = stage.pool.statistics.dropped
            for _ in 0..<4 { try send(stage, producer, ProducerFrame(51)) }
            #expect(stage.pool.statistics.dropped == before + 4)
            // A new negotiation brings new memory.
            producer.tell(.resize(PixelSize(width: 80, height: 60)))
            try stage.show(producer, "pictures again", ProducerFrame(52)) { $0.shows(52) }
        }

        // Faults: B35
        @Test func timesOnlyGrow() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            var last = Instant(nanoseconds: 0)
            let now = Instant.now.nanoseconds
            for (number, pts) in ([-1, 0, 1, now, now, now - 1_000, now + 3_600_000_000_000, .max, .min, now + 5] as [Int64]).enumerated() {
                var frame = ProducerFrame(UInt8(number))
                frame.pts = pts
                _ = try stage.show(producer, frame)
                guard let lease = stage.pool.latest() else { throw Stage.TimedOut(what: "no picture") }
                #expect(lease.info.time > last && lease.info.time <= Instant.now + .seconds(2))
                #expect(lease.info.time > Instant.now + .seconds(-30))
                last = lease.info.time
            }
        }

        // Faults: B03 B05
        @Test func aPoolOfTwoBuffersNeverStalls() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.buffers = 2
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            for number in 0..<200 { #expect(try stage.show(producer, ProducerFrame(UInt8(number))).shows(UInt8(number))) }
            #expect(producer.status.nullDequeues == 0)
        }

        // Faults: B31
        @Test func burstsAreCountedAndTheNewestIsKept() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.buffers = 8
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            for round in 0..<20 {
                for number in 0..<5 { producer.send(ProducerFrame(UInt8(round * 10 + number))) }
                // A trigger that meets a running cycle of the graph sends nothing: the last one is sent until it comes.
                let last = UInt8(round * 10 + 5)
                try stage.show(producer, "the last of burst \(round)", ProducerFrame(last)) { $0.shows(last) }
            }
            let s = stage.pool.statistics
            // PipeWire itself may replace a buffer that the reader has not seen.
            #expect(s.received <= UInt64(producer.status.sent) && s.dropped == 0)
            #expect(s.received == s.delivered + s.coalesced + s.unread + s.inFlight)
        }

        @Test func damageOfTheSourceReachesReaders() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            _ = try stage.show(producer, ProducerFrame(10))
            let late = stage.pool.addReader(bell: try FileDescriptor.makeBell())
            _ = stage.pool.take(late)
            for number in [11, 12] as [UInt8] {
                var frame = ProducerFrame(number)
                frame.damage = [PixelRect(x: 32, y: 24, width: 32, height: 24)]
                #expect(try stage.show(producer, frame).shows(number))
            }
            guard let lease = stage.pool.take(late) else { throw Stage.TimedOut(what: "no picture") }
            #expect(lease.info.damage == Damage(PixelRect(x: 32, y: 24, width: 32, height: 24)))
        }

        // Faults: B15
        @Test func damageThatLiesIsFoundOut() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            _ = try stage.show(producer, ProducerFrame(10))
            // The grey quarter changes, the source says that a corner of the red one does.
            var frame = ProducerFrame(200)
            frame.damage = [PixelRect(x: 0, y: 0, width: 4, height: 4)]
            try stage.show(producer, "the truth", frame) { $0.shows(200) }
            #expect(stage.pool.statistics.received < 20)
        }

        @Test(.enabled(if: allocations_are_counted() == 1)) func nothingIsAllocatedInTheCallback() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            for number in 0..<20 { _ = try stage.show(producer, ProducerFrame(UInt8(number))) }
            AllocationWatch.start()
            for number in 20..<220 {
                var frame = ProducerFrame(UInt8(number))
                if number % 3 == 0 { frame.damage = [PixelRect(x: 0, y: 0, width: 64, height: 48)] }
                if number % 5 == 0 { frame.transform = UInt32(number % 8) }
                if number % 7 == 0 { frame.crop = PixelRect(x: 3, y: 3, width: 40, height: 30) }
                _ = try stage.show(producer, frame)
            }
            let (calls, allocations) = AllocationWatch.stop()
            #expect(calls >= 190 && allocations == 0)
        }
    }
}
