// SPDX-License-Identifier: MIT
import Encoding
import Frames

/// YUV4MPEG2: a line of text, then each picture behind a line of its own. It has no times.
///
/// Spec: `yuv4mpeg(5)` of the mjpegtools.
struct Y4MMuxer: Muxer {
    /// Where nothing limits the pictures.
    private static let usualRate: UInt32 = 30
    private var hasBegun = false

    mutating func prefix(of packet: Packet) -> [UInt8] {
        defer { hasBegun = true }
        return Array((hasBegun ? "FRAME\n" : Y4MMuxer.beginning(packet) + "FRAME\n").utf8)
    }

    /// Progressive, square pixels; `jpeg` is where the chroma samples lie: amid four luma samples. The rate is the greatest that there may be:
    /// pictures come when something changes.
    private static func beginning(_ packet: Packet) -> String {
        let rate = packet.frameRate == 0 ? usualRate : packet.frameRate
        return "YUV4MPEG2 W\(packet.size.width) H\(packet.size.height) F\(rate):1 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\n"
    }
}
