// SPDX-License-Identifier: MIT
import CYUV

/// Work on I420 pictures as a whole: fill, copy, fit into a canvas.
///
/// Thread: any; nothing is kept between calls.
public enum Conversion {
    /// Fills a picture with one colour.
    public static func fill(_ planes: I420Planes, luma: UInt8, blue: UInt8, red: UInt8) {
        I420Rect(
            planes.luma, Int32(planes.lumaStride), planes.blue, Int32(planes.chromaStride), planes.red, Int32(planes.chromaStride), 0, 0,
            Int32(planes.size.width), Int32(planes.size.height), Int32(luma), Int32(blue), Int32(red))
    }

    /// Fills a picture with black: luma 16, chroma 128.
    public static func fillBlack(_ planes: I420Planes) { fill(planes, luma: 16, blue: 128, red: 128) }

    /// Copies the damaged parts of a picture into another of the same size.
    public static func copy(_ source: I420Planes, into target: I420Planes, _ damage: Damage = .everything) {
        precondition(source.size == target.size, "pictures of different sizes")
        damage.forEach(in: source.size) { rect in
            guard let source = source.part(rect), let target = target.part(rect) else { return }
            I420Copy(
                source.luma, Int32(source.lumaStride), source.blue, Int32(source.chromaStride), source.red, Int32(source.chromaStride),
                target.luma, Int32(target.lumaStride), target.blue, Int32(target.chromaStride), target.red, Int32(target.chromaStride),
                Int32(source.size.width), Int32(source.size.height))
        }
    }

    /// Copies a rectangle of a picture to a place in another, where all of it fits. From or to odd pixels, its colours lie half a sample beside it.
    public static func copy(_ source: I420Planes, _ rect: PixelRect, into target: I420Planes, x: Int, y: Int) {
        precondition(rect == rect.intersection(PixelRect(source.size)), "a rectangle outside of its picture")
        let place = PixelRect(x: x, y: y, width: rect.width, height: rect.height)
        precondition(place == place.intersection(PixelRect(target.size)), "a place outside of its picture")
        let (fromLuma, toLuma) = (rect.y * source.lumaStride + rect.x, y * target.lumaStride + x)
        let (fromChroma, toChroma) = (rect.y / 2 * source.chromaStride + rect.x / 2, y / 2 * target.chromaStride + x / 2)
        I420Copy(
            source.luma + fromLuma, Int32(source.lumaStride), source.blue + fromChroma, Int32(source.chromaStride),
            source.red + fromChroma, Int32(source.chromaStride), target.luma + toLuma, Int32(target.lumaStride), target.blue + toChroma,
            Int32(target.chromaStride), target.red + toChroma, Int32(target.chromaStride), Int32(rect.width), Int32(rect.height))
    }

    /// Whether two pictures of the same size are the same, sample by sample.
    public static func isSame(_ first: I420Planes, _ second: I420Planes) -> Bool { Comparison.damage(first, second).isEmpty }

    /// Where a picture of one size lies in a canvas of another: as large as fits, its shape kept, centred, its corner on even pixels.
    public static func letterbox(_ size: PixelSize, in canvas: PixelSize) -> PixelRect {
        if size == canvas { return PixelRect(canvas) }
        var (width, height) = (canvas.width, canvas.height)
        if size.width * canvas.height > size.height * canvas.width {
            height = max(1, (size.height * canvas.width + size.width / 2) / size.width)
        } else {
            width = max(1, (size.width * canvas.height + size.height / 2) / size.height)
        }
        return PixelRect(x: (canvas.width - width) / 2 & ~1, y: (canvas.height - height) / 2 & ~1, width: width, height: height)
    }

    /// Scales a picture into a canvas, keeps its shape and makes the rest black. Of equal sizes it is a copy.
    ///
    /// - Returns: where the picture lies in the canvas.
    @discardableResult
    public static func fit(_ source: I420Planes, into canvas: I420Planes) -> PixelRect {
        let target = letterbox(source.size, in: canvas.size)
        if target.size == source.size && target == PixelRect(canvas.size) {
            copy(source, into: canvas)
            return target
        }
        fillAround(target, canvas)
        guard let part = canvas.part(target) else { return target }
        scale(source, into: part)
        return target
    }

    /// Of how many columns, and rows, libyuv averages are right: it divides by a 16-bit reciprocal of their product.
    private static let greatestShrinking = 16

    /// Scales a picture to another size, whatever shape that has; in steps where it becomes very much smaller.
    public static func scale(_ source: I420Planes, into target: I420Planes) {
        let step = PixelSize(
            width: max(target.size.width, (source.size.width + greatestShrinking - 1) / greatestShrinking),
            height: max(target.size.height, (source.size.height + greatestShrinking - 1) / greatestShrinking))
        // Without memory for what lies between, the colours are wrong.
        if step != target.size, let between = try? Picture(size: step) {
            scale(source, into: between.planes)
            scale(between.planes, into: target)
            return
        }
        let shrinks = target.size.width < source.size.width || target.size.height < source.size.height
        I420Scale(
            source.luma, Int32(source.lumaStride), source.blue, Int32(source.chromaStride), source.red, Int32(source.chromaStride),
            Int32(source.size.width), Int32(source.size.height), target.luma, Int32(target.lumaStride), target.blue,
            Int32(target.chromaStride), target.red, Int32(target.chromaStride), Int32(target.size.width), Int32(target.size.height),
            shrinks ? kFilterBox : kFilterBilinear)
    }

    /// Makes everything black that lies outside the rectangle.
    private static func fillAround(_ inner: PixelRect, _ canvas: I420Planes) {
        let (width, height) = (canvas.size.width, canvas.size.height)
        let right = inner.x + inner.width
        let bottom = inner.y + inner.height
        for bar in [
            PixelRect(x: 0, y: 0, width: width, height: inner.y),
            PixelRect(x: 0, y: bottom, width: width, height: height - bottom),
            PixelRect(x: 0, y: inner.y, width: inner.x, height: inner.height),
            PixelRect(x: right, y: inner.y, width: width - right, height: inner.height),
        ] {
            if let part = canvas.part(bar) { fillBlack(part) }
        }
    }
}
