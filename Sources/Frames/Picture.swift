// SPDX-License-Identifier: MIT
public import Loop

/// A picture in memory of its own: an encoder's canvas, a placeholder.
///
/// Thread: its owner's. Not shared.
public final class Picture {
    /// Luma samples.
    public let size: PixelSize
    private let memory: PixelMemory

    /// A picture of zeroes, which is not black: see ``Conversion/fillBlack(_:)``.
    ///
    /// - Throws: when there is no memory for it.
    public init(size: PixelSize) throws(Errno) {
        precondition(size.isUsable, "a picture without pixels")
        self.size = size
        memory = try PixelMemory(byteCount: I420Planes.byteCount(size))
    }

    /// The planes, to read and write.
    public var planes: I420Planes { I420Planes(size: size, base: memory.base, owner: memory) }

    /// The picture that readers get while there is nothing to show: dark grey, with the two lighter bars that mean "pause".
    public static func placeholder(size: PixelSize) throws(Errno) -> Picture {
        let picture = try Picture(size: size)
        let planes = picture.planes
        Conversion.fill(planes, luma: 40, blue: 128, red: 128)
        let unit = max(1, min(size.width, size.height) / 24)
        for offset in [-3 * unit, unit] {
            let bar = PixelRect(x: size.width / 2 + offset, y: size.height / 2 - 4 * unit, width: 2 * unit, height: 8 * unit)
            if let part = planes.part(bar) { Conversion.fill(part, luma: 120, blue: 128, red: 128) }
        }
        return picture
    }
}
