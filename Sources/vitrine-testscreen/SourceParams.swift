// SPDX-License-Identifier: MIT
import CPipeWire

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
            var properties: [(key: UInt32, value: Pod)] = [
                (SPA_FORMAT_mediaType.rawValue, .id(SPA_MEDIA_TYPE_video.rawValue)),
                (SPA_FORMAT_mediaSubtype.rawValue, .id(SPA_MEDIA_SUBTYPE_raw.rawValue)),
                (SPA_FORMAT_VIDEO_format.rawValue, .id(format.id)),
            ]
            // 0 is DRM_FORMAT_MOD_LINEAR.
            if memory == .dmabuf { properties.append((SPA_FORMAT_VIDEO_modifier.rawValue, .long(0))) }
            properties.append((SPA_FORMAT_VIDEO_size.rawValue, .rectangle(UInt32(size.width), UInt32(size.height))))
            properties.append((SPA_FORMAT_VIDEO_framerate.rawValue, .fraction(0, 1)))
            let maximum: Pod? =
                switch rateOffer {
                case .range: .choice(SPA_CHOICE_Range, [.fraction(rate, 1), .fraction(1, 1), .fraction(rate, 1)])
                case .fixed: .fraction(rate, 1)
                case .zero: .fraction(0, 1)
                case .absent: nil
                }
            if let maximum { properties.append((SPA_FORMAT_VIDEO_maxFramerate.rawValue, maximum)) }
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
            buffers > 0 ? .int(Int32(clamping: buffers)) : .choice(SPA_CHOICE_Range, [.int(4), .int(2), .int(8)])
        let shape: Pod = .object(
            type: SPA_TYPE_OBJECT_ParamBuffers, id: SPA_PARAM_Buffers,
            [
                (SPA_PARAM_BUFFERS_buffers.rawValue, count),
                (SPA_PARAM_BUFFERS_blocks.rawValue, .int(Int32(clamping: planes))),
                (SPA_PARAM_BUFFERS_size.rawValue, .int(Int32(clamping: agreement.byteCount(self)))),
                (SPA_PARAM_BUFFERS_stride.rawValue, .int(Int32(clamping: agreement.stride(self)))),
                (SPA_PARAM_BUFFERS_align.rawValue, .int(16)),
                (SPA_PARAM_BUFFERS_dataType.rawValue, .choice(SPA_CHOICE_Flags, [.int(1 << Int32(kind.rawValue))])),
            ])
        return [shape] + metaParams
    }

    private var metaParams: [Pod] {
        var metas: [Pod] = []
        func offer(_ type: spa_meta_type, _ size: Pod) {
            let properties: [(UInt32, Pod)] = [(SPA_PARAM_META_type.rawValue, .id(type.rawValue)), (SPA_PARAM_META_size.rawValue, size)]
            metas.append(.object(type: SPA_TYPE_OBJECT_ParamMeta, id: SPA_PARAM_Meta, properties))
        }
        func bytes<Meta>(_: Meta.Type, _ count: Int = 1) -> Int32 { Int32(MemoryLayout<Meta>.size * count) }
        if hasHeader { offer(SPA_META_Header, .int(bytes(spa_meta_header.self))) }
        if crop != nil { offer(SPA_META_VideoCrop, .int(bytes(spa_meta_region.self))) }
        if hasTransform { offer(SPA_META_VideoTransform, .int(bytes(spa_meta_videotransform.self))) }
        if damage != .absent {
            let most = bytes(spa_meta_region.self, Settings.damageRegions)
            offer(SPA_META_VideoDamage, .choice(SPA_CHOICE_Range, [.int(most), .int(bytes(spa_meta_region.self)), .int(most)]))
        }
        if cursor != .absent {
            offer(
                SPA_META_Cursor,
                .int(bytes(spa_meta_cursor.self) + bytes(spa_meta_bitmap.self) + Int32(clamping: cursorSize.width * cursorSize.height * 4)))
        }
        return metas
    }
}
