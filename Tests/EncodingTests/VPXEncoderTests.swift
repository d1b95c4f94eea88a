// SPDX-License-Identifier: MIT
import CVPXDecoding
import Frames
import Glibc
import Loop
import Testing

@testable import Encoding

/// What decoders make of an encoder's packets.
@Suite struct VPXEncoderTests {
    /// One reader's decoder.
    private final class Decoder {
        private let context: UnsafeMutablePointer<vpx_codec_ctx_t>

        init(_ codec: VideoCodec) {
            context = .allocate(capacity: 1)
            context.initialize(to: vpx_codec_ctx_t())
            let code = cvpx_dec_init(context, codec == .vp8 ? vpx_codec_vp8_dx() : vpx_codec_vp9_dx())
            #expect(code == VPX_CODEC_OK)
        }

        deinit {
            vpx_codec_destroy(context)
            context.deallocate()
        }

        /// The luma samples of the picture that a packet shows.
        func decode(_ bytes: [UInt8]) -> [UInt8] {
            let code = vpx_codec_decode(context, bytes, UInt32(bytes.count), nil, 0)
            #expect(code == VPX_CODEC_OK)
            var iterator: vpx_codec_iter_t?
            guard let image = vpx_codec_get_frame(context, &iterator)?.pointee, let luma = image.planes.0 else { return [] }
            return (0..<Int(image.d_h)).flatMap { row in
                [UInt8](UnsafeBufferPointer(start: luma + row * Int(image.stride.0), count: Int(image.d_w)))
            }
        }
    }

    /// A repetition goes to one reader alone, as its last picture: the others decode the same without it, however often and whenever it is made.
    @Test(arguments: [VideoCodec.vp8, .vp9], [1, 2, 3]) func aRepetitionIsMissedByNobody(_ codec: VideoCodec, every: Int) throws {
        let size = PixelSize(width: 320, height: 192)
        let encoder = try VPXEncoder(codec, size: size, rates: EncodingRates(frameRate: 30, bitrate: 400_000))
        let picture = try Picture(size: size)
        let planes = picture.planes
        memset(planes.luma, 128, planes.lumaStride * size.height)
        memset(planes.blue, 128, planes.chromaStride * size.chroma.height)
        memset(planes.red, 128, planes.chromaStride * size.chroma.height)
        let (one, other) = (Decoder(codec), Decoder(codec))
        let columns = size.width / 16
        let count = columns * (size.height / 16)
        var isUp = [Bool](repeating: false, count: count)
        var state: UInt64 = 1
        var time = Instant(nanoseconds: 1_000_000_000)
        for number in 0..<200 {
            // Blocks that blink: what one shows now it has shown before.
            var blocks = [UInt8](repeating: 0, count: count)
            for block in 0..<count {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                guard state >> 61 == 0 else { continue }
                blocks[block] = 1
                isUp[block].toggle()
                let (x, y) = (block % columns * 16, block / columns * 16)
                for row in y..<(y + 16) {
                    for column in x..<(x + 16) {
                        let pattern = UInt8(truncatingIfNeeded: ((column * 7) ^ (row * 13) ^ (block * 37)) & 63)
                        planes.luma[row * planes.lumaStride + column] = isUp[block] ? 40 + pattern : 220 - pattern
                    }
                }
            }
            if number == 0 { blocks = [UInt8](repeating: 1, count: count) }
            time = time + .milliseconds(33)
            let request = VPXEncoder.Request(isKeyFrame: number == 0)
            let output = try #require(try encoder.encode(planes, blocks: &blocks, at: time, request))
            let shown = one.decode(output.bytes)
            let isSame = other.decode(output.bytes) == shown
            #expect(isSame, "picture \(number)")

            if number % every != 0 { continue }
            var nothing = [UInt8](repeating: 0, count: count)
            time = time + .milliseconds(33)
            let again = try #require(try encoder.encode(planes, blocks: &nothing, at: time, VPXEncoder.Request(isReference: false)))
            let isRepeated = one.decode(again.bytes) == shown
            #expect(isRepeated, "repetition of \(number)")
        }
    }
}
