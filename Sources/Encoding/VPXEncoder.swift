// SPDX-License-Identifier: MIT
import CVPX
import Frames
import Glibc
import Loop

/// One context of libvpx, set up for screens: one picture in, one packet out, no look-ahead.
///
/// Units: quantizers run from 0, the finest, to 63.
/// Spec: [RFC 6386](https://www.rfc-editor.org/rfc/rfc6386) and the
/// [VP9 bitstream](https://www.webmproject.org/vp9/#bitstream-specification).
final class VPXEncoder {
    /// The range that rate control chooses from. Finer than the first shows no difference and costs bits.
    static let quantizers = 4...56

    /// How a picture is to be encoded.
    struct Request {
        /// Makes a picture that decoding may begin with.
        var isKeyFrame = false
        /// Later pictures may build on this one. One that is none shows the last picture once more, and selects no block.
        var isReference = true
        /// The coarsest quantizer to use.
        var greatestQuantizer = VPXEncoder.quantizers.upperBound
    }

    /// An encoded picture.
    struct Output {
        let bytes: [UInt8]
        let isKeyFrame: Bool
        /// What the picture's blocks were encoded with.
        let quantizer: Int
    }

    /// Rate control takes a longer pause for this one: what was not sent for an hour is no reason to send the next picture at the finest quantizer.
    private static let greatestPause = Duration.milliseconds(250)
    /// Microseconds before the first picture, and before a repetition: those that follow it are not to come any sooner for rate control.
    private static let usualPause: Int64 = 33_000

    /// What shows the last picture once more in VP9: a header that says "show an existing frame, the one in slot 0". That is where the encoder
    /// keeps the last. A picture that was encoded for it would leave motion vectors, on which the next builds even if it is no reference.
    private static let lastOnceMore = Output(bytes: [0b1000_1000], isKeyFrame: false, quantizer: 0)

    let codec: VideoCodec
    let size: PixelSize
    private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
    private var configuration: vpx_codec_enc_cfg_t
    /// VP8's; see ``speed(_:_:)``.
    private var speed: Int32 = 0
    /// Microseconds on the clock that rate control sees.
    private var clock: Int64 = 0
    private var lastTime: Instant?

    init(_ codec: VideoCodec, size: PixelSize, rates: EncodingRates) throws(EncodingError) {
        (self.codec, self.size) = (codec, size)
        configuration = vpx_codec_enc_cfg_t()
        let interface = codec == .vp8 ? vpx_codec_vp8_cx() : vpx_codec_vp9_cx()
        let code = vpx_codec_enc_config_default(interface, &configuration, 0)
        guard code == VPX_CODEC_OK else { throw .cannotStart(codec, size, String(cString: vpx_codec_err_to_string(code))) }
        VPXEncoder.configure(&configuration, codec, size: size, bitrate: rates.bitrate(for: size))

        context = .allocate(capacity: 1)
        context.initialize(to: vpx_codec_ctx_t())
        let result = cvpx_enc_init(context, interface, &configuration)
        guard result == VPX_CODEC_OK else {
            let reason = String(cString: vpx_codec_err_to_string(result))
            context.deallocate()
            throw .cannotStart(codec, size, reason)
        }
        switch codec {
        case .vp8:
            speed = VPXEncoder.speed(size, rates)
            _ = cvpx_set_cpu_used(context, -speed)
            _ = cvpx_set_static_threshold(context, 1)
            // Not libvpx's mode for screens: in it quantizers fall only slowly, which is just what refinement cannot use.
            _ = cvpx_set_screen_content_mode(context, 0)
        case .vp9:
            _ = cvpx_set_cpu_used(context, 9)
            // Text that scrolls takes a fifth of the bytes.
            _ = cvpx_set_tune_content(context, Int32(VP9E_CONTENT_SCREEN.rawValue))
            // Quantizers of its own choice for parts of a picture would undo what is known of each block.
            _ = cvpx_set_aq_mode(context, 0)
            _ = cvpx_set_tile_columns(context, 1)
            _ = cvpx_set_color_space(context, Int32(VPX_CS_BT_601.rawValue))
            _ = cvpx_set_color_range(context, Int32(VPX_CR_STUDIO_RANGE.rawValue))
        }
    }

    deinit {
        vpx_codec_destroy(context)
        context.deallocate()
    }

    /// Changes the rates from the next picture on.
    func setRates(_ rates: EncodingRates) throws(EncodingError) {
        let speed = VPXEncoder.speed(size, rates)
        if codec == .vp8 && speed != self.speed {
            self.speed = speed
            try check(cvpx_set_cpu_used(context, -speed))
        }
        let kilobits = VPXEncoder.kilobits(rates.bitrate(for: size))
        guard configuration.rc_target_bitrate != kilobits else { return }
        configuration.rc_target_bitrate = kilobits
        try check(vpx_codec_enc_config_set(context, &configuration))
    }

    /// Encodes one picture.
    ///
    /// - Parameters:
    ///   - planes: of the encoder's size.
    ///   - blocks: one byte for each block of 16 by 16 pixels, row after row: 0 where the picture is that of the last call and is to stay as it was decoded.
    /// - Returns: nil when the codec made no packet of it.
    func encode(
        _ planes: I420Planes, blocks: inout [UInt8], at time: Instant, _ request: Request
    ) throws(EncodingError) -> Output? {
        if codec == .vp9 && !request.isReference { return VPXEncoder.lastOnceMore }
        let coarsest = UInt32(request.greatestQuantizer)
        if configuration.rc_max_quantizer != coarsest {
            configuration.rc_max_quantizer = coarsest
            try check(vpx_codec_enc_config_set(context, &configuration))
        }
        try setActive(&blocks)
        var image = vpx_image_t()
        vpx_img_wrap(&image, VPX_IMG_FMT_I420, UInt32(size.width), UInt32(size.height), 1, planes.luma)
        image.planes = (planes.luma, planes.blue, planes.red, nil)
        image.stride = (Int32(planes.lumaStride), Int32(planes.chromaStride), Int32(planes.chromaStride), 0)
        let pause = request.isReference ? pauseBefore(time) : VPXEncoder.usualPause
        // For rate control a picture takes the time before it, not after it: that one is not known yet, and the bits are spent when it comes.
        try check(vpx_codec_encode(context, &image, clock, UInt(pause), VPXEncoder.flags(codec, request), UInt(VPX_DL_REALTIME)))
        clock += pause
        return takeOutput()
    }

    private func setActive(_ blocks: inout [UInt8]) throws(EncodingError) {
        let columns = (size.width + 15) / 16
        let rows = (size.height + 15) / 16
        precondition(blocks.count == columns * rows)
        let code = blocks.withUnsafeMutableBufferPointer { buffer in
            var map = vpx_active_map_t(active_map: buffer.baseAddress, rows: UInt32(rows), cols: UInt32(columns))
            return cvpx_set_active_map(context, &map)
        }
        try check(code)
    }

    /// Microseconds since the picture before, as rate control is to see them.
    private func pauseBefore(_ time: Instant) -> Int64 {
        defer { lastTime = time }
        guard let lastTime else { return VPXEncoder.usualPause }
        return min(max(time - lastTime, .milliseconds(1)), VPXEncoder.greatestPause).microseconds
    }

    private func takeOutput() -> Output? {
        var quantizer: Int32 = 0
        _ = cvpx_get_last_quantizer(context, &quantizer)
        var bytes: [UInt8] = []
        var isKeyFrame = false
        var iterator: vpx_codec_iter_t?
        while let packet = vpx_codec_get_cx_data(context, &iterator) {
            guard packet.pointee.kind == VPX_CODEC_CX_FRAME_PKT, let buffer = packet.pointee.data.frame.buf else { continue }
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: buffer, count: packet.pointee.data.frame.sz))
            isKeyFrame = packet.pointee.data.frame.flags & UInt32(VPX_FRAME_IS_KEY) != 0
        }
        return bytes.isEmpty ? nil : Output(bytes: bytes, isKeyFrame: isKeyFrame, quantizer: Int(quantizer))
    }

    private func check(_ code: vpx_codec_err_t) throws(EncodingError) {
        guard code != VPX_CODEC_OK else { return }
        let detail = vpx_codec_error_detail(context).map { ": " + String(cString: $0) } ?? ""
        throw .cannotEncode(codec, String(cString: vpx_codec_err_to_string(code)) + detail)
    }

    private static func configure(
        _ configuration: inout vpx_codec_enc_cfg_t, _ codec: VideoCodec, size: PixelSize, bitrate: Int
    ) {
        configuration.g_w = UInt32(size.width)
        configuration.g_h = UInt32(size.height)
        configuration.g_timebase = vpx_rational(num: 1, den: 1_000_000)
        configuration.g_lag_in_frames = 0
        configuration.g_threads = threads(codec, size: size, cores: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        configuration.kf_mode = VPX_KF_DISABLED
        configuration.rc_end_usage = VPX_CBR
        configuration.rc_target_bitrate = kilobits(bitrate)
        configuration.rc_min_quantizer = UInt32(quantizers.lowerBound)
        configuration.rc_max_quantizer = UInt32(quantizers.upperBound)
        // Every picture counts: the last of a burst stays on the screen.
        configuration.rc_dropframe_thresh = 0
        configuration.rc_undershoot_pct = 100
        configuration.rc_overshoot_pct = 15
        configuration.rc_buf_initial_sz = 500
        configuration.rc_buf_optimal_sz = 600
        configuration.rc_buf_sz = 1_000
    }

    /// How many threads shorten a picture, and do not cost more than they gain.
    ///
    /// VP8's second thread spins while it waits for the first, for seven times what a picture costs where others want the core: that of a call, or the
    /// compositor's. It is worth it at 4K, where there are cores to spare. VP9's sleeps, and has a tile of its own.
    static func threads(_ codec: VideoCodec, size: PixelSize, cores: Int) -> UInt32 {
        let pixels = size.width * size.height
        switch codec {
        case .vp8: return pixels > 2560 * 1440 && cores >= 4 ? 2 : 1
        case .vp9: return pixels > 1280 * 720 ? 2 : 1
        }
    }

    /// How little VP8 searches for what has moved. libvpx takes it as negative, and then does not change it by a clock of its own.
    ///
    /// From 7 on text that scrolls is no longer found, and takes three times the bit rate that was asked for. More pixels than those of 1440p thirty
    /// times a second leave no time for more.
    private static func speed(_ size: PixelSize, _ rates: EncodingRates) -> Int32 {
        let isOften = rates.frameRate == 0 || rates.frameRate > 30
        return size.width * size.height * (isOften ? 2 : 1) > 2560 * 1440 ? 14 : 5
    }

    private static func kilobits(_ bitrate: Int) -> UInt32 { UInt32(clamping: min(max(bitrate / 1_000, 20), 200_000)) }

    private static func flags(_ codec: VideoCodec, _ request: Request) -> vpx_enc_frame_flags_t {
        var flags = 0
        // Each picture builds on the last alone. VP8 puts one away as "golden" now and then, a repetition too, whatever it is told of that one; only
        // the reader of that repetition would have it, and the others could not decode what builds on it. Without the search it costs less, too.
        if codec == .vp8 { flags |= Int(VP8_EFLAG_NO_REF_GF | VP8_EFLAG_NO_REF_ARF) }
        if request.isKeyFrame { flags |= Int(VPX_EFLAG_FORCE_KF) }
        if !request.isReference {
            flags |= Int(VP8_EFLAG_NO_UPD_LAST | VP8_EFLAG_NO_UPD_GF | VP8_EFLAG_NO_UPD_ARF | VP8_EFLAG_NO_UPD_ENTROPY)
        }
        return vpx_enc_frame_flags_t(flags)
    }
}
