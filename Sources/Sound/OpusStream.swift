// SPDX-License-Identifier: MIT
import COpus

/// One stream of Opus packets. Silence makes none: neither digital silence, nor what Opus itself takes for a pause (DTX).
///
/// Thread: one; the sound thread's.
/// Spec: [RFC 6716](https://www.rfc-editor.org/rfc/rfc6716), [RFC 7845](https://www.rfc-editor.org/rfc/rfc7845).
public final class OpusStream {
    /// Samples that a decoder makes before the first that was put in.
    public static let preSkip = 312
    /// What a container says of the stream: version 1, channels, samples to skip, rate, no gain, left and right.
    ///
    /// Spec: [RFC 7845](https://www.rfc-editor.org/rfc/rfc7845#section-5.1).
    public static let header: [UInt8] = {
        let (skip, rate) = (UInt16(preSkip), UInt32(SampleClock.rate))
        let numbers =
            (0..<2).map { UInt8(truncatingIfNeeded: skip >> (8 * $0)) } + (0..<4).map { UInt8(truncatingIfNeeded: rate >> (8 * $0)) }
        return Array("OpusHead".utf8) + [1, UInt8(SampleClock.channelCount)] + numbers + [0, 0, 0]
    }()
    /// Bit/s. Transparent for stereo music, to most ears.
    private static let bitrate: Int32 = 128_000
    /// Half of the greatest: the difference is not heard at that bit rate, the CPU time is.
    private static let complexity: Int32 = 5
    /// The greatest packet that RFC 6716 suggests to have room for.
    private static let greatestPacket = 4_000
    /// A packet of one or two bytes is a pause, and need not be sent.
    private static let greatestPause = 2
    /// Silent frames that are still encoded after others: the decoder's overlap comes to rest.
    private static let greatestTail = 5
    /// Below this a sample of 16 bits is 0.
    private static let silence: Float = 1 / 65_536

    private let encoder: OpaquePointer
    private var silentFrames = OpusStream.greatestTail
    private var packet = [UInt8](repeating: 0, count: greatestPacket)

    /// - Returns: nil when there is no memory for an encoder.
    public init?() {
        var code: Int32 = 0
        let channels = Int32(SampleClock.channelCount)
        guard let encoder = opus_encoder_create(Int32(SampleClock.rate), channels, OPUS_APPLICATION_AUDIO, &code) else { return nil }
        self.encoder = encoder
        _ = copus_set_bitrate(encoder, OpusStream.bitrate)
        _ = copus_set_complexity(encoder, OpusStream.complexity)
        _ = copus_set_dtx(encoder, 1)
    }

    deinit { opus_encoder_destroy(encoder) }

    /// What the encoder itself says of ``preSkip``.
    var lookAhead: Int {
        var samples: Int32 = 0
        _ = copus_get_lookahead(encoder, &samples)
        return Int(samples)
    }

    /// The packet of a frame of interleaved samples; nil when it need not be sent.
    public func encode(_ frame: [Float]) -> [UInt8]? {
        if frame.allSatisfy({ abs($0) < OpusStream.silence }) {
            silentFrames += 1
            if silentFrames > OpusStream.greatestTail { return nil }
        } else {
            silentFrames = 0
        }
        let length = Int32(frame.count / SampleClock.channelCount)
        let count = Int(opus_encode_float(encoder, frame, length, &packet, Int32(packet.count)))
        guard count > OpusStream.greatestPause else { return nil }
        return Array(packet[..<count])
    }
}
