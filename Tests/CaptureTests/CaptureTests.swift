// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Loop
import Testing

@testable import Capture

/// One after the other: they share two processors and a daemon.
@Suite(.serialized) struct AllCaptureTests {}

extension AllCaptureTests {
    /// What comes in is what is in the pool.
    @Suite struct Pictures {
        // Faults: B13
        @Test(arguments: PixelFormat.allCases)
        func everyFormat(_ format: PixelFormat) throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.formats = [format.spaFormat.rawValue]
            options.filler = 0xff
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(100)).shows(100))
            #expect(try stage.show(producer, ProducerFrame(200)).shows(200))
            try stage.wait("its events") { stage.events.count >= 2 }
            let described = StreamFormat(
                size: options.size, sourceSize: options.size, pixelFormat: format, strideBytes: 256, memory: .sharedMemory)
            #expect(stage.events == [.formatChanged(id: 1, described), .firstFrame(id: 1)])
            try stage.close()
            #expect(stage.events.last == .closed(id: 1))
        }

        @Test func theFirstFormatOfTheSourceThatCanBeRead() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.formats = [SPA_VIDEO_FORMAT_I420, SPA_VIDEO_FORMAT_RGB, SPA_VIDEO_FORMAT_xRGB, SPA_VIDEO_FORMAT_BGRx].map(\.rawValue)
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(9)).shows(9))
        }

        // Faults: B12
        @Test(arguments: [(0, 0, 0), (4, 0, 0), (256, 64, 0), (0, 64, 100), (60, 4, 4_196)])
        func stridePaddingAndOffsets(_ padding: Int, _ offset: Int, _ mapOffset: Int) throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.size = PixelSize(width: 101, height: 37)
            (options.stridePadding, options.offset, options.mapOffset) = (padding, offset, mapOffset)
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            for number in [50, 150] as [UInt8] { #expect(try stage.show(producer, ProducerFrame(number)).shows(number)) }
        }

        @Test func aStrideOfNothingIsTheWidth() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            var frame = ProducerFrame(77)
            frame.stride = 0
            #expect(try stage.show(producer, frame).shows(77))
        }

        @Test(arguments: [ProducerOptions.Memory.memfd, .sealedMemfd, .pointer])
        func everyMemory(_ memory: ProducerOptions.Memory) throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.memory = memory
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            for number in [50, 150] as [UInt8] { #expect(try stage.show(producer, ProducerFrame(number)).shows(number)) }
        }

        @Test func plainMemoryThatIsCalledDmaBuf() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            (options.memory, options.modifier) = (.falseDmaBuf, 0)
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            for number in [50, 150] as [UInt8] { #expect(try stage.show(producer, ProducerFrame(number)).shows(number)) }
            try stage.wait("its events") { stage.events.count >= 2 }
            guard case .formatChanged(_, let format) = stage.events.first else { throw Stage.TimedOut(what: "no format") }
            #expect(format.memory == .dmaBuf)
        }

        @Test func sharedMemoryIsPreferred() throws {
            let stage = try Stage()
            var options = ProducerOptions()
            (options.memory, options.modifier, options.hasSharedMemoryToo) = (.falseDmaBuf, 0, true)
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(1)).shows(1))
            try stage.wait("its events") { stage.events.count >= 2 }
            guard case .formatChanged(_, let format) = stage.events.first else { throw Stage.TimedOut(what: "no format") }
            #expect(format.memory == .sharedMemory)
        }

        // Faults: B01 B18
        @Test func resizesMidStream() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            var number: UInt8 = 10
            for size in [(64, 48), (641, 479), (1, 1), (3, 5), (64, 48), (1_279, 719)].map({ PixelSize(width: $0.0, height: $0.1) }) {
                producer.tell(.resize(size))
                number += 10
                // The source needs a moment until it may send in the new size.
                let expected = number
                try stage.show(producer, "pictures of \(size)", ProducerFrame(number)) {
                    $0.size == size && (size.width < 4 || $0.shows(expected))
                }
            }
            func sizes() -> [PixelSize] {
                stage.events.compactMap { event in
                    if case .formatChanged(_, let format) = event { return format.size }
                    return nil
                }
            }
            try stage.wait("the events") { sizes().last == PixelSize(width: 1_279, height: 719) && sizes().count >= 5 }
            // Under a sanitizer all takes so long that it is a pause, and is told as one.
            let isSlow = getenv("ASAN_OPTIONS") != nil || getenv("TSAN_OPTIONS") != nil
            #expect(isSlow || !stage.events.contains(.paused(id: 1)))
        }

        // Faults: B20
        @Test(arguments: Transform.allCases)
        func transformsAndCrops(_ transform: Transform) throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            var frame = ProducerFrame(180)
            frame.transform = transform.rawValue
            let memory = [Shot.red, Shot.green, Shot.blue, Shot.grey(180)]
            // Which quarter of memory is seen in each quarter of the upright picture.
            let order: [Transform: [Int]] = [
                .normal: [0, 1, 2, 3], .rotated90: [2, 0, 3, 1], .rotated180: [3, 2, 1, 0], .rotated270: [1, 3, 0, 2],
                .flipped: [1, 0, 3, 2], .flipped90: [0, 2, 1, 3], .flipped180: [2, 3, 0, 1], .flipped270: [3, 1, 2, 0],
            ]
            let expected = try #require(order[transform]).map { memory[$0] }
            let shot = try stage.show(producer, frame)
            #expect(shot.shows(expected))
            #expect(shot.size == (transform.swapsSides ? PixelSize(width: 48, height: 64) : PixelSize(width: 64, height: 48)))
            frame.crop = PixelRect(x: 12, y: 4, width: 40, height: 40)
            let cropped = try stage.show(producer, frame)
            #expect(cropped.shows(expected) && cropped.size == PixelSize(width: 40, height: 40))
            frame.crop = PixelRect(x: 33, y: 25, width: 900, height: 900)
            #expect(try stage.show(producer, frame).size.width <= 31)
        }

        @Test func aNewMaskCoversAStillPictureAtOnce() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(70)).shows(70))
            stage.capture.setView(1, CaptureView(masks: [PixelRect(x: 0, y: 0, width: 32, height: 24)]))
            try stage.wait("the mask") {
                if let lease = stage.pool.latest() { return Shot(lease).shows([[16, 128, 128], Shot.green, Shot.blue, Shot.grey(70)]) }
                return false
            }
            try stage.show(producer, "the next picture", ProducerFrame(71)) {
                $0.shows([[16, 128, 128], Shot.green, Shot.blue, Shot.grey(71)])
            }
        }

        /// The source sends nothing more: what a crop leaves is there at once, and what it adds is black.
        @Test func aNewCropHidesAtOnceWhatItLeavesOut() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(70)).shows(70))
            let black = [16, 128, 128]
            let courses: [(PixelRect, PixelSize, [[Int]])] = [
                (
                    PixelRect(x: 32, y: 0, width: 32, height: 48), PixelSize(width: 32, height: 48),
                    [Shot.green, Shot.green, Shot.grey(70), Shot.grey(70)]
                ),
                (PixelRect(x: 0, y: 0, width: 64, height: 24), PixelSize(width: 64, height: 24), [black, Shot.green, black, Shot.green]),
                (PixelRect(x: 99, y: 0, width: 64, height: 24), PixelSize(width: 64, height: 48), [black, black, black, black]),
            ]
            for (crop, size, colours) in courses {
                stage.capture.setView(1, CaptureView(crop: crop))
                let count = stage.events.count
                try stage.wait("the answer") { stage.events.dropFirst(count).contains(.viewChanged(id: 1)) }
                guard let lease = stage.pool.latest() else { throw Stage.TimedOut(what: "no picture") }
                let shot = Shot(lease)
                #expect(shot.size == size && shot.shows(colours))
                // Whoever has drawn an older one may not show it any more.
                #expect(lease.info.sequence == stage.pool.oldestShowable)
            }
        }

        @Test func anotherSourceTakesOverWithItsFirstPicture() throws {
            let stage = try Stage()
            let old = try stage.makeProducer()
            try stage.connect(old)
            #expect(try stage.show(old, ProducerFrame(10)).shows(10))
            var options = ProducerOptions()
            (options.name, options.size) = ("other-source", PixelSize(width: 80, height: 60))
            let new = try stage.makeProducer(options)
            let node = try #require(new.status.node)
            let id = try stage.open(node, replacing: 1)
            try stage.wait("streaming") { new.status.isStreaming }
            // Until then the old one goes on.
            #expect(try stage.show(old, ProducerFrame(20)).shows(20))
            #expect(try stage.show(new, ProducerFrame(30)).shows(30))
            try stage.wait(for: .firstFrame(id: id))
            let first = stage.sequence
            #expect(stage.pool.oldestShowable <= first && stage.pool.oldestShowable > 2)
            for number in 40..<50 as Range<UInt8> {
                try stage.send(old, ProducerFrame(number))
            }
            #expect(try stage.show(new, ProducerFrame(60)).shows(60))
            #expect(stage.sequence == first + 1)
            stage.capture.close(1)
            try stage.wait(for: .closed(id: 1))
            #expect(try stage.show(new, ProducerFrame(61)).shows(61))
        }

        @Test func theOldSourceGoesOnWhenTheOtherIsClosedFirst() throws {
            let stage = try Stage()
            let old = try stage.makeProducer()
            try stage.connect(old)
            #expect(try stage.show(old, ProducerFrame(10)).shows(10))
            var options = ProducerOptions()
            options.name = "other-source"
            let new = try stage.makeProducer(options)
            let node = try #require(new.status.node)
            let id = try stage.open(node, replacing: 1)
            try stage.wait("streaming") { new.status.isStreaming }
            #expect(try stage.show(new, ProducerFrame(30)).shows(30))
            stage.capture.close(id)
            try stage.wait(for: .closed(id: id))
            // Nobody accepted its picture.
            #expect(stage.sequence == 0)
            try stage.wait("a second start") { old.status.starts == 2 }
            #expect(try stage.show(old, ProducerFrame(20)).shows(20))
        }

        @Test func viewsAndMasks() throws {
            let stage = try Stage()
            let producer = try stage.makeProducer()
            let node = try #require(producer.status.node)
            let crop = PixelRect(x: 32, y: 0, width: 999, height: 999)
            let id = try stage.open(node, view: CaptureView(crop: crop, masks: [PixelRect(x: 0, y: 24, width: 64, height: 24)]))
            try stage.wait("streaming") { producer.status.isStreaming }
            let black = [16, 128, 128]
            let shot = try stage.show(producer, ProducerFrame(90))
            #expect(shot.size == PixelSize(width: 32, height: 48) && shot.shows([Shot.green, Shot.green, black, black]))
            stage.capture.setView(id, CaptureView(masks: [PixelRect(x: 0, y: 0, width: 32, height: 24)]))
            try stage.show(producer, "the new view", ProducerFrame(91)) { $0.shows([black, Shot.green, Shot.blue, Shot.grey(91)]) }
            try stage.wait("a second start") { producer.status.starts == 2 }
            stage.capture.setView(id, CaptureView(crop: PixelRect(x: 100, y: 100, width: 5, height: 5)))
            try stage.show(producer, "nothing but black", ProducerFrame(92)) { $0.shows([black, black, black, black]) }
        }
    }
}
