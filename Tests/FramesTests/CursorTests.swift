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

        init() throws {
            bell = try FileDescriptor.makeBell()
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
            let bytes = filler.map { [UInt8](repeating: $0, count: side * side * 4) }
            let size = PixelSize(width: side, height: side)
            if let bytes {
                bytes.withUnsafeBytes { pool.showCursor(x: x, y: y, hotspotX: 1, hotspotY: 2, size: size, pixels: $0) }
            } else {
                pool.showCursor(x: x, y: y, hotspotX: 1, hotspotY: 2, size: size, pixels: nil)
            }
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
        let bytes = [UInt8](repeating: 9, count: 16)
        bytes.withUnsafeBytes {
            pool.showCursor(x: 1, y: 1, hotspotX: 0, hotspotY: 0, size: PixelSize(width: 2, height: 2), pixels: $0)
        }
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
        let bytes = [UInt8](repeating: 7, count: 64 * 64 * 4)
        let size = PixelSize(width: 64, height: 64)
        let count = bytes.withUnsafeBytes { pixels in
            rig.pool.showCursor(x: 1, y: 1, hotspotX: 0, hotspotY: 0, size: size, pixels: pixels)
            let before = allocations_of_this_thread()
            for x in 0..<100 {
                rig.pool.showCursor(x: x, y: 1, hotspotX: 0, hotspotY: 0, size: size, pixels: x % 2 == 0 ? pixels : nil)
                if x % 10 == 0 { rig.pool.hideCursor() }
                rig.pool.wakeReaders()
            }
            return allocations_of_this_thread() - before
        }
        #expect(count == 0)
    }
}
