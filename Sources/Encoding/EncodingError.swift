// SPDX-License-Identifier: MIT
public import Frames

/// Why an encoding cannot go on.
public enum EncodingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The codec refused to start for pictures of that size; the text is its own.
    case cannotStart(VideoCodec, PixelSize, String)
    /// The codec refused a picture; the text is its own.
    case cannotEncode(VideoCodec, String)
    /// There is no memory for a picture of that size.
    case outOfMemory(PixelSize)

    /// What went wrong, in words.
    public var description: String {
        switch self {
        case .cannotStart(let codec, let size, let reason):
            "the \(codec.rawValue.uppercased()) encoder did not start for \(size) pixels: \(reason)"
        case .cannotEncode(let codec, let reason): "the \(codec.rawValue.uppercased()) encoder refused a picture: \(reason)"
        case .outOfMemory(let size): "no memory for a picture of \(size) pixels"
        }
    }
}
