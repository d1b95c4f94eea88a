// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop

/// IVF: a header of 32 bytes, then each picture behind its size and its time in milliseconds. All numbers are little-endian.
///
/// Spec: [IVF](https://wiki.multimedia.cx/index.php/Duck_IVF), and libvpx's `ivfenc.c`.
struct IVFMuxer: Muxer {
    private let codec: VideoCodec
    private var epoch: Instant?

    init(_ codec: VideoCodec) { self.codec = codec }

    mutating func prefix(of packet: Packet) -> [UInt8] {
        var output: [UInt8] = []
        if epoch == nil { appendHeader(packet.size, to: &output) }
        let epoch = self.epoch ?? packet.time
        self.epoch = epoch
        output.appendLittleEndian(UInt32(packet.bytes.count))
        output.appendLittleEndian(UInt64(max(0, (packet.time - epoch).nanoseconds / 1_000_000)))
        return output
    }

    private func appendHeader(_ size: PixelSize, to output: inout [UInt8]) {
        output += "DKIF".utf8
        output.appendLittleEndian(UInt16(0))
        output.appendLittleEndian(UInt16(32))
        output += (codec == .vp8 ? "VP80" : "VP90").utf8
        output.appendLittleEndian(UInt16(size.width))
        output.appendLittleEndian(UInt16(size.height))
        // Units of time in a second, and how many of them times count.
        output.appendLittleEndian(UInt32(1_000))
        output.appendLittleEndian(UInt32(1))
        // How many pictures there are is not known in a pipe; then four bytes that mean nothing.
        output.appendLittleEndian(UInt64(0))
    }
}
