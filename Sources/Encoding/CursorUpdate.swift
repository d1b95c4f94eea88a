// SPDX-License-Identifier: MIT
public import Frames

/// The pointer over an encoding's pictures, for readers that draw it themselves.
public struct CursorUpdate: Equatable, Sendable {
    /// A bitmap: its pixels as ``CursorImage/pixels`` has them, which are the same for as long as its serial is.
    public struct Bitmap: Equatable, Sendable {
        /// Tells it from the others of the track.
        public let serial: UInt64
        /// Its own pixels, whatever the pictures are scaled to.
        public let size: PixelSize
        /// The point of it that points, from its top left corner.
        public let hotspotX: Int
        /// The same, downwards.
        public let hotspotY: Int
        /// Rows one behind the other, four bytes a pixel.
        public let pixels: [UInt8]

        /// A bitmap of those pixels.
        public init(serial: UInt64, size: PixelSize, hotspotX: Int, hotspotY: Int, pixels: [UInt8]) {
            (self.serial, self.size, self.pixels) = (serial, size, pixels)
            (self.hotspotX, self.hotspotY) = (hotspotX, hotspotY)
        }

        /// Bitmaps are equal that have the same serial and point in the same way.
        public static func == (left: Bitmap, right: Bitmap) -> Bool {
            (left.serial, left.hotspotX, left.hotspotY) == (right.serial, right.hotspotX, right.hotspotY)
        }
    }

    /// Where the bitmap lies in the pictures of the encoding, scaled as they are; it may reach beyond.
    public let area: PixelRect
    /// nil when there is no pointer to be seen.
    public let bitmap: Bitmap?

    /// No pointer.
    public static let hidden = CursorUpdate(area: PixelRect(x: 0, y: 0, width: 0, height: 0), bitmap: nil)

    /// A pointer at a place.
    public init(area: PixelRect, bitmap: Bitmap?) { (self.area, self.bitmap) = (area, bitmap) }
}
