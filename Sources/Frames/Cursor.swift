// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// The pointer that lies over a pool's latest picture, where it comes beside the pixels: its place and which bitmap it has.
///
/// Units: pixels of the picture, from its top left corner. What lies under a mask is cut out already.
public struct Cursor: Equatable, Sendable {
    /// The greatest width and height of a bitmap.
    public static let greatestSide = 1_024

    /// Counts every change of the pointer, across all shares of the pool; 0 before the first.
    public internal(set) var serial: UInt64 = 0
    /// Counts bitmaps: as long as it is the same, so are the pixels and ``size``.
    public internal(set) var bitmapSerial: UInt64 = 0
    /// Whether there is something to draw. When not, nothing below has a meaning.
    public internal(set) var isVisible = false
    /// The point of the picture that it points at, to its right; it may lie outside of the picture.
    public internal(set) var x = 0
    /// The point of the picture that it points at, downwards.
    public internal(set) var y = 0
    /// The point of the bitmap that points there, to its right.
    public internal(set) var hotspotX = 0
    /// The point of the bitmap that points there, downwards.
    public internal(set) var hotspotY = 0
    /// Of the bitmap.
    public internal(set) var size = PixelSize(width: 0, height: 0)

    /// Where the bitmap lies in the picture. It may reach beyond the picture.
    public var area: PixelRect { PixelRect(x: x - hotspotX, y: y - hotspotY, width: size.width, height: size.height) }

    /// Bytes from one row of the bitmap to the next: rows lie one behind the other.
    public var strideBytes: Int { size.width * PixelFormat.bytesPerPixel }
}

/// One reader's own copy of the pointer, filled by ``FramePool/takeCursor(_:into:)``.
///
/// Memory: none before the first visible pointer. Thread: its owner's.
public final class CursorImage {
    /// What was taken last.
    public private(set) var cursor = Cursor()
    private var memory: PixelMemory?

    /// A copy of nothing.
    public init() {}

    /// The bitmap: ``Cursor/size``, rows of ``Cursor/strideBytes``, each pixel blue, green, red, alpha, with the colours multiplied by alpha.
    /// Empty while the pointer is not visible. Valid until the next call of `takeCursor`.
    public var pixels: UnsafeRawBufferPointer {
        guard cursor.isVisible, let memory else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: memory.base, count: cursor.strideBytes * cursor.size.height)
    }

    /// Sees to it that there is room for any bitmap.
    ///
    /// - Returns: false when there is no memory.
    func prepare() -> Bool {
        do throws(Errno) {
            if memory == nil { memory = try CursorBitmap.makeMemory() }
            return true
        } catch {
            return false
        }
    }

    /// Takes over a pointer, and the bitmap if that is another one.
    func update(_ new: Cursor, _ bitmap: PixelMemory?) {
        if new.isVisible, new.bitmapSerial != cursor.bitmapSerial || !cursor.isVisible, let memory, let bitmap {
            memcpy(memory.base, bitmap.base, new.strideBytes * new.size.height)
        }
        cursor = new
    }
}
