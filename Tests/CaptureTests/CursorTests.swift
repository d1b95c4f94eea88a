// SPDX-License-Identifier: MIT
import CAllocations
import CPipeWire
import Frames
import Glibc
import Loop
import Synchronization
import Testing

@testable import Capture

/// What a producer writes of its pointer.
struct CursorMeta {
    struct Bitmap {
        var format: PixelFormat? = .bgra
        var size = PixelSize(width: 5, height: 3)
        var stride: Int32 = 20
        var offset = UInt32(MemoryLayout<spa_meta_bitmap>.size)
        /// Where in the cursor's metadata it is said to be.
        var place = UInt32(MemoryLayout<spa_meta_cursor>.size)
        var pixels: [UInt8] = CursorMeta.pattern(15)
    }

    var id: UInt32 = 1
    var (x, y): (Int32, Int32) = (0, 0)
    var (hotspotX, hotspotY): (Int32, Int32) = (1, 2)
    var bitmap: Bitmap?

    init(_ x: Int32, _ y: Int32, _ bitmap: Bitmap? = nil) { (self.x, self.y, self.bitmap) = (x, y, bitmap) }

    var bytes: [UInt8] {
        var cursor = spa_meta_cursor()
        (cursor.id, cursor.bitmap_offset) = (id, bitmap?.place ?? 0)
        cursor.position = spa_point(x: x, y: y)
        cursor.hotspot = spa_point(x: hotspotX, y: hotspotY)
        let head = withUnsafeBytes(of: cursor) { Array($0) }
        guard let bitmap else { return head }
        var info = spa_meta_bitmap()
        info.format = (bitmap.format?.spaFormat ?? SPA_VIDEO_FORMAT_UNKNOWN).rawValue
        info.size = spa_rectangle(width: UInt32(bitmap.size.width), height: UInt32(bitmap.size.height))
        (info.stride, info.offset) = (bitmap.stride, bitmap.offset)
        return head + withUnsafeBytes(of: info) { Array($0) } + bitmap.pixels
    }

    /// Bytes that all pixels differ in.
    static func pattern(_ count: Int) -> [UInt8] {
        var pixels: [UInt8] = []
        for index in 0..<UInt8(count) { pixels += [index, index + 100, index * 3, 200] }
        return pixels
    }
}

/// Buffers that came and were left where they are.
private let untaken = Atomic(0)

/// The pointer of a stage's pool, as a reader sees it.
private final class CursorReader {
    let stage: Stage
    let reader: FramePool.ReaderID
    let image = CursorImage()
    let bell: FileDescriptor

    init(_ stage: Stage) throws {
        self.stage = stage
        bell = try FileDescriptor.makeBell()
        reader = stage.pool.addReader(bell: bell, followsCursor: true)
    }

    /// Waits until the pointer is as it should be.
    func wait(_ what: String, _ isRight: (CursorImage) -> Bool) throws {
        try stage.wait(what) {
            _ = stage.pool.take(reader)
            _ = stage.pool.takeCursor(reader, into: image)
            return isRight(image)
        }
    }

    func wait(at x: Int, _ y: Int) throws {
        try wait("the pointer at \(x), \(y)") { $0.cursor.isVisible && $0.cursor.x == x && $0.cursor.y == y }
    }

    /// One pixel of the bitmap, as it lies in the picture; nil outside of the bitmap.
    func pixel(_ x: Int, _ y: Int) -> [UInt8]? {
        let area = image.cursor.area
        let (column, row) = (x - area.x, y - area.y)
        guard (0..<area.width).contains(column), (0..<area.height).contains(row) else { return nil }
        let start = row * image.cursor.strideBytes + column * 4
        return Array(image.pixels[start..<(start + 4)])
    }
}

extension AllCaptureTests {
    /// The pointer that comes beside the pixels.
    @Suite struct Cursors {
        private struct Scene {
            let stage: Stage
            let producer: Producer
            let cursor: CursorReader

            /// A source with a picture on it.
            init(bytes: Int = 64 * 64 * 4 + 64, view: CaptureView = CaptureView(), _ first: ProducerFrame = ProducerFrame(50)) throws {
                stage = try Stage()
                var options = ProducerOptions()
                options.cursorBytes = bytes
                producer = try stage.makeProducer(options)
                cursor = try CursorReader(stage)
                try stage.connect(producer, view: view, hasCursor: true)
                var first = first
                first.cursor = first.cursor.isEmpty ? CursorMeta(0, 0).bytes : first.cursor
                _ = try stage.show(producer, first)
            }

            /// Sends a buffer without pixels.
            func say(_ meta: CursorMeta) {
                var frame = ProducerFrame(0)
                (frame.isCursorOnly, frame.cursor) = (true, meta.bytes)
                producer.send(frame)
            }
        }

        @Test(arguments: [(PixelFormat.bgra, [0, 1, 2, 3]), (.rgba, [2, 1, 0, 3]), (.argb, [3, 2, 1, 0]), (.abgr, [3, 0, 1, 2])])
        func everyFormatOfItsBitmap(_ format: PixelFormat, _ order: [Int]) throws {
            let scene = try Scene()
            var bitmap = CursorMeta.Bitmap()
            (bitmap.format, bitmap.stride) = (format, 24)
            bitmap.pixels = [UInt8](repeating: 0xEE, count: 24 * 3)
            let expected = CursorMeta.pattern(15)
            for pixel in 0..<15 {
                for byte in 0..<4 { bitmap.pixels[pixel / 5 * 24 + pixel % 5 * 4 + byte] = expected[pixel * 4 + order[byte]] }
            }
            scene.say(CursorMeta(20, 30, bitmap))
            try scene.cursor.wait(at: 20, 30)
            #expect(scene.cursor.image.cursor.area == PixelRect(x: 19, y: 28, width: 5, height: 3))
            #expect(Array(scene.cursor.image.pixels) == expected)
        }

        @Test func itMovesHidesAndComesBackOverAStillPicture() throws {
            let scene = try Scene()
            let before = scene.stage.pool.statistics
            scene.say(CursorMeta(20, 30))
            scene.say(CursorMeta(10, 11, CursorMeta.Bitmap()))
            try scene.cursor.wait(at: 10, 11)
            let serial = scene.cursor.image.cursor.bitmapSerial
            scene.say(CursorMeta(12, 13))
            try scene.cursor.wait(at: 12, 13)
            #expect(scene.cursor.image.cursor.bitmapSerial == serial && scene.cursor.image.pixels.count == 60)
            var empty = CursorMeta.Bitmap()
            empty.offset = 0
            scene.say(CursorMeta(14, 13, empty))
            try scene.cursor.wait("no bitmap") { !$0.cursor.isVisible }
            scene.say(CursorMeta(15, 13, CursorMeta.Bitmap()))
            try scene.cursor.wait(at: 15, 13)
            (empty.offset, empty.size) = (20, PixelSize(width: 0, height: 0))
            scene.say(CursorMeta(16, 13, empty))
            try scene.cursor.wait("a bitmap without pixels") { !$0.cursor.isVisible }
            scene.say(CursorMeta(17, 13, CursorMeta.Bitmap()))
            try scene.cursor.wait(at: 17, 13)
            // Compositors say that it is on another monitor by saying nothing.
            var absent = CursorMeta(18, 13)
            absent.id = 0
            scene.say(absent)
            try scene.cursor.wait("elsewhere") { !$0.cursor.isVisible }
            scene.say(CursorMeta(19, 13))
            try scene.cursor.wait(at: 19, 13)
            #expect(scene.cursor.image.pixels.count == 60, "it still has its bitmap")
            for (x, y) in [(Int32(-20), Int32(10)), (10, 60), (.max, .max), (.min, 0)] {
                scene.say(CursorMeta(x, y))
                try scene.cursor.wait("outside of the picture") { !$0.cursor.isVisible }
                scene.say(CursorMeta(20, 13))
                try scene.cursor.wait(at: 20, 13)
            }
            scene.say(CursorMeta(-1, 49))
            try scene.cursor.wait(at: -1, 49)
            let after = scene.stage.pool.statistics
            #expect(after.cursorOnly == after.received - before.received, "none of these was a picture")
        }

        /// With the damage that a producer named before them, and nothing else, out of date.
        @Test func buffersWithoutPixelsDamageNothing() throws {
            let scene = try Scene()
            var frame = ProducerFrame(51)
            (frame.damage, frame.cursor) = ([PixelRect(x: 32, y: 24, width: 32, height: 24)], CursorMeta(5, 5, CursorMeta.Bitmap()).bytes)
            #expect(try scene.stage.show(scene.producer, frame).shows(51))
            _ = scene.stage.pool.take(scene.cursor.reader)
            scene.say(CursorMeta(9, 9))
            try scene.cursor.wait(at: 9, 9)
            frame = ProducerFrame(52)
            (frame.damage, frame.cursor) = ([PixelRect(x: 40, y: 30, width: 8, height: 8)], CursorMeta(9, 9).bytes)
            _ = try scene.stage.show(scene.producer, frame)
            let lease = scene.stage.pool.take(scene.cursor.reader)
            var damage = Damage.everything
            if let lease { damage = lease.info.damage }
            #expect(damage == Damage(PixelRect(x: 40, y: 30, width: 8, height: 8)))
        }

        @Test func brokenPicturesBringItToo() throws {
            let scene = try Scene()
            var frame = ProducerFrame(1)
            (frame.isCorruptHeader, frame.cursor) = (true, CursorMeta(7, 8, CursorMeta.Bitmap()).bytes)
            scene.producer.send(frame)
            try scene.cursor.wait(at: 7, 8)
            (frame.isCorruptHeader, frame.isCorruptChunk, frame.cursor) = (false, true, CursorMeta(8, 8).bytes)
            scene.producer.send(frame)
            try scene.cursor.wait(at: 8, 8)
            (frame.isCorruptChunk, frame.stride, frame.cursor) = (false, -1, CursorMeta(9, 8).bytes)
            scene.producer.send(frame)
            try scene.cursor.wait(at: 9, 8)
            let statistics = scene.stage.pool.statistics
            #expect((statistics.corrupted, statistics.cursorOnly, statistics.dropped) == (1, 1, 1))
        }

        /// The bitmap comes once, in a buffer that a newer one overtakes.
        @Test func overtakenPicturesBringItToo() throws {
            let scene = try Scene()
            let process = StreamEvents.table.pointee.process
            untaken.store(0, ordering: .relaxed)
            StreamEvents.table.pointee.process = { _ in untaken.add(1, ordering: .relaxed) }
            var frame = ProducerFrame(60)
            frame.cursor = CursorMeta(7, 8, CursorMeta.Bitmap()).bytes
            scene.producer.send(frame)
            // PipeWire itself drops one that comes before the graph has passed on the last.
            try scene.stage.wait("the first is there") { untaken.load(ordering: .relaxed) >= 1 }
            var moved = ProducerFrame(61)
            moved.cursor = CursorMeta(30, 20).bytes
            scene.producer.send(moved)
            try scene.stage.wait("both are there") { untaken.load(ordering: .relaxed) >= 2 }
            StreamEvents.table.pointee.process = process
            _ = try scene.stage.show(scene.producer, moved)
            try scene.cursor.wait(at: 30, 20)
            #expect(Array(scene.cursor.image.pixels) == CursorMeta.pattern(15))
        }

        /// The producer turns the whole of its picture, the pointer with it.
        @Test(arguments: Transform.allCases) func turnedAndCropped(_ transform: Transform) throws {
            var frame = ProducerFrame(50)
            frame.transform = transform.rawValue
            frame.crop = PixelRect(x: 6, y: 4, width: 50, height: 40)
            frame.cursor = CursorMeta(20, 15, CursorMeta.Bitmap()).bytes
            let crop = PixelRect(x: 3, y: 5, width: 30, height: 30)
            let scene = try Scene(view: CaptureView(crop: crop), frame)
            let source = SourcePicture(
                bytes: UnsafeRawBufferPointer(start: nil, count: 0), size: PixelSize(width: 64, height: 48), strideBytes: 256,
                format: .bgrx,
                crop: frame.crop, transform: transform)
            /// Where a pixel of memory lies in the picture.
            func place(_ x: Int, _ y: Int) -> (x: Int, y: Int) {
                let rect = source.upright(PixelRect(x: x, y: y, width: 1, height: 1))
                return (rect.x - crop.x, rect.y - crop.y)
            }
            let point = place(20, 15)
            try scene.cursor.wait(at: point.x, point.y)
            let pixels = CursorMeta.pattern(15)
            for index in 0..<15 {
                let at = place(19 + index % 5, 13 + index / 5)
                #expect(scene.cursor.pixel(at.x, at.y) == Array(pixels[(index * 4)..<(index * 4 + 4)]))
            }
            // A cursor alone lies over the same picture.
            scene.say(CursorMeta(25, 20))
            let next = place(25, 20)
            try scene.cursor.wait(at: next.x, next.y)
        }

        @Test func masksHideIt() throws {
            let mask = PixelRect(x: 20, y: 10, width: 20, height: 20)
            let scene = try Scene(view: CaptureView(crop: PixelRect(x: 4, y: 2, width: 40, height: 40), masks: [mask]))
            // Half of its five columns lie over the mask, which begins at 20.
            scene.say(CursorMeta(18, 15, CursorMeta.Bitmap()))
            try scene.cursor.wait(at: 14, 13)
            let pixels = CursorMeta.pattern(15)
            #expect(scene.cursor.pixel(15, 12) == Array(pixels[28..<32]))
            for (x, y) in [(16, 11), (17, 12), (17, 13)] { #expect(scene.cursor.pixel(x, y) == [0, 0, 0, 0]) }
            // In the mask, at its edges and outside of the picture but under it.
            for (x, y) in [(25, 15), (20, 10), (39, 29)] as [(Int32, Int32)] {
                scene.say(CursorMeta(x, y))
                try scene.cursor.wait("under the mask") { !$0.cursor.isVisible && $0.cursor.x == 0 && $0.pixels.isEmpty }
                scene.say(CursorMeta(42, 35))
                try scene.cursor.wait(at: 38, 33)
                #expect(Array(scene.cursor.image.pixels) == pixels, "whole again")
            }
            // A new mask covers it at once, though nothing comes of the source.
            scene.say(CursorMeta(10, 10))
            try scene.cursor.wait(at: 6, 8)
            scene.stage.capture.setView(1, CaptureView(masks: [PixelRect(x: 0, y: 0, width: 30, height: 30)]))
            try scene.cursor.wait("under the new mask") { !$0.cursor.isVisible }
        }

        @Test func whereNothingOfTheSourceIsShownThereIsNone() throws {
            var frame = ProducerFrame(50)
            frame.cursor = CursorMeta(7, 8, CursorMeta.Bitmap()).bytes
            let scene = try Scene(frame)
            try scene.cursor.wait(at: 7, 8)
            scene.stage.capture.setView(1, CaptureView(crop: PixelRect(x: 100, y: 0, width: 9, height: 9)))
            frame.cursor = CursorMeta(7, 8).bytes
            _ = try scene.stage.show(scene.producer, frame)
            try scene.cursor.wait("nothing") { !$0.cursor.isVisible }
        }

        /// The room that the producer offers is the producer's choice, within what can be handled.
        @Test(arguments: [1, 24, 384, 1_024]) func everySizeOfItsBitmap(_ side: Int) throws {
            var bitmap = CursorMeta.Bitmap()
            (bitmap.size, bitmap.stride) = (PixelSize(width: side, height: side), 0)
            bitmap.pixels = [UInt8](repeating: 77, count: side * side * 4)
            let scene = try Scene(bytes: side * side * 4 + MemoryLayout<spa_meta_cursor>.size + MemoryLayout<spa_meta_bitmap>.size)
            scene.say(CursorMeta(1, 2, bitmap))
            try scene.cursor.wait(at: 1, 2)
            #expect(scene.cursor.image.pixels.count == side * side * 4 && scene.cursor.image.pixels.allSatisfy { $0 == 77 })
        }

        /// A share without it in a pool that has shown one.
        @Test func onlyWhereItWasAskedFor() throws {
            let scene = try Scene()
            scene.say(CursorMeta(7, 8, CursorMeta.Bitmap()))
            try scene.cursor.wait(at: 7, 8)
            var options = ProducerOptions()
            (options.name, options.cursorBytes) = ("other-source", 64 * 64 * 4 + 64)
            let other = try scene.stage.makeProducer(options)
            try scene.stage.connect(other)
            var frame = ProducerFrame(99)
            frame.cursor = CursorMeta(9, 9, CursorMeta.Bitmap()).bytes
            #expect(try scene.stage.show(other, frame).shows(99))
            try scene.cursor.wait("that of the other stream is gone") { !$0.cursor.isVisible }
            #expect(try scene.stage.show(other, frame).shows(99))
            _ = scene.stage.pool.takeCursor(scene.cursor.reader, into: scene.cursor.image)
            #expect(!scene.cursor.image.cursor.isVisible)
        }

        @Test(.enabled(if: allocations_are_counted() == 1)) func nothingIsAllocatedInTheCallback() throws {
            let scene = try Scene(view: CaptureView(masks: [PixelRect(x: 30, y: 0, width: 9, height: 40)]))
            scene.say(CursorMeta(7, 8, CursorMeta.Bitmap()))
            try scene.cursor.wait(at: 7, 8)
            AllocationWatch.start()
            for number in 0..<200 as Range<Int32> {
                let (x, y) = (number % 60, number % 40)
                let meta = CursorMeta(x, y, number % 3 == 0 ? CursorMeta.Bitmap() : nil)
                if number % 2 == 0 {
                    let before = scene.stage.pool.statistics.received
                    scene.say(meta)
                    try scene.stage.wait("a buffer") { scene.stage.pool.statistics.received > before }
                } else {
                    var frame = ProducerFrame(UInt8(number))
                    (frame.transform, frame.cursor) = (UInt32(number % 8), meta.bytes)
                    _ = try scene.stage.show(scene.producer, frame)
                }
            }
            let (calls, allocations) = AllocationWatch.stop()
            #expect(calls >= 190 && allocations == 0)
        }
    }
}

/// What a producer may write there, read without PipeWire.
@Suite struct CursorReadingTests {
    /// Memory that ends where nothing may be read.
    private final class Fence {
        let base: UnsafeMutableRawPointer
        private let length = 2 * 65_536

        init() throws {
            let mapped = mmap(nil, length + 4_096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            base = try #require(mapped == MAP_FAILED ? nil : mapped)
            mprotect(base + length, 4_096, PROT_NONE)
        }

        deinit { munmap(base, length + 4_096) }

        func end(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
            let start = base + (length - bytes.count)
            bytes.withUnsafeBytes { if let source = $0.baseAddress { memcpy(start, source, bytes.count) } }
            return UnsafeRawBufferPointer(start: start, count: bytes.count)
        }
    }

    @Test func whatIsNoBitmapChangesNothing() throws {
        func reading(_ change: (inout CursorMeta.Bitmap) -> Void) -> CursorReading.Bitmap? {
            var bitmap = CursorMeta.Bitmap()
            change(&bitmap)
            return CursorMeta(1, 2, bitmap).bytes.withUnsafeBytes { CursorReading($0)?.bitmap }
        }
        let changes: [(inout CursorMeta.Bitmap) -> Void] = [
            { $0.place = 1 }, { $0.place = 27 }, { $0.place = 1_000 }, { $0.place = .max }, { $0.format = nil }, { $0.offset = 1 },
            { $0.offset = 19 }, { $0.offset = .max }, { $0.offset = 80 },
        ]
        for (index, change) in changes.enumerated() {
            guard case .unchanged = reading(change) else {
                Issue.record("change \(index) made a bitmap")
                continue
            }
        }
        guard case .pixels = reading({ _ in }) else { throw Stage.TimedOut(what: "no bitmap") }
        let short = CursorMeta(1, 2).bytes.dropLast()
        #expect(Array(short).withUnsafeBytes { CursorReading($0) == nil })
    }

    /// Random fields, most of them near to what they should be; random lengths; and nothing is read beyond the end.
    @Test func nothingThatAProducerWritesLeadsOutside() throws {
        let fence = try Fence()
        let pool = FramePool()
        let tracker = try CursorTracker(pool: pool)
        let reader = pool.addReader(bell: try FileDescriptor.makeBell(), followsCursor: true)
        let image = CursorImage()
        var random = SystemRandomNumberGenerator()
        let numbers: [Int32] = [0, 1, 2, 3, 4, 19, 20, 27, 28, 29, 48, 60, 64, 256, 384, 1_024, 1_025, 4_096, 65_536, .max, .min, -1, -4]
        func pick() -> Int32 { numbers.randomElement(using: &random) ?? 0 }
        var pictures = 0
        for round in 0..<20_000 {
            var bitmap = CursorMeta.Bitmap()
            bitmap.pixels = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: Int.random(in: 0...600, using: &random))
            var meta = CursorMeta(pick(), pick(), bitmap)
            (meta.hotspotX, meta.hotspotY) = (pick(), pick())
            var bytes = meta.bytes
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let place = Int.random(in: 0..<12, using: &random) * 4
                withUnsafeBytes(of: pick()) { bytes.replaceSubrange(place..<(place + 4), with: $0) }
            }
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &random) * Int.random(in: 0...1, using: &random))
            let memory = fence.end(bytes)
            guard let reading = CursorReading(memory) else {
                #expect(bytes.count < MemoryLayout<spa_meta_cursor>.size)
                continue
            }
            if case .pixels(let pixels, _, _, _) = reading.bitmap, let start = pixels.baseAddress, let first = memory.baseAddress {
                #expect(start >= first && start + pixels.count <= first + memory.count)
                pictures += 1
            }
            tracker.note(reading)
            let size = PixelSize(width: Int.random(in: 1...80, using: &random), height: Int.random(in: 1...80, using: &random))
            let visible = PixelRect(x: Int.random(in: 0...9, using: &random), y: 3, width: size.width, height: size.height)
            let transform = Transform.allCases.randomElement(using: &random) ?? .normal
            let part = PixelRect(transform.swapsSides ? size.transposed : size)
            let masks = (0..<Int.random(in: 0...2, using: &random)).map { _ in
                PixelRect(x: Int(pick()), y: Int(pick()), width: Int(pick()), height: Int(pick()))
            }
            tracker.show(over: CursorTracker.Placement(visible: visible, transform: transform, part: part), CaptureView(masks: masks))
            guard pool.takeCursor(reader, into: image), image.cursor.isVisible else { continue }
            #expect(!image.cursor.area.intersection(PixelRect(part.size)).isEmpty)
            #expect(image.pixels.count == image.cursor.size.width * image.cursor.size.height * 4 && image.pixels.count > 0)
        }
        #expect(pictures > 1_000)
    }
}
