// SPDX-License-Identifier: MIT

/// A picture as a compositor hands it over: borrowed bytes and what they mean.
///
/// Ownership: valid for as long as the producer's buffer is held.
public struct SourcePicture {
    /// From the first byte of the first row to the last byte of the last.
    public var bytes: UnsafeRawBufferPointer
    /// The picture in memory, before crop and transform.
    public var size: PixelSize
    /// Bytes from one row to the next.
    public var strideBytes: Int
    /// The order of a pixel's bytes.
    public var format: PixelFormat
    /// The part that is to be shown, in pixels of memory; nil is all of it.
    public var crop: PixelRect?
    /// How the compositor turned it.
    public var transform: Transform

    /// A picture in borrowed memory.
    public init(
        bytes: UnsafeRawBufferPointer, size: PixelSize, strideBytes: Int, format: PixelFormat, crop: PixelRect? = nil,
        transform: Transform = .normal
    ) {
        (self.bytes, self.size, self.strideBytes) = (bytes, size, strideBytes)
        (self.format, self.crop, self.transform) = (format, crop, transform)
    }

    /// The part that is shown, cut to the picture. Empty when nothing is left.
    public var visible: PixelRect { crop.map { $0.intersection(PixelRect(size)) } ?? PixelRect(size) }

    /// The size of what is shown, upright.
    public var uprightSize: PixelSize { transform.swapsSides ? visible.size.transposed : visible.size }

    /// Whether all rows lie within the bytes.
    public var isWithinBounds: Bool {
        guard size.isUsable else { return false }
        let row = size.width * PixelFormat.bytesPerPixel
        guard strideBytes >= row else { return false }
        let (product, overflow) = strideBytes.multipliedReportingOverflow(by: size.height - 1)
        return !overflow && product <= bytes.count - row
    }
}
