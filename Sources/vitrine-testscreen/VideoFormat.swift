// SPDX-License-Identifier: MIT
import CPipeWire

/// The pixel formats that the source can offer, by the names that SPA gives them: the order of the bytes in memory.
enum VideoFormat: String, CaseIterable {
    case BGRx, BGRA, RGBx, RGBA, xRGB, ARGB, xBGR, ABGR
    /// Three bytes a pixel, as some compositors offer them.
    case RGB, BGR
    /// What HDR outputs offer. Only the offer is real: the pixels are those of BGRx.
    case xBGR_210LE, RGBA_F16
    /// Planar, as cameras offer it. Only the offer is real.
    case I420

    /// The number in a format POD.
    var id: UInt32 {
        let format: spa_video_format =
            switch self {
            case .BGRx: SPA_VIDEO_FORMAT_BGRx
            case .BGRA: SPA_VIDEO_FORMAT_BGRA
            case .RGBx: SPA_VIDEO_FORMAT_RGBx
            case .RGBA: SPA_VIDEO_FORMAT_RGBA
            case .xRGB: SPA_VIDEO_FORMAT_xRGB
            case .ARGB: SPA_VIDEO_FORMAT_ARGB
            case .xBGR: SPA_VIDEO_FORMAT_xBGR
            case .ABGR: SPA_VIDEO_FORMAT_ABGR
            case .RGB: SPA_VIDEO_FORMAT_RGB
            case .BGR: SPA_VIDEO_FORMAT_BGR
            case .xBGR_210LE: SPA_VIDEO_FORMAT_xBGR_210LE
            case .RGBA_F16: SPA_VIDEO_FORMAT_RGBA_F16
            case .I420: SPA_VIDEO_FORMAT_I420
            }
        return format.rawValue
    }

    init?(id: UInt32) {
        guard let format = VideoFormat.allCases.first(where: { $0.id == id }) else { return nil }
        self = format
    }

    /// Bytes from one pixel to the next.
    var bytesPerPixel: Int {
        switch self {
        case .RGB, .BGR: 3
        case .RGBA_F16: 8
        default: 4
        }
    }

    /// At which byte of a pixel red, green, blue and the unused or alpha byte are. Three-byte formats are painted like the
    /// four-byte one that starts with the same three.
    private var positions: (red: UInt32, green: UInt32, blue: UInt32, rest: UInt32) {
        switch self {
        case .RGBx, .RGBA, .RGB: (0, 1, 2, 3)
        case .xRGB, .ARGB: (1, 2, 3, 0)
        case .xBGR, .ABGR: (3, 2, 1, 0)
        default: (2, 1, 0, 3)
        }
    }

    /// A pixel as it is in memory.
    ///
    /// - Parameter rest: the byte that no colour uses; for formats with alpha, the alpha.
    func pixel(_ colour: Colour, rest: UInt8) -> UInt32 {
        let at = positions
        let value =
            UInt32(colour.red) << (at.red * 8) | UInt32(colour.green) << (at.green * 8) | UInt32(colour.blue) << (at.blue * 8)
            | UInt32(rest) << (at.rest * 8)
        return UInt32(littleEndian: value)
    }
}

/// A colour, full range.
struct Colour: Equatable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8

    init(_ red: UInt8, _ green: UInt8, _ blue: UInt8) { (self.red, self.green, self.blue) = (red, green, blue) }

    init(grey: UInt8) { self.init(grey, grey, grey) }

    static let black = Colour(grey: 0)
    static let white = Colour(grey: 255)
    static let red = Colour(255, 0, 0)
    static let green = Colour(0, 255, 0)
    static let blue = Colour(0, 0, 255)
    static let magenta = Colour(255, 0, 255)
}
