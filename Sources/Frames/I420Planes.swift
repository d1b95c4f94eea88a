// SPDX-License-Identifier: MIT

/// A borrowed view of the three planes of a picture: BT.601, limited range (luma 16 to 235, grey is 128).
///
/// Shape: luma `height` rows of `lumaStride` bytes; each chroma plane `(height + 1) / 2` rows of `chromaStride` bytes, `(width + 1) / 2` samples wide.
/// Ownership: a view of a lease is valid only inside the closure that it was handed to, and must not be written to. One of a ``Picture``
/// keeps the picture's memory alive.
public struct I420Planes {
    /// Luma samples.
    public let size: PixelSize
    /// The luma plane.
    public let luma: UnsafeMutablePointer<UInt8>
    /// The plane of blue differences, U.
    public let blue: UnsafeMutablePointer<UInt8>
    /// The plane of red differences, V.
    public let red: UnsafeMutablePointer<UInt8>
    /// Bytes from one row of luma to the next.
    public let lumaStride: Int
    /// Bytes from one row of either chroma plane to the next.
    public let chromaStride: Int
    private let owner: AnyObject?

    /// A view of planes that lie anywhere.
    ///
    /// - Parameter owner: kept for as long as the view.
    public init(
        size: PixelSize, luma: UnsafeMutablePointer<UInt8>, blue: UnsafeMutablePointer<UInt8>, red: UnsafeMutablePointer<UInt8>,
        lumaStride: Int, chromaStride: Int, owner: AnyObject? = nil
    ) {
        (self.size, self.luma, self.blue, self.red) = (size, luma, blue, red)
        (self.lumaStride, self.chromaStride, self.owner) = (lumaStride, chromaStride, owner)
    }

    /// A view of planes that lie one behind the other from `base` on, their rows aligned for vector instructions.
    public init(size: PixelSize, base: UnsafeMutableRawPointer, owner: AnyObject? = nil) {
        let layout = Layout(size)
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        self.init(
            size: size, luma: bytes, blue: bytes + layout.lumaBytes, red: bytes + layout.lumaBytes + layout.chromaBytes,
            lumaStride: layout.lumaStride, chromaStride: layout.chromaStride, owner: owner)
    }

    /// Bytes that ``init(size:base:)`` needs.
    public static func byteCount(_ size: PixelSize) -> Int {
        let layout = Layout(size)
        return layout.lumaBytes + 2 * layout.chromaBytes
    }

    /// The view of a part. Its corner is rounded down to even pixels, to whole chroma samples; the far sides stay.
    public func part(_ rect: PixelRect) -> I420Planes? {
        let area = rect.intersection(PixelRect(size))
        guard !area.isEmpty else { return nil }
        let (x, y) = (area.x & ~1, area.y & ~1)
        let chroma = y / 2 * chromaStride + x / 2
        return I420Planes(
            size: PixelSize(width: area.x + area.width - x, height: area.y + area.height - y), luma: luma + y * lumaStride + x,
            blue: blue + chroma, red: red + chroma, lumaStride: lumaStride, chromaStride: chromaStride, owner: owner)
    }

    private struct Layout {
        let lumaStride, chromaStride, lumaBytes, chromaBytes: Int

        init(_ size: PixelSize) {
            lumaStride = (size.width + 63) & ~63
            chromaStride = (size.chroma.width + 63) & ~63
            lumaBytes = lumaStride * size.height
            chromaBytes = chromaStride * size.chroma.height
        }
    }
}
