// SPDX-License-Identifier: MIT

/// The layout of one pixel of a compositor's picture, by the name that PipeWire has for it: four bytes, in the order of memory.
///
/// The three libraries involved name them differently. DRM and libyuv name the bits of a little-endian word, so that their names
/// run against the order of memory:
///
/// | here, SPA | bytes      | DRM fourcc      | libyuv |
/// |-----------|------------|-----------------|--------|
/// | BGRx BGRA | B G R x/A  | XR24 / AR24     | ARGB   |
/// | RGBx RGBA | R G B x/A  | XB24 / AB24     | ABGR   |
/// | xRGB ARGB | x/A R G B  | BX24 / BA24     | BGRA   |
/// | xBGR ABGR | x/A B G R  | RX24 / RA24     | RGBA   |
///
/// The fourth byte is never read: where it is not undefined, a screen is opaque.
public enum PixelFormat: CaseIterable, Sendable {
    /// Blue, green, red, undefined.
    case bgrx
    /// Blue, green, red, alpha.
    case bgra
    /// Red, green, blue, undefined.
    case rgbx
    /// Red, green, blue, alpha.
    case rgba
    /// Undefined, red, green, blue.
    case xrgb
    /// Alpha, red, green, blue.
    case argb
    /// Undefined, blue, green, red.
    case xbgr
    /// Alpha, blue, green, red.
    case abgr

    /// Bytes that one pixel takes.
    public static let bytesPerPixel = 4

    /// PipeWire's name: `BGRx`.
    public var name: String {
        switch self {
        case .bgrx: "BGRx"
        case .bgra: "BGRA"
        case .rgbx: "RGBx"
        case .rgba: "RGBA"
        case .xrgb: "xRGB"
        case .argb: "ARGB"
        case .xbgr: "xBGR"
        case .abgr: "ABGR"
        }
    }

    /// At which of a pixel's bytes each colour lies.
    public var offsets: (red: Int, green: Int, blue: Int) {
        switch self {
        case .bgrx, .bgra: (2, 1, 0)
        case .rgbx, .rgba: (0, 1, 2)
        case .xrgb, .argb: (1, 2, 3)
        case .xbgr, .abgr: (3, 2, 1)
        }
    }
}

/// How a compositor turned a picture before it handed it over, with the numbers of `enum spa_meta_videotransform_value`: mirrored about
/// its vertical axis first, where the name says so, then turned counter-clockwise. To show the picture upright, it is turned back.
///
/// Spec: `spa/buffer/meta.h`; the numbers are those of `wl_output.transform`.
public enum Transform: UInt32, CaseIterable, Sendable {
    /// Upright already.
    case normal = 0
    /// A quarter turn counter-clockwise.
    case rotated90
    /// Half a turn.
    case rotated180
    /// Three quarters of a turn counter-clockwise.
    case rotated270
    /// Mirrored.
    case flipped
    /// Mirrored, then a quarter turn counter-clockwise.
    case flipped90
    /// Mirrored, then half a turn.
    case flipped180
    /// Mirrored, then three quarters of a turn counter-clockwise.
    case flipped270

    /// Whether width and height are exchanged.
    public var swapsSides: Bool { rawValue & 1 == 1 }
}
