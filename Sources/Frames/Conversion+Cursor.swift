// SPDX-License-Identifier: MIT
import CYUV

/// Drawing a pointer's bitmap over an I420 picture.
extension Conversion {
    /// The greatest side of a bitmap that is scaled.
    private static let greatestScaledSide = 2_048

    /// Scales a bitmap of premultiplied colours.
    ///
    /// - Returns: its pixels, rows one behind the other; nil when it would be too large to be a pointer.
    public static func scale(_ bitmap: UnsafeRawBufferPointer, from size: PixelSize, to target: PixelSize) -> [UInt8]? {
        guard size.isUsable, target.isUsable, max(target.width, target.height) <= greatestScaledSide else { return nil }
        let bytes = PixelFormat.bytesPerPixel
        precondition(bitmap.count >= size.width * size.height * bytes, "a bitmap without all of its rows")
        if size == target { return Array(bitmap) }
        let shrinks = target.width < size.width || target.height < size.height
        return [UInt8](unsafeUninitializedCapacity: target.width * target.height * bytes) { buffer, initialized in
            let code = ARGBScale(
                bitmap.bindMemory(to: UInt8.self).baseAddress, Int32(size.width * bytes), Int32(size.width), Int32(size.height),
                buffer.baseAddress, Int32(target.width * bytes), Int32(target.width), Int32(target.height),
                shrinks ? kFilterBox : kFilterBilinear)
            initialized = code == 0 ? buffer.count : 0
        }
    }

    /// Draws a bitmap of premultiplied colours over a picture, as if the screen had shown it there: of a chroma sample each of its pixels has a share.
    ///
    /// - Parameters:
    ///   - pixels: blue, green, red, alpha, rows one behind the other.
    ///   - area: where it lies in the picture; may reach beyond.
    ///   - clip: the part of the picture that may change.
    public static func blend(_ pixels: [UInt8], in area: PixelRect, onto planes: I420Planes, clip: PixelRect) {
        let part = area.intersection(clip).intersection(PixelRect(planes.size))
        guard !part.isEmpty, pixels.count >= area.width * area.height * PixelFormat.bytesPerPixel else { return }
        pixels.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            let bitmap = Bitmap(base: base, area: area, part: part)
            for y in part.y..<(part.y + part.height) {
                let row = planes.luma + y * planes.lumaStride
                for x in part.x..<(part.x + part.width) { bitmap.blendLuma(x, y, row + x) }
            }
            for y in (part.y / 2)..<((part.y + part.height + 1) / 2) {
                let row = y * planes.chromaStride
                for x in (part.x / 2)..<((part.x + part.width + 1) / 2) {
                    bitmap.blendChroma(x, y, planes.size, planes.blue + row + x, planes.red + row + x)
                }
            }
        }
    }

    /// A bitmap over a picture. Places are those of the picture.
    private struct Bitmap {
        let base: UnsafePointer<UInt8>
        let area: PixelRect
        /// What of it is drawn.
        let part: PixelRect

        private func pixel(_ x: Int, _ y: Int) -> UnsafePointer<UInt8> {
            base + ((y - area.y) * area.width + x - area.x) * PixelFormat.bytesPerPixel
        }

        /// The coefficients are libyuv's, so that an opaque pixel comes out as one of the screen.
        func blendLuma(_ x: Int, _ y: Int, _ sample: UnsafeMutablePointer<UInt8>) {
            let pixel = pixel(x, y)
            let (blue, green, red, alpha) = (Int(pixel[0]), Int(pixel[1]), Int(pixel[2]), Int(pixel[3]))
            if alpha | red | green | blue == 0 { return }
            let own = 66 * red + 129 * green + 25 * blue
            let blended = (16 * alpha + Int(sample.pointee) * (255 - alpha)) * 256 / 255
            sample.pointee = UInt8(clamping: (own + blended + 128) >> 8)
        }

        func blendChroma(
            _ x: Int, _ y: Int, _ size: PixelSize, _ blueSample: UnsafeMutablePointer<UInt8>, _ redSample: UnsafeMutablePointer<UInt8>
        ) {
            var (blue, green, red, alpha, count) = (0, 0, 0, 0, 0)
            for row in (2 * y)..<min(2 * y + 2, size.height) {
                for column in (2 * x)..<min(2 * x + 2, size.width) {
                    count += 1
                    guard column >= part.x, column < part.x + part.width, row >= part.y, row < part.y + part.height else { continue }
                    let pixel = pixel(column, row)
                    (blue, green, red, alpha) = (
                        blue + Int(pixel[0]), green + Int(pixel[1]), red + Int(pixel[2]), alpha + Int(pixel[3])
                    )
                }
            }
            if alpha | red | green | blue == 0 { return }
            let whole = 255 * count
            func blend(_ own: Int, _ sample: UnsafeMutablePointer<UInt8>) {
                let blended = (128 * alpha + Int(sample.pointee) * (whole - alpha)) * 256 / whole
                sample.pointee = UInt8(clamping: (own / count + blended + 128) >> 8)
            }
            blend(112 * blue - 74 * green - 38 * red, blueSample)
            blend(112 * red - 94 * green - 18 * blue, redSample)
        }
    }
}
