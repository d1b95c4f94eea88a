// SPDX-License-Identifier: MIT
import CPipeWire
import PipeWire

/// What a source and its consumer agreed on.
struct Agreement: Equatable {
    let size: Size
    let format: VideoFormat

    /// Reads a format parameter; nil when it is none that was offered.
    init?(_ param: UnsafePointer<spa_pod>) {
        var info = spa_video_info_raw()
        guard spa_format_video_raw_parse(param, &info) >= 0, let format = VideoFormat(id: info.format.rawValue) else { return nil }
        (self.format, size) = (format, Size(Int(info.size.width), Int(info.size.height)))
    }

    /// Bytes from one row to the next: a multiple of four before the padding.
    func stride(_ settings: Settings) -> Int { (size.width * format.bytesPerPixel + 3) / 4 * 4 + Int(settings.stridePadding) }

    /// Bytes of a buffer's first plane.
    func byteCount(_ settings: Settings) -> Int { Int(settings.offset) + stride(settings) * size.height }
}

extension Settings {
    /// Room for damage rectangles in a buffer's metadata.
    static let damageRegions = 16

    /// The formats that are offered, the best first.
    ///
    /// - Parameter rate: the greatest rate that is named; different ones make different offers of what is else the same.
    func formatParams(_ size: Size, rate: UInt32) -> [Pod] {
        formats.map { format in
            var properties: [Pod.Property] = [
                .init(key: SPA_FORMAT_mediaType.rawValue, value: .id(SPA_MEDIA_TYPE_video.rawValue)),
                .init(key: SPA_FORMAT_mediaSubtype.rawValue, value: .id(SPA_MEDIA_SUBTYPE_raw.rawValue)),
                .init(key: SPA_FORMAT_VIDEO_format.rawValue, value: .id(format.id)),
            ]
            // 0 is DRM_FORMAT_MOD_LINEAR.
            if memory == .dmabuf { properties.append(.init(key: SPA_FORMAT_VIDEO_modifier.rawValue, value: .long(0), isMandatory: true)) }
            let pixels = Pod.rectangle(width: UInt32(size.width), height: UInt32(size.height))
            properties.append(.init(key: SPA_FORMAT_VIDEO_size.rawValue, value: pixels))
            properties.append(.init(key: SPA_FORMAT_VIDEO_framerate.rawValue, value: .fraction(0, 1)))
            let maximum: Pod? =
                switch rateOffer {
                case .range: .range(best: .fraction(rate, 1), least: .fraction(1, 1), greatest: .fraction(rate, 1))
                case .fixed: .fraction(rate, 1)
                case .zero: .fraction(0, 1)
                case .absent: nil
                }
            if let maximum { properties.append(.init(key: SPA_FORMAT_VIDEO_maxFramerate.rawValue, value: maximum)) }
            return .object(type: SPA_TYPE_OBJECT_Format, id: SPA_PARAM_EnumFormat, properties)
        }
    }

    /// The buffers and metadata that are offered for a format.
    func bufferParams(_ agreement: Agreement) -> [Pod] {
        let kind: spa_data_type =
            switch memory {
            case .memfd: SPA_DATA_MemFd
            case .memptr: SPA_DATA_MemPtr
            case .dmabuf: SPA_DATA_DmaBuf
            }
        let count: Pod =
            buffers > 0 ? .int(Int32(clamping: buffers)) : .range(best: .int(4), least: .int(2), greatest: .int(8))
        let shape: Pod = .object(
            type: SPA_TYPE_OBJECT_ParamBuffers, id: SPA_PARAM_Buffers,
            [
                .init(key: SPA_PARAM_BUFFERS_buffers.rawValue, value: count),
                .init(key: SPA_PARAM_BUFFERS_blocks.rawValue, value: .int(Int32(clamping: planes))),
                .init(key: SPA_PARAM_BUFFERS_size.rawValue, value: .int(Int32(clamping: agreement.byteCount(self)))),
                .init(key: SPA_PARAM_BUFFERS_stride.rawValue, value: .int(Int32(clamping: agreement.stride(self)))),
                .init(key: SPA_PARAM_BUFFERS_align.rawValue, value: .int(16)),
                .init(key: SPA_PARAM_BUFFERS_dataType.rawValue, value: .flags(1 << Int32(kind.rawValue))),
            ])
        return [shape] + metaParams
    }

    private var metaParams: [Pod] {
        var metas: [Pod] = []
        func offer(_ type: spa_meta_type, _ size: Pod) {
            let properties: [Pod.Property] = [
                .init(key: SPA_PARAM_META_type.rawValue, value: .id(type.rawValue)),
                .init(key: SPA_PARAM_META_size.rawValue, value: size),
            ]
            metas.append(.object(type: SPA_TYPE_OBJECT_ParamMeta, id: SPA_PARAM_Meta, properties))
        }
        func bytes<Meta>(_: Meta.Type, _ count: Int = 1) -> Int32 { Int32(MemoryLayout<Meta>.size * count) }
        if hasHeader { offer(SPA_META_Header, .int(bytes(spa_meta_header.self))) }
        if crop != nil { offer(SPA_META_VideoCrop, .int(bytes(spa_meta_region.self))) }
        if hasTransform { offer(SPA_META_VideoTransform, .int(bytes(spa_meta_videotransform.self))) }
        if damage != .absent {
            let most = bytes(spa_meta_region.self, Settings.damageRegions)
            offer(SPA_META_VideoDamage, .range(best: .int(most), least: .int(bytes(spa_meta_region.self)), greatest: .int(most)))
        }
        if cursor != .absent {
            offer(
                SPA_META_Cursor,
                .int(bytes(spa_meta_cursor.self) + bytes(spa_meta_bitmap.self) + Int32(clamping: cursorSize.width * cursorSize.height * 4)))
        }
        return metas
    }
}
