// SPDX-License-Identifier: MIT
import COpus
import Testing

@testable import Sound

@Suite struct OpusStreamTests {
    private static func frames(of samples: [Float]) -> [[Float]] {
        stride(from: 0, to: samples.count, by: 1_920).map { Array(samples[$0..<$0 + 1_920]) }
    }

    private static func decode(_ packets: [[UInt8]]) throws -> [Float] {
        var code: Int32 = 0
        let decoder = try #require(opus_decoder_create(48_000, 2, &code))
        defer { opus_decoder_destroy(decoder) }
        var output: [Float] = []
        for packet in packets {
            var pcm = [Float](repeating: 0, count: 2 * 5_760)
            let count = opus_decode_float(decoder, packet, Int32(packet.count), &pcm, 5_760, 0)
            #expect(count == 960)
            output += pcm[..<(2 * Int(max(0, count)))]
        }
        return output
    }

    @Test func aToneInEachChannelComesOutOfADecoder() throws {
        let stream = try #require(OpusStream())
        let packets = Self.frames(of: tone(left: 440, right: 3_000, count: 48_000)).compactMap { stream.encode($0) }
        #expect(packets.count == 50)
        let settled = Array(try Self.decode(packets).dropFirst(2 * 9_600).prefix(2 * 24_000))
        #expect(abs(level(of: 440, in: settled, channel: 0) - 0.25) < 0.02)
        #expect(abs(level(of: 3_000, in: settled, channel: 1) - 0.25) < 0.02)
        #expect(level(of: 3_000, in: settled, channel: 0) < 0.01)
        #expect(level(of: 440, in: settled, channel: 1) < 0.01)
    }

    @Test func whatADecoderSkipsIsWhatTheEncoderSays() throws {
        #expect(try #require(OpusStream()).lookAhead == OpusStream.preSkip)
    }

    @Test func silenceMakesNoPackets() throws {
        let stream = try #require(OpusStream())
        let silence = [Float](repeating: 0, count: 1_920)
        #expect((0..<50).allSatisfy { _ in stream.encode(silence) == nil })
        #expect(Self.frames(of: tone(left: 440, right: 440, count: 9_600)).allSatisfy { stream.encode($0) != nil })
        let tail = (0..<500).compactMap { _ in stream.encode(silence) }
        #expect(tail.count <= 5)
        #expect(stream.encode(tone(left: 440, right: 440, count: 960)) != nil)
    }
}
