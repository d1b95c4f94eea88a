// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import PipeWire

/// What a consumer offers, and what was agreed on.
enum Negotiation {
    /// `DRM_FORMAT_MOD_LINEAR`: rows one behind the other, so that a mapping can be read.
    static let linear: UInt64 = 0

    /// The formats that can be read: shared memory first, then linear DMA-BUF.
    ///
    /// Each comes twice: screens have a variable rate and say which is the greatest; but some name a greatest rate of nothing, or none,
    /// and some a fixed rate, and those fit only the form that says nothing of rates.
    static func formats(maxFrameRate: UInt32?, includesDmaBuf: Bool) -> [Pod] {
        let memories: [UInt64?] = includesDmaBuf ? [nil, linear] : [nil]
        return memories.flatMap { modifier in
            [true, false].map { saysRate in format(modifier: modifier, rate: saysRate ? maxFrameRate ?? 1_000 : nil) }
        }
    }

    private static func format(modifier: UInt64?, rate: UInt32?) -> Pod {
        var properties: [Pod.Property] = [
            .init(key: SPA_FORMAT_mediaType.rawValue, value: .id(SPA_MEDIA_TYPE_video.rawValue)),
            .init(key: SPA_FORMAT_mediaSubtype.rawValue, value: .id(SPA_MEDIA_SUBTYPE_raw.rawValue)),
            .init(key: SPA_FORMAT_VIDEO_format.rawValue, value: .oneOf(PixelFormat.allCases.map { .id($0.spaFormat.rawValue) })),
        ]
        if let modifier {
            let value = Pod.long(Int64(bitPattern: modifier))
            properties.append(.init(key: SPA_FORMAT_VIDEO_modifier.rawValue, value: value, isMandatory: true))
        }
        let side = UInt32(PixelSize.greatestSide)
        properties.append(
            .init(
                key: SPA_FORMAT_VIDEO_size.rawValue,
                value: .range(
                    best: .rectangle(width: 1_920, height: 1_080), least: .rectangle(width: 1, height: 1),
                    greatest: .rectangle(width: side, height: side))))
        if let rate {
            properties.append(.init(key: SPA_FORMAT_VIDEO_framerate.rawValue, value: .fraction(0, 1)))
            properties.append(
                .init(
                    key: SPA_FORMAT_VIDEO_maxFramerate.rawValue,
                    value: .range(best: .fraction(rate, 1), least: .fraction(0, 1), greatest: .fraction(rate, 1))))
        }
        return .object(type: SPA_TYPE_OBJECT_Format, id: SPA_PARAM_EnumFormat, properties)
    }

    /// Buffers and metadata for an agreed format.
    ///
    /// Nothing is said of blocks, size and stride: producers that know better would not come to terms.
    static func buffers(isDmaBuf: Bool, hasCursor: Bool) -> [Pod] {
        let types: Int32 =
            isDmaBuf ? 1 << Int32(SPA_DATA_DmaBuf.rawValue) : 1 << Int32(SPA_DATA_MemFd.rawValue) | 1 << Int32(SPA_DATA_MemPtr.rawValue)
        let buffers = Pod.object(
            type: SPA_TYPE_OBJECT_ParamBuffers, id: SPA_PARAM_Buffers,
            [
                .init(key: SPA_PARAM_BUFFERS_buffers.rawValue, value: .range(best: .int(4), least: .int(1), greatest: .int(16))),
                .init(key: SPA_PARAM_BUFFERS_dataType.rawValue, value: .flags(types)),
            ])
        let region = MemoryLayout<spa_meta_region>.size
        var pods = [
            buffers,
            meta(SPA_META_Header, size(MemoryLayout<spa_meta_header>.size)),
            meta(SPA_META_VideoCrop, size(region)),
            meta(SPA_META_VideoDamage, .range(best: size(16 * region), least: size(region), greatest: size(16 * region))),
            meta(SPA_META_VideoTransform, size(MemoryLayout<spa_meta_videotransform>.size)),
        ]
        if hasCursor {
            let greatest = cursor(side: Cursor.greatestSide)
            pods.append(meta(SPA_META_Cursor, .range(best: cursor(side: 64), least: cursor(side: 1), greatest: greatest)))
        }
        return pods
    }

    private static func meta(_ type: spa_meta_type, _ size: Pod) -> Pod {
        .object(
            type: SPA_TYPE_OBJECT_ParamMeta, id: SPA_PARAM_Meta,
            [
                .init(key: SPA_PARAM_META_type.rawValue, value: .id(type.rawValue)),
                .init(key: SPA_PARAM_META_size.rawValue, value: size),
            ])
    }

    private static func size(_ bytes: Int) -> Pod { .int(Int32(clamping: bytes)) }

    private static func cursor(side: Int) -> Pod {
        size(MemoryLayout<spa_meta_cursor>.size + MemoryLayout<spa_meta_bitmap>.size + side * side * PixelFormat.bytesPerPixel)
    }

    /// A format that was agreed on.
    struct Agreement: Equatable {
        var size: PixelSize
        var format: PixelFormat
        var isDmaBuf: Bool

        /// - Returns: nil when it is none of those that were offered.
        init?(_ param: UnsafePointer<spa_pod>) {
            var info = spa_video_info_raw()
            guard let kind = Negotiation.kind(param), kind == (SPA_MEDIA_TYPE_video.rawValue, SPA_MEDIA_SUBTYPE_raw.rawValue),
                spa_format_video_raw_parse(param, &info) >= 0, let format = PixelFormat(spaFormat: info.format)
            else { return nil }
            (self.format, size) = (format, PixelSize(width: Int(info.size.width), height: Int(info.size.height)))
            isDmaBuf = spa_pod_find_prop(param, nil, SPA_FORMAT_VIDEO_modifier.rawValue) != nil
            guard size.isUsable else { return nil }
        }
    }

    /// Media type and subtype.
    static func kind(_ param: UnsafePointer<spa_pod>) -> (UInt32, UInt32)? {
        var (type, subtype): (UInt32, UInt32) = (0, 0)
        return spa_format_parse(param, &type, &subtype) >= 0 ? (type, subtype) : nil
    }
}

extension PixelFormat {
    /// PipeWire's number.
    var spaFormat: spa_video_format {
        switch self {
        case .bgrx: SPA_VIDEO_FORMAT_BGRx
        case .bgra: SPA_VIDEO_FORMAT_BGRA
        case .rgbx: SPA_VIDEO_FORMAT_RGBx
        case .rgba: SPA_VIDEO_FORMAT_RGBA
        case .xrgb: SPA_VIDEO_FORMAT_xRGB
        case .argb: SPA_VIDEO_FORMAT_ARGB
        case .xbgr: SPA_VIDEO_FORMAT_xBGR
        case .abgr: SPA_VIDEO_FORMAT_ABGR
        }
    }

    init?(spaFormat: spa_video_format) {
        guard let format = PixelFormat.allCases.first(where: { $0.spaFormat == spaFormat }) else { return nil }
        self = format
    }
}
