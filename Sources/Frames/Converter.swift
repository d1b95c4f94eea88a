// SPDX-License-Identifier: MIT
import CYUV
public import Loop

/// Turns a compositor's pictures into upright I420: BT.601, limited range.
///
/// The common case is a single pass of libyuv from the source into the target. A picture that must be turned goes through a band of scratch memory,
/// which ``prepare(size:)`` provides.
///
/// Thread: one.
public final class Converter {
    private var scratch: PixelMemory?
    private var band: PixelMemory?
    /// Rows of the upright picture that are turned at once: the band stays in the cache.
    private static let bandRows = 32
    /// The most rows that ``band(_:_:)`` converts.
    public static let checkedRows = 16

    /// A converter without scratch memory.
    public init() {}

    /// Provides what pictures of up to that size need, turned any way.
    ///
    /// - Throws: when there is no memory for it.
    public func prepare(size: PixelSize) throws(Errno) {
        let bytes = max(size.width, size.height) * PixelFormat.bytesPerPixel * Converter.bandRows
        if scratch?.byteCount ?? 0 < bytes { scratch = try PixelMemory(byteCount: bytes) }
        let rows = PixelSize(width: max(size.width, size.height), height: Converter.checkedRows)
        if band?.byteCount ?? 0 < I420Planes.byteCount(rows) { band = try PixelMemory(byteCount: I420Planes.byteCount(rows)) }
    }

    /// Converts the damaged parts of a picture.
    ///
    /// - Parameters:
    ///   - target: of the source's ``SourcePicture/uprightSize``.
    ///   - damage: in pixels of the target. Rounded out to whole chroma samples.
    /// - Returns: false when the source's rows do not lie within its bytes, the target has another size, or there is no scratch memory for it.
    public func convert(_ source: SourcePicture, into target: I420Planes, _ damage: Damage = .everything) -> Bool {
        guard source.isWithinBounds, !source.visible.isEmpty, target.size == source.uprightSize else { return false }
        var isDone = true
        damage.forEach(in: target.size) { rect in
            let area = rect.evenlyAligned(in: target.size)
            if isDone { isDone = convert(source, area, into: target) }
        }
        return isDone
    }

    /// Converts a few rows into memory of the converter's own, to look at them beside a picture that should be the same.
    ///
    /// - Parameter rows: of the upright picture, at most ``checkedRows`` high, from an even row on.
    /// - Returns: the rows, valid until the next call; nil when there is no memory for them.
    public func band(_ source: SourcePicture, _ rows: PixelRect) -> I420Planes? {
        guard let band, band.byteCount >= I420Planes.byteCount(rows.size) else { return nil }
        var part = source
        part.crop = source.inMemory(rows)
        let planes = I420Planes(size: rows.size, base: band.base)
        return convert(part, into: planes) ? planes : nil
    }

    private func convert(_ source: SourcePicture, _ area: PixelRect, into target: I420Planes) -> Bool {
        switch source.transform {
        case .normal:
            return pass(source, source.inMemory(area), flipped: false, target, area)
        case .flipped180:
            return pass(source, source.inMemory(area), flipped: true, target, area)
        default:
            return turn(source, area, into: target)
        }
    }

    /// One pass from the source into the target.
    private func pass(_ source: SourcePicture, _ rect: PixelRect, flipped: Bool, _ target: I420Planes, _ area: PixelRect) -> Bool {
        guard let start = source.pointer(rect.x, rect.y), let part = target.part(area) else { return false }
        return source.format.toI420(start, source.strideBytes, flipped ? -rect.height : rect.height, part)
    }

    /// Turns band by band: the rows of a band are a part of the source that is turned into scratch, and that is converted.
    private func turn(_ source: SourcePicture, _ area: PixelRect, into target: I420Planes) -> Bool {
        let stride = area.width * PixelFormat.bytesPerPixel
        guard let scratch, scratch.byteCount >= stride * Converter.bandRows else { return false }
        let band = scratch.base.assumingMemoryBound(to: UInt8.self)
        var row = area.y
        while row < area.y + area.height {
            let rows = min(Converter.bandRows, area.y + area.height - row)
            let out = PixelRect(x: area.x, y: row, width: area.width, height: rows)
            let rect = source.inMemory(out)
            guard let start = source.pointer(rect.x, rect.y), let part = target.part(out) else { return false }
            let (turn, flips) = source.transform.undoing
            let height = Int32(flips ? -rect.height : rect.height)
            let code =
                switch turn {
                case .mirror: ARGBMirror(start, Int32(source.strideBytes), band, Int32(stride), Int32(rect.width), height)
                case .clockwise(let mode):
                    ARGBRotate(start, Int32(source.strideBytes), band, Int32(stride), Int32(rect.width), height, mode)
                }
            guard code == 0, source.format.toI420(UnsafePointer(band), stride, rows, part) else { return false }
            row += rows
        }
        return true
    }
}

extension PixelFormat {
    /// The function of libyuv for this order of bytes.
    ///
    /// - Parameter rows: negative to read them from the last to the first.
    fileprivate func toI420(_ source: UnsafePointer<UInt8>, _ stride: Int, _ rows: Int, _ target: I420Planes) -> Bool {
        let convert =
            switch self {
            case .bgrx, .bgra: ARGBToI420
            case .rgbx, .rgba: ABGRToI420
            case .xrgb, .argb: BGRAToI420
            case .xbgr, .abgr: RGBAToI420
            }
        return convert(
            source, Int32(stride), target.luma, Int32(target.lumaStride), target.blue, Int32(target.chromaStride), target.red,
            Int32(target.chromaStride), Int32(target.size.width), Int32(rows)) == 0
    }
}

extension Transform {
    fileprivate enum Turn {
        case mirror
        case clockwise(RotationMode)
    }

    /// What makes a turned picture upright: first the rows in reverse order, if so said, then a turn or a mirror. Half a turn is done by both of
    /// these, because libyuv's own allocates.
    fileprivate var undoing: (turn: Turn, flips: Bool) {
        switch self {
        case .normal, .flipped180: (.clockwise(kRotate0), self == .flipped180)
        case .rotated90: (.clockwise(kRotate90), false)
        case .rotated180: (.mirror, true)
        case .rotated270: (.clockwise(kRotate270), false)
        case .flipped: (.mirror, false)
        case .flipped90: (.clockwise(kRotate90), true)
        case .flipped270: (.clockwise(kRotate270), true)
        }
    }
}

extension Transform {
    /// The part of a picture in memory that becomes a rectangle of the upright picture.
    ///
    /// - Parameter size: of the picture in memory. What is asked for may reach beyond it.
    public func inMemory(_ area: PixelRect, of size: PixelSize) -> PixelRect {
        let right = size.width - area.x - area.width
        let bottom = size.height - area.y - area.height
        let mirrored = size.height - area.x - area.width
        let turned = size.width - area.y - area.height
        let (x, y) =
            switch self {
            case .normal: (area.x, area.y)
            case .rotated90: (area.y, mirrored)
            case .rotated180: (right, bottom)
            case .rotated270: (turned, area.x)
            case .flipped: (right, area.y)
            case .flipped90: (area.y, area.x)
            case .flipped180: (area.x, bottom)
            case .flipped270: (turned, mirrored)
            }
        let size = swapsSides ? area.size.transposed : area.size
        return PixelRect(x: x, y: y, width: size.width, height: size.height)
    }

    /// Where a part of a picture in memory lies in the upright picture.
    ///
    /// - Parameter size: of the picture in memory. What is asked for may reach beyond it.
    public func upright(_ rect: PixelRect, of size: PixelSize) -> PixelRect {
        let right = size.width - rect.x - rect.width
        let bottom = size.height - rect.y - rect.height
        let (x, y) =
            switch self {
            case .normal: (rect.x, rect.y)
            case .rotated90: (bottom, rect.x)
            case .rotated180: (right, bottom)
            case .rotated270: (rect.y, right)
            case .flipped: (right, rect.y)
            case .flipped90: (rect.y, rect.x)
            case .flipped180: (rect.x, bottom)
            case .flipped270: (bottom, right)
            }
        let size = swapsSides ? rect.size.transposed : rect.size
        return PixelRect(x: x, y: y, width: size.width, height: size.height)
    }
}

extension SourcePicture {
    /// The pixels in memory that become a rectangle of the upright picture.
    public func inMemory(_ area: PixelRect) -> PixelRect {
        let part = visible
        var rect = transform.inMemory(area, of: part.size)
        (rect.x, rect.y) = (rect.x + part.x, rect.y + part.y)
        return rect
    }

    /// A rectangle of memory, as it lies in the upright picture; empty when none of it is shown.
    public func upright(_ rect: PixelRect) -> PixelRect {
        let part = visible
        var inside = rect.intersection(part)
        if inside.isEmpty { return inside }
        (inside.x, inside.y) = (inside.x - part.x, inside.y - part.y)
        return transform.upright(inside, of: part.size)
    }

    fileprivate func pointer(_ x: Int, _ y: Int) -> UnsafePointer<UInt8>? {
        bytes.baseAddress.map { ($0 + y * strideBytes + x * PixelFormat.bytesPerPixel).assumingMemoryBound(to: UInt8.self) }
    }
}
