// SPDX-License-Identifier: MIT
import Encoding
import Frames

/// YUV4MPEG2: a line of text, then each picture behind a line of its own. It has no times.
///
/// Spec: `yuv4mpeg(5)` of the mjpegtools.
struct Y4MMuxer: Muxer {
    private static let nominalRate = 30
    private var hasBegun = false

    mutating func prefix(of packet: Packet) -> [UInt8] {
        defer { hasBegun = true }
        return Array((hasBegun ? "FRAME\n" : Y4MMuxer.beginning(packet.size) + "FRAME\n").utf8)
    }

    /// Progressive, square pixels; `jpeg` is where the chroma samples lie: amid four luma samples.
    private static func beginning(_ size: PixelSize) -> String {
        "YUV4MPEG2 W\(size.width) H\(size.height) F\(nominalRate):1 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\n"
    }
}
