// SPDX-License-Identifier: MIT

/// Which part of a source is shown, and which parts of it never.
///
/// Units: pixels of the source, upright, before the crop.
public struct CaptureView: Equatable, Sendable {
    /// The part that is shown; nil is all of it. Cut to the source at each resize; when nothing is left, the picture is black.
    public var crop: PixelRect?
    /// Parts that are black before anything else sees the picture.
    public var masks: [PixelRect]

    /// A view of a source.
    public init(crop: PixelRect? = nil, masks: [PixelRect] = []) { (self.crop, self.masks) = (crop, masks) }

    /// What a mask blackens of a picture: whole chroma samples, in pixels of the picture.
    ///
    /// - Parameter part: of the source, which is the picture.
    public func mask(_ index: Int, of part: PixelRect) -> PixelRect {
        var rect = masks[index].intersection(part)
        (rect.x, rect.y) = (rect.x - part.x, rect.y - part.y)
        return rect.evenlyAligned(in: part.size)
    }
}
