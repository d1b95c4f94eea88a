// SPDX-License-Identifier: MIT
public import Frames

/// What compresses pictures, in realtime mode.
public enum VideoCodec: String, Hashable, Sendable {
    /// VP8, which everything decodes.
    case vp8
    /// VP9: fewer bytes, more memory.
    case vp9
}

/// What pictures are turned into.
public enum Codec: Hashable, Sendable {
    /// Compressed pictures, of which only a key frame can be decoded by itself.
    case video(VideoCodec)
    /// I420 samples, row after row without padding: luma, U, V.
    case raw
}

/// The rates of an encoding that may change while it runs.
public struct EncodingRates: Hashable, Sendable {
    /// The greatest number of pictures a second; 0 is no limit.
    public var frameRate: UInt32
    /// Bit/s to aim at; 0 is chosen from the size. Raw pictures have none.
    public var bitrate: UInt32

    /// Rates of that many pictures and bits a second.
    public init(frameRate: UInt32, bitrate: UInt32) { (self.frameRate, self.bitrate) = (frameRate, bitrate) }

    /// The bit rate for pictures of that size.
    ///
    /// Two bits a second for each pixel are what the presets give; pictures that come more often than thirty times a second get half as much again.
    func bitrate(for size: PixelSize) -> Int {
        if bitrate > 0 { return Int(bitrate) }
        let pixels = size.width * size.height
        let often = frameRate == 0 || frameRate > 30
        return min(max(often ? pixels * 3 : pixels * 2, 300_000), 30_000_000)
    }
}

/// What distinguishes one encoding of a pool's pictures from another.
public struct EncodingOptions: Hashable, Sendable {
    /// What pictures are turned into.
    public var codec: Codec
    /// What the first picture is scaled down into, keeping its shape; nil is no limit. It decides the size for good.
    public var maxSize: PixelSize?
    /// Frames and bits a second.
    public var rates: EncodingRates
    /// Whether the pointer is drawn into the pictures, where it comes beside them. When not, it goes to the readers as it is.
    public var drawsCursor: Bool
    /// Whether nothing is sent, instead of the placeholder, while there is no real picture to show.
    public var holdsOnPlaceholder: Bool

    /// Options of an encoding.
    public init(codec: Codec, maxSize: PixelSize?, rates: EncodingRates, drawsCursor: Bool = true, holdsOnPlaceholder: Bool) {
        self.drawsCursor = drawsCursor
        (self.codec, self.maxSize, self.rates, self.holdsOnPlaceholder) = (codec, maxSize, rates, holdsOnPlaceholder)
    }
}

extension PixelSize {
    /// The greatest size of the same shape that fits into `limit`; never larger than this one, never empty.
    public func fitted(into limit: PixelSize?) -> PixelSize {
        let greatest = PixelSize.greatestSide
        let width = min(limit.map { $0.width > 0 ? $0.width : greatest } ?? greatest, greatest)
        let height = min(limit.map { $0.height > 0 ? $0.height : greatest } ?? greatest, greatest)
        if self.width <= width && self.height <= height { return self }
        // Which side is the tighter one: width / self.width against height / self.height.
        if width * self.height <= height * self.width {
            return PixelSize(width: width, height: max(1, (self.height * width + self.width / 2) / self.width))
        }
        return PixelSize(width: max(1, (self.width * height + self.height / 2) / self.height), height: height)
    }
}
