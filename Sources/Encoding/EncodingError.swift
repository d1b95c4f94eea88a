// SPDX-License-Identifier: MIT
public import Frames

/// Why an encoding cannot go on.
public enum EncodingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The codec refused to start for pictures of that size; the text is its own.
    case cannotStart(PixelSize, String)
    /// The codec refused a picture; the text is its own.
    case cannotEncode(String)
    /// There is no memory for a picture of that size.
    case outOfMemory(PixelSize)

    /// What went wrong, in words.
    public var description: String {
        switch self {
        case .cannotStart(let size, let reason): "the VP8 encoder did not start for \(size) pixels: \(reason)"
        case .cannotEncode(let reason): "the VP8 encoder refused a picture: \(reason)"
        case .outOfMemory(let size): "no memory for a picture of \(size) pixels"
        }
    }
}
