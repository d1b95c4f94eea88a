// SPDX-License-Identifier: MIT
import Frames

/// A picture of colours, and the plain way to I420: what libyuv's results are compared with.
struct TestPicture: Equatable {
    struct Colour: Equatable {
        var red, green, blue: Int
    }

    let size: PixelSize
    var pixels: [Colour]

    init(_ size: PixelSize, _ colour: (Int, Int) -> Colour) {
        self.size = size
        pixels = (0..<size.height).flatMap { y in (0..<size.width).map { x in colour(x, y) } }
    }

    /// Something in which no part looks like another, and neighbours are alike so that filters matter little.
    static func gradient(_ size: PixelSize, seed: Int = 0) -> TestPicture {
        TestPicture(size) { x, y in
            Colour(red: (x * 5 + seed) & 255, green: (y * 7 + seed * 3) & 255, blue: (x * 3 + y * 2 + seed * 5) & 255)
        }
    }

    subscript(x: Int, y: Int) -> Colour { pixels[y * size.width + x] }

    func cropped(_ rect: PixelRect) -> TestPicture {
        TestPicture(rect.size) { x, y in self[rect.x + x, rect.y + y] }
    }

    /// What a compositor does: mirrors about the vertical axis, then turns counter-clockwise.
    func turned(_ transform: Transform) -> TestPicture {
        var picture = self
        if transform.rawValue >= 4 {
            let old = picture
            picture = TestPicture(size) { x, y in old[old.size.width - 1 - x, y] }
        }
        for _ in 0..<(transform.rawValue % 4) {
            let old = picture
            picture = TestPicture(old.size.transposed) { x, y in old[old.size.width - 1 - y, x] }
        }
        return picture
    }

    /// The bytes of one format, with rows `stride` bytes apart, after `offset` bytes; what is not a colour is `filler`.
    func bytes(_ format: PixelFormat, stride: Int, offset: Int = 0, filler: UInt8 = 0xAA) -> [UInt8] {
        var bytes = [UInt8](repeating: filler, count: offset + stride * size.height)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let at = offset + y * stride + x * 4
                bytes[at + format.offsets.red] = UInt8(self[x, y].red)
                bytes[at + format.offsets.green] = UInt8(self[x, y].green)
                bytes[at + format.offsets.blue] = UInt8(self[x, y].blue)
            }
        }
        return bytes
    }

    /// BT.601, limited range, chroma averaged over up to four pixels.
    var i420: Samples {
        var samples = Samples(size)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let c = self[x, y]
                samples.luma[y * size.width + x] = 16 + (65.738 * Double(c.red) + 129.057 * Double(c.green) + 25.064 * Double(c.blue)) / 256
            }
        }
        for y in 0..<size.chroma.height {
            for x in 0..<size.chroma.width {
                var (red, green, blue, count) = (0.0, 0.0, 0.0, 0.0)
                for row in (2 * y)..<min(2 * y + 2, size.height) {
                    for column in (2 * x)..<min(2 * x + 2, size.width) {
                        red += Double(self[column, row].red)
                        green += Double(self[column, row].green)
                        blue += Double(self[column, row].blue)
                        count += 1
                    }
                }
                let at = y * size.chroma.width + x
                samples.blue[at] = 128 + (-37.945 * red - 74.494 * green + 112.439 * blue) / count / 256
                samples.red[at] = 128 + (112.439 * red - 94.154 * green - 18.285 * blue) / count / 256
            }
        }
        return samples
    }

    struct Samples {
        let size: PixelSize
        var luma, blue, red: [Double]

        init(_ size: PixelSize) {
            self.size = size
            luma = Array(repeating: 0, count: size.width * size.height)
            blue = Array(repeating: 0, count: size.chroma.width * size.chroma.height)
            red = blue
        }

        /// The samples of a picture.
        init(_ planes: I420Planes) {
            self.init(planes.size)
            for y in 0..<size.height {
                for x in 0..<size.width { luma[y * size.width + x] = Double(planes.luma[y * planes.lumaStride + x]) }
            }
            for y in 0..<size.chroma.height {
                for x in 0..<size.chroma.width {
                    blue[y * size.chroma.width + x] = Double(planes.blue[y * planes.chromaStride + x])
                    red[y * size.chroma.width + x] = Double(planes.red[y * planes.chromaStride + x])
                }
            }
        }

        /// The greatest difference of any sample.
        func distance(_ other: Samples) -> Double {
            precondition(size == other.size)
            return [(luma, other.luma), (blue, other.blue), (red, other.red)].reduce(0) { worst, planes in
                zip(planes.0, planes.1).reduce(worst) { max($0, abs($1.0 - $1.1)) }
            }
        }
    }
}

/// Converts with the code under test.
func convert(
    _ picture: TestPicture, _ format: PixelFormat, padding: Int = 0, filler: UInt8 = 0xAA, crop: PixelRect? = nil,
    transform: Transform = .normal
) throws -> TestPicture.Samples? {
    let stride = picture.size.width * 4 + padding
    let bytes = picture.bytes(format, stride: stride, filler: filler)
    return try bytes.withUnsafeBytes { bytes in
        let source = SourcePicture(
            bytes: bytes, size: picture.size, strideBytes: stride, format: format, crop: crop, transform: transform)
        guard !source.visible.isEmpty else { return nil }
        let target = try Picture(size: source.uprightSize)
        let converter = Converter()
        try converter.prepare(size: picture.size)
        guard converter.convert(source, into: target.planes) else { return nil }
        return TestPicture.Samples(target.planes)
    }
}
