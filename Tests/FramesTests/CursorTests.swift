// SPDX-License-Identifier: MIT
import CAllocations
import Frames
import Glibc
import Loop
import Testing

@Suite struct CursorTests {
    static let size = PixelSize(width: 64, height: 48)

    /// A pool with a picture, and one reader that follows its pointer.
    final class Rig {
        let pool = FramePool()
        let bell: FileDescriptor
        let reader: FramePool.ReaderID
        let image = CursorImage()
        let bitmap: CursorBitmap

        init() throws {
            (bell, bitmap) = (try FileDescriptor.makeBell(), try CursorBitmap())
            reader = pool.addReader(bell: bell, followsCursor: true)
            try pool.prepareCursor()
            writePicture()
            _ = isRung()
            takePicture()
        }

        func writePicture() {
            pool.write(size: size, time: .now, arrival: .now) { _, _ in true }
            pool.wakeReaders()
        }

        func takePicture() { _ = pool.take(reader) }
        func takeCursor() -> Bool { pool.takeCursor(reader, into: image) }

        func isRung() -> Bool {
            var count: UInt64 = 0
            return read(bell.raw, &count, 8) == 8
        }

        /// Shows a pointer whose bytes are all the same, or, without any, the bitmap that was there.
        func show(_ x: Int, _ y: Int, side: Int = 4, filler: UInt8? = nil) {
            if let filler { fill(bitmap, side, filler) }
            pool.showCursor(x: x, y: y, hotspotX: 1, hotspotY: 2, bitmap, isNew: filler != nil)
            pool.wakeReaders()
        }
    }

    @Test func thereIsNoneUntilOneIsShown() throws {
        let rig = try Rig()
        #expect(!rig.takeCursor() && rig.image.cursor.serial == 0 && rig.image.pixels.isEmpty)
        rig.pool.hideCursor()
        rig.pool.wakeReaders()
        #expect(!rig.isRung() && !rig.takeCursor())
    }

    @Test func itWakesReadersOfAStillPictureOnce() throws {
        let rig = try Rig()
        rig.show(10, 20, filler: 7)
        #expect(rig.isRung())
        rig.show(11, 20)
        rig.show(12, 20)
        #expect(!rig.isRung())
        rig.takePicture()
        #expect(rig.takeCursor() && rig.image.cursor.x == 12 && rig.image.cursor.y == 20)
        #expect(rig.image.cursor.area == PixelRect(x: 11, y: 18, width: 4, height: 4))
        #expect(rig.image.pixels.count == 64 && rig.image.pixels.allSatisfy { $0 == 7 })
        #expect(!rig.takeCursor())
        rig.show(12, 20)
        #expect(!rig.isRung(), "the same pointer at the same place is nothing new")
        rig.show(13, 20)
        #expect(rig.isRung())
    }

    @Test func onlyThoseThatFollowItAreWoken() throws {
        let rig = try Rig()
        let other = try FileDescriptor.makeBell()
        let reader = rig.pool.addReader(bell: other)
        _ = rig.pool.take(reader)
        other.silence()
        rig.show(10, 20, filler: 7)
        var count: UInt64 = 0
        #expect(rig.isRung() && read(other.raw, &count, 8) != 8)
    }

    @Test func itWaitsForAPicture() throws {
        let pool = FramePool()
        let bell = try FileDescriptor.makeBell()
        let reader = pool.addReader(bell: bell, followsCursor: true)
        try pool.prepareCursor()
        let image = CursorImage()
        let bitmap = try CursorBitmap()
        fill(bitmap, 2, 9)
        pool.showCursor(x: 1, y: 1, hotspotX: 0, hotspotY: 0, bitmap, isNew: true)
        pool.wakeReaders()
        var count: UInt64 = 0
        #expect(read(bell.raw, &count, 8) != 8)
        pool.write(size: Self.size, time: .now, arrival: .now) { _, _ in true }
        pool.wakeReaders()
        #expect(read(bell.raw, &count, 8) == 8)
        #expect(pool.takeCursor(reader, into: image) && image.pixels.count == 16)
    }

    @Test func aBitmapStaysWhileItMovesAndComesAgainAfterItWasHidden() throws {
        let rig = try Rig()
        rig.show(10, 20, filler: 7)
        _ = rig.takeCursor()
        let first = rig.image.cursor
        rig.show(20, 20)
        #expect(rig.takeCursor() && rig.image.cursor.bitmapSerial == first.bitmapSerial && rig.image.cursor.serial > first.serial)
        rig.pool.hideCursor()
        #expect(rig.takeCursor() && !rig.image.cursor.isVisible && rig.image.pixels.isEmpty)
        rig.show(20, 21)
        #expect(rig.takeCursor() && rig.image.pixels.count == 64 && rig.image.pixels.allSatisfy { $0 == 7 })
        rig.show(20, 21, side: 8, filler: 3)
        #expect(rig.takeCursor() && rig.image.cursor.bitmapSerial != first.bitmapSerial && rig.image.cursor.size.width == 8)
        #expect(rig.image.pixels.count == 256 && rig.image.pixels.allSatisfy { $0 == 3 })
    }

    @Test func aLateReaderGetsTheNewest() throws {
        let rig = try Rig()
        rig.show(10, 20, filler: 7)
        rig.show(30, 20)
        let reader = rig.pool.addReader(bell: try FileDescriptor.makeBell(), followsCursor: true)
        let image = CursorImage()
        #expect(rig.pool.takeCursor(reader, into: image) && image.cursor.x == 30 && image.pixels.first == 7)
    }

    @Test func clearingForgetsIt() throws {
        let rig = try Rig()
        rig.show(10, 20, filler: 7)
        _ = rig.takeCursor()
        rig.pool.clear()
        rig.writePicture()
        #expect(rig.takeCursor() && !rig.image.cursor.isVisible && rig.image.pixels.isEmpty)
        let late = rig.pool.addReader(bell: try FileDescriptor.makeBell(), followsCursor: true)
        let image = CursorImage()
        #expect(rig.pool.takeCursor(late, into: image) && !image.cursor.isVisible && image.pixels.isEmpty)
        // A bitmap of before is not there either, should a writer count on it.
        rig.show(10, 20)
        #expect(rig.takeCursor() && rig.image.pixels.allSatisfy { $0 == 0 })
    }

    /// It happens in PipeWire's callback.
    @Test(.enabled(if: allocations_are_counted() == 1)) func nothingIsAllocated() throws {
        let rig = try Rig()
        fill(rig.bitmap, 64, 7)
        rig.pool.showCursor(x: 1, y: 1, hotspotX: 0, hotspotY: 0, rig.bitmap, isNew: true)
        let before = allocations_of_this_thread()
        for x in 0..<100 {
            rig.pool.showCursor(x: x, y: 1, hotspotX: 0, hotspotY: 0, rig.bitmap, isNew: x % 2 == 0)
            if x % 10 == 0 { rig.pool.hideCursor() }
            rig.pool.wakeReaders()
        }
        #expect(allocations_of_this_thread() - before == 0)
    }

    // MARK: - Bitmaps

    /// Pixels that all differ, as they are to come out: blue, green, red, alpha.
    static func pattern(_ size: PixelSize) -> [[UInt8]] {
        (0..<(size.width * size.height)).map { index in
            let number = UInt8(index)
            return [number, number + 50, number &* 7, 255 - number]
        }
    }

    @Test(arguments: [(PixelFormat.bgra, [0, 1, 2, 3]), (.rgba, [2, 1, 0, 3]), (.argb, [3, 2, 1, 0]), (.abgr, [3, 0, 1, 2])])
    func everyFormatOfABitmap(_ format: PixelFormat, _ order: [Int]) throws {
        let size = PixelSize(width: 5, height: 3)
        let pixels = Self.pattern(size)
        let stride = 28
        var bytes = [UInt8](repeating: 0xEE, count: stride * size.height)
        for (index, pixel) in pixels.enumerated() {
            for byte in 0..<4 { bytes[index / 5 * stride + index % 5 * 4 + byte] = pixel[order[byte]] }
        }
        let bitmap = try CursorBitmap()
        #expect(bytes.withUnsafeBytes { bitmap.load($0, size: size, strideBytes: stride, format: format) })
        #expect(bitmap.size == size && Array(bitmap.pixels) == pixels.flatMap { $0 })
    }

    @Test func bitmapsThatCannotBeAreNotTaken() throws {
        let bitmap = try CursorBitmap()
        fill(bitmap, 2, 5)
        let bytes = [UInt8](repeating: 1, count: 4 * 4 * 4)
        func load(_ width: Int, _ height: Int, _ stride: Int, _ format: PixelFormat = .bgra) -> Bool {
            bytes.withUnsafeBytes { bitmap.load($0, size: PixelSize(width: width, height: height), strideBytes: stride, format: format) }
        }
        let wrong = [
            (0, 0, 16), (4, 0, 16), (4, 5, 16), (5, 4, 16), (4, 4, 15), (4, 4, 17), (4, 4, -16), (4, 4, .max), (-4, 4, 16),
            (1_025, 1, 4_100),
        ]
        for (width, height, stride) in wrong { #expect(!load(width, height, stride)) }
        #expect(!load(4, 4, 16, .bgrx), "without alpha it would be a block")
        #expect(bitmap.size == PixelSize(width: 2, height: 2) && bitmap.pixels.allSatisfy { $0 == 5 })
        #expect(load(4, 4, 16))
    }

    @Test(arguments: Transform.allCases) func turnedBitmaps(_ transform: Transform) throws {
        let upright = TestPicture(PixelSize(width: 5, height: 3)) { x, y in .init(red: x, green: y, blue: 10 * x + y) }
        let turned = upright.turned(transform)
        let (raw, bitmap) = (try CursorBitmap(), try CursorBitmap())
        let stride = turned.size.width * 4
        #expect(turned.bytes(.bgra, stride: stride).withUnsafeBytes { raw.load($0, size: turned.size, strideBytes: stride, format: .bgra) })
        bitmap.load(raw, undoing: transform)
        #expect(bitmap.size == upright.size && Array(bitmap.pixels) == upright.bytes(.bgra, stride: 20))
    }

    @Test func clearedParts() throws {
        let bitmap = try CursorBitmap()
        fill(bitmap, 4, 5)
        bitmap.clear(PixelRect(x: -3, y: 1, width: 5, height: 2))
        bitmap.clear(PixelRect(x: 3, y: 3, width: .max, height: .max))
        bitmap.clear(PixelRect(x: 7, y: 7, width: 1, height: 1))
        let cleared = (0..<16).filter { bitmap.pixels[$0 * 4 + 3] == 0 }
        #expect(cleared == [4, 5, 8, 9, 15])
    }
}

/// Gives a bitmap one value for all bytes.
private func fill(_ bitmap: CursorBitmap, _ side: Int, _ filler: UInt8) {
    let bytes = [UInt8](repeating: filler, count: side * side * 4)
    _ = bytes.withUnsafeBytes { bitmap.load($0, size: PixelSize(width: side, height: side), strideBytes: side * 4, format: .bgra) }
}

/// The pointer over a picture.
@Suite struct CursorBlendTests {
    /// A bitmap of premultiplied colours: opaque, translucent and transparent in turn.
    struct Bitmap {
        let size: PixelSize

        /// Straight colours and alpha of 255.
        func pixel(_ x: Int, _ y: Int) -> (colour: TestPicture.Colour, alpha: Int) {
            let alpha = [255, 0, 128, 255, 37][(x + 2 * y) % 5]
            return (TestPicture.Colour(red: x * 40 & 255, green: 255 - y * 30 & 255, blue: (x + y) * 25 & 255), alpha)
        }

        var pixels: [UInt8] {
            var bytes: [UInt8] = []
            for y in 0..<size.height {
                for x in 0..<size.width {
                    let (colour, alpha) = pixel(x, y)
                    bytes += [colour.blue, colour.green, colour.red].map { UInt8($0 * alpha / 255) } + [UInt8(alpha)]
                }
            }
            return bytes
        }

        /// The same in colours, before they are turned into samples.
        func over(_ picture: TestPicture, _ area: PixelRect, _ clip: PixelRect) -> TestPicture {
            let part = area.intersection(clip)
            return TestPicture(picture.size) { x, y in
                let below = picture[x, y]
                guard !part.intersection(PixelRect(x: x, y: y, width: 1, height: 1)).isEmpty else { return below }
                let (colour, alpha) = pixel(x - area.x, y - area.y)
                func mix(_ own: Int, _ below: Int) -> Int { (own * alpha + below * (255 - alpha)) / 255 }
                return .init(
                    red: mix(colour.red, below.red), green: mix(colour.green, below.green), blue: mix(colour.blue, below.blue))
            }
        }
    }

    static func write(_ samples: TestPicture.Samples, _ planes: I420Planes) {
        for y in 0..<samples.size.height {
            for x in 0..<samples.size.width {
                planes.luma[y * planes.lumaStride + x] = UInt8(samples.luma[y * samples.size.width + x].rounded())
            }
        }
        let chroma = samples.size.chroma
        for y in 0..<chroma.height {
            for x in 0..<chroma.width {
                planes.blue[y * planes.chromaStride + x] = UInt8(samples.blue[y * chroma.width + x].rounded())
                planes.red[y * planes.chromaStride + x] = UInt8(samples.red[y * chroma.width + x].rounded())
            }
        }
    }

    /// At even and odd places, over every edge, and cut off.
    @Test(arguments: [(0, 0), (5, 4), (6, 7), (9, 9), (-3, 2), (-1, -5), (24, 18), (30, 8), (11, 20)])
    func itLooksAsIfTheScreenHadShownIt(_ x: Int, _ y: Int) throws {
        let size = PixelSize(width: 31, height: 23)
        let (below, bitmap) = (TestPicture.gradient(size), Bitmap(size: PixelSize(width: 9, height: 7)))
        let area = PixelRect(x: x, y: y, width: 9, height: 7)
        for clip in [PixelRect(size), PixelRect(x: 4, y: 6, width: 20, height: 12)] {
            let picture = try Picture(size: size)
            Self.write(below.i420, picture.planes)
            Conversion.blend(bitmap.pixels, in: area, onto: picture.planes, clip: clip)
            let expected = bitmap.over(below, area, clip).i420
            #expect(TestPicture.Samples(picture.planes).distance(expected) <= 2)
        }
    }

    @Test func anOpaquePixelIsThatOfTheScreen() throws {
        let size = PixelSize(width: 16, height: 16)
        let colours = TestPicture.gradient(size)
        let screen = try #require(try convert(colours, .bgra))
        let picture = try Picture(size: size)
        Conversion.fill(picture.planes, luma: 200, blue: 20, red: 220)
        Conversion.blend(colours.bytes(.bgra, stride: 64, filler: 255), in: PixelRect(size), onto: picture.planes, clip: PixelRect(size))
        #expect(TestPicture.Samples(picture.planes).distance(screen) <= 1)
    }

    @Test func whatIsScaledKeepsItsColours() throws {
        let pixels = [UInt8](repeating: 100, count: 8 * 8 * 4)
        for (width, height) in [(4, 4), (8, 8), (16, 12), (3, 20), (1, 1)] {
            let scaled = pixels.withUnsafeBytes {
                Conversion.scale($0, from: PixelSize(width: 8, height: 8), to: PixelSize(width: width, height: height))
            }
            #expect(scaled?.count == width * height * 4 && scaled?.allSatisfy { (99...101).contains($0) } ?? false)
        }
        let huge = pixels.withUnsafeBytes {
            Conversion.scale($0, from: PixelSize(width: 8, height: 8), to: PixelSize(width: 4_000, height: 8))
        }
        #expect(huge == nil)
    }
}
