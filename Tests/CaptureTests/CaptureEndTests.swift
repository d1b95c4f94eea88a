// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Glibc
import Loop
import Testing

@testable import Capture

extension AllCaptureTests {
    /// How requests end.
    @Suite struct Ends {
        private func openDescriptors() -> Int {
            guard let directory = opendir("/proc/self/fd") else { return -1 }
            defer { closedir(directory) }
            var count = 0
            while readdir(directory) != nil { count += 1 }
            return count
        }

        private func threads() -> Int {
            guard let directory = opendir("/proc/self/task") else { return -1 }
            defer { closedir(directory) }
            var count = 0
            while readdir(directory) != nil { count += 1 }
            return count
        }

        // Faults: B09 B10
        @Test func aNodeThatGoesIsARemovedSource() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(1)).shows(1))
            producer.tell(.destroy)
            try stage.wait(for: .sourceRemoved(id: 1))
            try stage.close()
            #expect(stage.events.suffix(2) == [.sourceRemoved(id: 1), .closed(id: 1)])
            #expect(stage.events.count { $0 == .sourceRemoved(id: 1) } == 1)
        }

        // Faults: B53
        @Test func aDaemonThatDiesIsADisconnection() throws {
            let pipewire = try PrivatePipeWire()
            let stage = try Stage(pipewire)
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(1)).shows(1))
            pipewire.killDaemon()
            try stage.wait(for: .disconnected(id: 1))
            try stage.close()
            #expect(stage.events.suffix(2) == [.disconnected(id: 1), .closed(id: 1)])
        }

        // Faults: B53
        @Test func aDaemonThatDiedBefore() throws {
            let pipewire = try PrivatePipeWire(hasManager: false)
            let stage = try Stage(pipewire)
            let remote = try pipewire.connect()
            pipewire.killDaemon()
            try stage.open(5, remote: remote)
            try stage.wait(for: .disconnected(id: 1))
            try stage.close()
        }

        @Test func aDescriptorThatIsNoConnection() throws {
            let stage = try Stage()
            let (reading, writing) = try FileDescriptor.pipe()
            try stage.open(5, remote: reading)
            try stage.wait(for: .failed(id: 1, .cannotConnect(Errno(ENOTSOCK))))
            try stage.close()
            _ = writing
        }

        @Test(arguments: [UInt32.max, 12_345])
        func aNodeThatIsNotThere(_ node: UInt32) throws {
            let stage = try Stage()
            try stage.open(node)
            try stage.wait(for: .failed(id: 1, .nodeMissing(node: node)))
            try stage.close()
            #expect(stage.events == [.failed(id: 1, .nodeMissing(node: node)), .closed(id: 1)])
        }

        // Faults: B50
        @Test func aDecoyIsNeverShown() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.name = "webcam"
            let decoy = try stage.makeProducer(options)
            var target: Producer? = try stage.makeProducer()
            let node = try #require(target?.status.node)
            let serial = target?.status.serial
            target?.tell(.destroy)
            try stage.wait("the target's end") { target?.status.isGone ?? true }
            target = nil
            // Its number may be another's by now; its serial is not.
            let reused = try stage.makeProducer(options)
            try stage.open(reused.status.node ?? node, serial: serial ?? 1)
            try stage.wait("an end") { stage.events.contains { if case .failed = $0 { true } else { false } } }
            decoy.send(ProducerFrame(1))
            reused.send(ProducerFrame(1))
            try stage.close()
            #expect(stage.pool.statistics.received == 0 && !decoy.status.isStreaming && !reused.status.isStreaming)
        }

        // Faults: B50
        @Test func aTargetThatGoesLaterIsNotReplaced() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.name = "webcam"
            let decoy = try stage.makeProducer(options)
            let target = try stage.makeProducer()
            try stage.connect(target)
            #expect(try stage.show(target, ProducerFrame(1)).shows(1))
            target.tell(.destroy)
            try stage.wait(for: .sourceRemoved(id: 1))
            decoy.send(ProducerFrame(2))
            try stage.close()
            #expect(stage.pool.statistics.received == 1 && !decoy.status.isStreaming)
        }

        // Faults: B21
        @Test func noCommonFormatNamesTheSources() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.formats = [SPA_VIDEO_FORMAT_xBGR_210LE, SPA_VIDEO_FORMAT_I420].map(\.rawValue)
            let producer = try stage.makeProducer(options)
            try stage.open(try #require(producer.status.node))
            try stage.wait("an end") { !stage.events.isEmpty }
            #expect(stage.events == [.failed(id: 1, .noCommonFormat(offered: ["xBGR_210LE", "I420"]))])
            try stage.close()
        }

        // Faults: B26
        @Test func tiledMemoryAloneIsNamed() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.modifier = 0x0100_0000_0000_0001
            let producer = try stage.makeProducer(options)
            try stage.open(try #require(producer.status.node))
            try stage.wait("an end") { !stage.events.isEmpty }
            #expect(stage.events == [.failed(id: 1, .noCommonFormat(offered: ["BGRx in tiled DMA-BUF"]))])
            try stage.close()
        }

        @Test func memoryThatCannotBeMappedIsAnError() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            (options.memory, options.modifier) = (.unmappableDmaBuf, 0)
            let producer = try stage.makeProducer(options)
            try stage.open(try #require(producer.status.node))
            try stage.wait("an end") { stage.events.contains { if case .failed(_, .unusableMemory) = $0 { true } else { false } } }
            try stage.close()
        }

        @Test(arguments: [UInt32?.none, 0, 1, 60, 5_000])
        func anyRateWillDo(_ rate: UInt32?) throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.greatestRate = rate
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(3)).shows(3))
        }

        // Faults: B27
        @Test func aFixedRateWillDo() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            (options.greatestRate, options.fixedRate) = (nil, 30)
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(3)).shows(3))
        }

        // Faults: B06 B08
        @Test func aSourceThatStopsForAWhileIsPaused() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            _ = try stage.show(producer, ProducerFrame(1))
            producer.tell(.setActive(false))
            try stage.wait(for: .paused(id: 1))
            if let lease = stage.pool.latest() { #expect(Shot(lease).shows(1)) }
            producer.tell(.setActive(true))
            try stage.wait(for: .resumed(id: 1))
            try stage.wait("streaming") { producer.status.isStreaming }
            #expect(try stage.show(producer, ProducerFrame(2)).shows(2))
        }

        @Test func aSourceThatSendsNothingIsRemindedOnce() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            try stage.wait("a second start") { producer.status.starts == 2 }
            try stage.wait("streaming") { producer.status.isStreaming }
            #expect(try stage.show(producer, ProducerFrame(2)).shows(2))
            #expect(producer.status.starts == 2 && !stage.events.contains(.paused(id: 1)))
        }

        // Faults: B33
        @Test func closingInAnyState() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            let node = try #require(producer.status.node)
            for _ in 0..<10 {
                try stage.open(node)
                try stage.close()
            }
            stage.capture.close(99)
            try stage.open(node)
            try stage.wait("streaming") { producer.status.isStreaming }
            try stage.close()
            stage.capture.close(1)
            try stage.open(node)
            try stage.wait("streaming again") { producer.status.isStreaming }
        }

        // Faults: B32
        @Test func noDescriptorAndNoThreadIsLeft() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            let node = try #require(producer.status.node)
            func cycle(_ number: UInt8) throws {
                try stage.open(node)
                try stage.wait("streaming") { producer.status.isStreaming }
                // The very first frame may come before the link is ready.
                try stage.show(producer, "a picture", ProducerFrame(number)) { $0.shows(number) }
                try stage.close()
                try stage.wait("the source to notice") { !producer.status.isStreaming }
            }
            for number in 0..<5 { try cycle(UInt8(number)) }
            // The source's buffers go a little later than the request.
            try stage.wait("the source's buffers to go") { producer.status.buffers == 0 }
            let (descriptors, threads) = (openDescriptors(), threads())
            for number in 0..<100 { try cycle(UInt8(number)) }
            try stage.wait("the source's buffers to go") { producer.status.buffers == 0 }
            try stage.wait("the last descriptors to go") { openDescriptors() <= descriptors && self.threads() <= threads }
        }

        @Test func stoppingWithRequestsOpen() throws {
            let before = openDescriptors()
            do {
                let stage = try Stage()
                let producer = try stage.makeProducer()
                try stage.connect(producer)
                _ = try stage.show(producer, ProducerFrame(1))
            }
            #expect(openDescriptors() <= before + 4)
        }
    }
}
