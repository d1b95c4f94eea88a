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
        IVFMuxer.append(UInt32(packet.bytes.count), to: &output)
        IVFMuxer.append(UInt64(max(0, (packet.time - epoch).nanoseconds / 1_000_000)), to: &output)
        return output
    }

    private func appendHeader(_ size: PixelSize, to output: inout [UInt8]) {
        output += "DKIF".utf8
        IVFMuxer.append(UInt16(0), to: &output)
        IVFMuxer.append(UInt16(32), to: &output)
        output += (codec == .vp8 ? "VP80" : "VP90").utf8
        IVFMuxer.append(UInt16(size.width), to: &output)
        IVFMuxer.append(UInt16(size.height), to: &output)
        // Units of time in a second, and how many of them times count.
        IVFMuxer.append(UInt32(1_000), to: &output)
        IVFMuxer.append(UInt32(1), to: &output)
        // How many pictures there are is not known in a pipe; then four bytes that mean nothing.
        IVFMuxer.append(UInt64(0), to: &output)
    }

    private static func append(_ value: some FixedWidthInteger, to output: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { output.append(contentsOf: $0) }
    }
}
