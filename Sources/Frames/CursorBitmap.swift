// SPDX-License-Identifier: MIT
import CYUV
import Glibc
public import Loop

/// A pointer's bitmap in memory of its own: blue, green, red, alpha, the colours multiplied by alpha, rows one behind the other.
///
/// Memory: room for the greatest bitmap, resident only as far as it was used. Thread: its owner's.
public final class CursorBitmap {
    /// Pixels; 0x0 before the first.
    public private(set) var size = PixelSize(width: 0, height: 0)
    private let memory: PixelMemory

    /// A bitmap without pixels.
    ///
    /// - Throws: when there is no memory for one.
    public init() throws(Errno) { memory = try CursorBitmap.makeMemory() }

    /// Room for the greatest bitmap.
    static func makeMemory() throws(Errno) -> PixelMemory {
        try PixelMemory(byteCount: Cursor.greatestSide * Cursor.greatestSide * PixelFormat.bytesPerPixel)
    }

    /// The pixels.
    public var pixels: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory.base, count: strideBytes * size.height) }

    private var strideBytes: Int { size.width * PixelFormat.bytesPerPixel }

    private var words: UnsafeMutablePointer<UInt32> { memory.base.assumingMemoryBound(to: UInt32.self) }

    /// Takes over a producer's bitmap.
    ///
    /// - Parameters:
    ///   - bytes: from the first byte of the first row on; may be longer than the bitmap.
    ///   - format: one with alpha.
    /// - Returns: false, and nothing changes, when the rows do not lie within the bytes, or it is none that is handled.
    public func load(_ bytes: UnsafeRawBufferPointer, size: PixelSize, strideBytes: Int, format: PixelFormat) -> Bool {
        let picture = SourcePicture(bytes: bytes, size: size, strideBytes: strideBytes, format: format)
        guard picture.isWithinBounds, max(size.width, size.height) <= Cursor.greatestSide, let start = bytes.baseAddress else {
            return false
        }
        let convert =
            switch format {
            case .bgra: ARGBCopy
            case .rgba: ABGRToARGB
            case .argb: BGRAToARGB
            case .abgr: RGBAToARGB
            case .bgrx, .rgbx, .xrgb, .xbgr:
                nil as ((UnsafePointer<UInt8>?, Int32, UnsafeMutablePointer<UInt8>?, Int32, Int32, Int32) -> Int32)?
            }
        guard let convert else { return false }
        self.size = size
        let target = memory.base.assumingMemoryBound(to: UInt8.self)
        let code = convert(
            start.assumingMemoryBound(to: UInt8.self), Int32(clamping: strideBytes), target, Int32(self.strideBytes), Int32(size.width),
            Int32(size.height))
        return code == 0
    }

    /// Takes over another bitmap, turned upright as the picture is that it lies over.
    public func load(_ other: CursorBitmap, undoing transform: Transform) {
        size = transform.swapsSides ? other.size.transposed : other.size
        if transform == .normal {
            memcpy(memory.base, other.memory.base, strideBytes * size.height)
            return
        }
        // Where the pixel of a place lies in the other is linear in the place.
        func index(_ x: Int, _ y: Int) -> Int {
            let place = transform.inMemory(PixelRect(x: x, y: y, width: 1, height: 1), of: other.size)
            return place.y * other.size.width + place.x
        }
        let start = index(0, 0)
        let (right, down) = (index(1, 0) - start, index(0, 1) - start)
        let (source, target) = (other.words, words)
        for y in 0..<size.height {
            for x in 0..<size.width { target[y * size.width + x] = source[start + x * right + y * down] }
        }
    }

    /// Makes a part transparent.
    public func clear(_ rect: PixelRect) {
        let part = rect.intersection(PixelRect(size))
        guard !part.isEmpty else { return }
        for y in part.y..<(part.y + part.height) {
            memset(words + y * size.width + part.x, 0, part.width * PixelFormat.bytesPerPixel)
        }
    }
}
