// SPDX-License-Identifier: MIT
import CLinux
import CPipeWire
import Frames
import Glibc
import Loop
import PipeWire
import Synchronization

@testable import Capture

/// How a test's source behaves.
struct ProducerOptions: Sendable {
    enum Memory: Sendable {
        case memfd, sealedMemfd
        /// A plain memfd that is called a DMA-BUF.
        case falseDmaBuf
        /// A descriptor that cannot be mapped, called a DMA-BUF.
        case unmappableDmaBuf
        case pointer
    }

    var name = "test-source"
    var size = PixelSize(width: 64, height: 48)
    var formats: [UInt32] = [SPA_VIDEO_FORMAT_BGRx.rawValue]
    var memory = Memory.memfd
    var stridePadding = 0
    var offset = 0
    var mapOffset = 0
    var buffers: Int32 = 4
    var modifier: UInt64?
    /// Beside DMA-BUF the same in shared memory.
    var hasSharedMemoryToo = false
    var filler: UInt8 = 0
    /// nil: none is said.
    var greatestRate: UInt32? = 60
    var fixedRate: UInt32?
    var hasMetas = true
    /// Bytes of cursor metadata; nil: none are offered.
    var cursorBytes: Int?
}

/// One buffer that a test's source sends.
struct ProducerFrame: Sendable {
    var number: UInt8
    var isCorruptHeader = false
    var isCorruptChunk = false
    var isCursorOnly = false
    var pts: Int64?
    var damage: [PixelRect] = []
    var crop: PixelRect?
    var transform: UInt32 = 0
    var stride: Int32?
    var chunkOffset: UInt32?
    var chunkSize: UInt32?
    var chunkFlags: UInt32?
    var sequence: UInt64 = 0
    /// What the cursor metadata begin with. The rest of them is garbage.
    var cursor: [UInt8] = []

    init(_ number: UInt8) { self.number = number }

    /// The colour of a pixel: quarters of red, green and blue, and one whose grey is the number's.
    func colour(_ x: Int, _ y: Int, _ size: PixelSize) -> (red: UInt8, green: UInt8, blue: UInt8) {
        switch (x < size.width / 2, y < size.height / 2) {
        case (true, true): (255, 0, 0)
        case (false, true): (0, 255, 0)
        case (true, false): (0, 0, 255)
        case (false, false): (number, number, number)
        }
    }
}

/// A `Video/Source` node on a thread of its own, which does what a test says and nothing else.
final class Producer: Sendable {
    struct Status: Sendable {
        var node: UInt32?
        var serial: UInt64?
        var isStreaming = false
        /// How often it began to.
        var starts = 0
        var isGone = false
        var sent = 0
        var nullDequeues = 0
        var format: UInt32?
        var buffers = 0
    }

    enum Command: Sendable {
        case send(ProducerFrame)
        case resize(PixelSize)
        case setActive(Bool)
        case truncate(Int)
        case scribble
        case destroy
    }

    private let thread: LoopThread
    private let commands: Inbox<Command>
    private let board: Board

    final class Board: Sendable {
        let status = Mutex(Status())
    }

    var status: Status { board.status.withLock { $0 } }

    init(_ pipewire: PrivatePipeWire, _ options: ProducerOptions = ProducerOptions(), changed: Inbox<Void>) throws {
        let remote = try pipewire.connect()
        let board = Board()
        self.board = board
        (thread, commands) = try LoopThread.start(name: "producer") { loop in
            let source = ProducerSource(loop, remote, options, board, changed)
            return loop.makeInbox { (command: Command) in source.handle(command) }
        }
    }

    deinit {
        commands.send(.destroy)
        thread.stop()
    }

    func tell(_ command: Command) { commands.send(command) }
    func send(_ frame: ProducerFrame) { tell(.send(frame)) }
}

/// What lives on the producer's thread.
private final class ProducerSource {
    private struct Memory {
        var descriptor: Int32
        var base: UnsafeMutableRawPointer
        var length: Int
        /// Painting would be a fault.
        var isCut = false
    }

    private let options: ProducerOptions
    private let board: Producer.Board
    private let changed: Inbox<Void>
    private let pipewire: UnsafeMutablePointer<pw_loop>?
    private let context: OpaquePointer?
    private let core: OpaquePointer?
    private var stream: OpaquePointer?
    private var agreement: Negotiation.Agreement?
    private var size: PixelSize
    private var memories: [UnsafeMutablePointer<pw_buffer>: Memory] = [:]
    private let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private let events = UnsafeMutablePointer<pw_stream_events>.allocate(capacity: 1)

    init(_ loop: EventLoop, _ remote: FileDescriptor, _ options: ProducerOptions, _ board: Producer.Board, _ changed: Inbox<Void>) {
        (self.options, self.board, self.changed) = (options, board, changed)
        size = options.size
        pw_init(nil, nil)
        pipewire = pw_loop_new(nil)
        let context = pw_context_new(pipewire, nil, 0)
        self.context = context
        core = (try? remote.duplicateRaw()).flatMap { pw_context_connect_fd(context, $0, nil, 0) }
        hook.initialize(to: spa_hook())
        events.initialize(to: pw_stream_events())
        events.pointee.version = UInt32(PW_VERSION_STREAM_EVENTS)
        events.pointee.state_changed = { context, _, new, _ in producer(context)?.changed(to: new) }
        events.pointee.param_changed = { context, id, param in
            if id == SPA_PARAM_Format.rawValue { producer(context)?.formatChanged(param) }
        }
        events.pointee.add_buffer = { context, buffer in if let buffer { producer(context)?.added(buffer) } }
        events.pointee.remove_buffer = { context, buffer in if let buffer { producer(context)?.removed(buffer) } }
        cpw_loop_enter(pipewire)
        loop.watch(cpw_loop_get_fd(pipewire), for: .read) { [unowned self] _ in _ = cpw_loop_iterate(pipewire, 0) }
        connect()
    }

    private func connect() {
        guard let core else { return }
        let properties = pw_properties_new_string("media.class=Video/Source media.role=Screen node.name=\(options.name)")
        guard let stream = pw_stream_new(core, options.name, properties) else { return }
        self.stream = stream
        pw_stream_add_listener(stream, hook, events, Unmanaged.passUnretained(self).toOpaque())
        let allocates = options.memory == .pointer ? PW_STREAM_FLAG_MAP_BUFFERS : PW_STREAM_FLAG_ALLOC_BUFFERS
        let flags = PW_STREAM_FLAG_DRIVER.rawValue | allocates.rawValue
        _ = Pod.withParameters(formats) { pw_stream_connect(stream, SPA_DIRECTION_OUTPUT, UInt32.max, pw_stream_flags(flags), $0, $1) }
    }

    private var formats: [Pod] {
        let modifiers: [UInt64?] = options.modifier.map { options.hasSharedMemoryToo ? [$0, nil] : [$0] } ?? [nil]
        return modifiers.flatMap { modifier in options.formats.map { format($0, modifier) } }
    }

    private func format(_ number: UInt32, _ modifier: UInt64?) -> Pod {
        var properties: [Pod.Property] = [
            .init(key: SPA_FORMAT_mediaType.rawValue, value: .id(SPA_MEDIA_TYPE_video.rawValue)),
            .init(key: SPA_FORMAT_mediaSubtype.rawValue, value: .id(SPA_MEDIA_SUBTYPE_raw.rawValue)),
            .init(key: SPA_FORMAT_VIDEO_format.rawValue, value: .id(number)),
        ]
        if let modifier {
            properties.append(.init(key: SPA_FORMAT_VIDEO_modifier.rawValue, value: .long(Int64(bitPattern: modifier)), isMandatory: true))
        }
        let size = Pod.rectangle(width: UInt32(size.width), height: UInt32(size.height))
        properties.append(.init(key: SPA_FORMAT_VIDEO_size.rawValue, value: size))
        properties.append(.init(key: SPA_FORMAT_VIDEO_framerate.rawValue, value: .fraction(options.fixedRate ?? 0, 1)))
        if let rate = options.greatestRate {
            let value =
                rate == 0 ? Pod.fraction(0, 1) : .range(best: .fraction(rate, 1), least: .fraction(1, 1), greatest: .fraction(rate, 1))
            properties.append(.init(key: SPA_FORMAT_VIDEO_maxFramerate.rawValue, value: value))
        }
        return .object(type: SPA_TYPE_OBJECT_Format, id: SPA_PARAM_EnumFormat, properties)
    }

    private func note(_ change: (inout sending Producer.Status) -> Void) {
        board.status.withLock { change(&$0) }
        changed.send(())
    }

    func changed(to state: pw_stream_state) {
        let node = stream.map { pw_stream_get_node_id($0) } ?? SPA_ID_INVALID
        let serial = stream.flatMap { pw_stream_get_properties($0) }.flatMap { pw_properties_get($0, PW_KEY_OBJECT_SERIAL) }
        let number = serial.flatMap { UInt64(String(cString: $0)) }
        note { status in
            if node != SPA_ID_INVALID { status.node = node }
            status.serial = number ?? status.serial
            if state == PW_STREAM_STATE_STREAMING && !status.isStreaming { status.starts += 1 }
            status.isStreaming = state == PW_STREAM_STATE_STREAMING
        }
    }

    private var stride: Int { (agreement?.size.width ?? 0) * 4 + options.stridePadding }
    private var byteCount: Int { options.offset + stride * (agreement?.size.height ?? 0) }

    func formatChanged(_ param: UnsafePointer<spa_pod>?) {
        agreement = param.flatMap { Negotiation.Agreement($0) }
        guard let agreement, let stream else { return }
        let type: spa_data_type =
            switch options.memory {
            case .memfd, .sealedMemfd: SPA_DATA_MemFd
            case .falseDmaBuf, .unmappableDmaBuf: agreement.isDmaBuf ? SPA_DATA_DmaBuf : SPA_DATA_MemFd
            case .pointer: SPA_DATA_MemPtr
            }
        var pods: [Pod] = [
            .object(
                type: SPA_TYPE_OBJECT_ParamBuffers, id: SPA_PARAM_Buffers,
                [
                    .init(key: SPA_PARAM_BUFFERS_buffers.rawValue, value: .int(options.buffers)),
                    .init(key: SPA_PARAM_BUFFERS_blocks.rawValue, value: .int(1)),
                    .init(key: SPA_PARAM_BUFFERS_size.rawValue, value: .int(Int32(byteCount))),
                    .init(key: SPA_PARAM_BUFFERS_stride.rawValue, value: .int(Int32(stride))),
                    .init(key: SPA_PARAM_BUFFERS_dataType.rawValue, value: .flags(1 << Int32(type.rawValue))),
                ])
        ]
        func offer(_ type: spa_meta_type, _ size: Int) {
            pods.append(
                .object(
                    type: SPA_TYPE_OBJECT_ParamMeta, id: SPA_PARAM_Meta,
                    [
                        .init(key: SPA_PARAM_META_type.rawValue, value: .id(type.rawValue)),
                        .init(key: SPA_PARAM_META_size.rawValue, value: .int(Int32(size))),
                    ]))
        }
        if options.hasMetas {
            offer(SPA_META_Header, MemoryLayout<spa_meta_header>.size)
            offer(SPA_META_VideoCrop, MemoryLayout<spa_meta_region>.size)
            offer(SPA_META_VideoDamage, MemoryLayout<spa_meta_region>.size * 4)
            offer(SPA_META_VideoTransform, MemoryLayout<spa_meta_videotransform>.size)
        }
        if let bytes = options.cursorBytes { offer(SPA_META_Cursor, bytes) }
        _ = Pod.withParameters(pods) { pw_stream_update_params(stream, $0, $1) }
        let number = agreement.format.spaFormat.rawValue
        note { $0.format = number }
    }

    func added(_ buffer: UnsafeMutablePointer<pw_buffer>) {
        guard let data = buffer.pointee.buffer?.pointee.datas else { return }
        if options.memory == .pointer {
            guard let base = data.pointee.data else { return }
            memories[buffer] = Memory(descriptor: -1, base: base, length: Int(data.pointee.maxsize))
        } else {
            let isSealed = options.memory == .sealedMemfd
            let descriptor = clinux_memfd_create("test-frame", UInt32(CLINUX_MFD_CLOEXEC | (isSealed ? CLINUX_MFD_ALLOW_SEALING : 0)))
            let length = options.mapOffset + byteCount
            ftruncate(descriptor, off_t(length))
            guard let base = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), base != MAP_FAILED else { return }
            if isSealed { clinux_add_seals(descriptor, 1 | 2 | 4) }
            memories[buffer] = Memory(descriptor: descriptor, base: base, length: length)
            let isDmaBuf = agreement?.isDmaBuf ?? false
            data.pointee.type = (isDmaBuf ? SPA_DATA_DmaBuf : SPA_DATA_MemFd).rawValue
            data.pointee.flags = UInt32(SPA_DATA_FLAG_READABLE)
            data.pointee.fd = Int64(descriptor)
            if isDmaBuf && options.memory == .unmappableDmaBuf { data.pointee.fd = Int64(open("/dev/null", O_RDONLY | O_CLOEXEC)) }
            data.pointee.mapoffset = UInt32(options.mapOffset)
            data.pointee.maxsize = UInt32(byteCount)
            data.pointee.data = base
        }
        let count = memories.count
        note { $0.buffers = count }
    }

    func removed(_ buffer: UnsafeMutablePointer<pw_buffer>) {
        guard let memory = memories.removeValue(forKey: buffer), memory.descriptor >= 0 else { return }
        munmap(memory.base, memory.length)
        if let data = buffer.pointee.buffer?.pointee.datas, data.pointee.fd != Int64(memory.descriptor) { close(Int32(data.pointee.fd)) }
        close(memory.descriptor)
        let count = memories.count
        note { $0.buffers = count }
    }

    func handle(_ command: Producer.Command) {
        switch command {
        case .send(let frame): send(frame)
        case .resize(let new):
            size = new
            if let stream { _ = Pod.withParameters(formats) { pw_stream_update_params(stream, $0, $1) } }
        case .setActive(let isActive): if let stream { pw_stream_set_active(stream, isActive) }
        case .truncate(let bytes):
            for buffer in Array(memories.keys) {
                guard let memory = memories[buffer] else { continue }
                memories[buffer]?.isCut = true
                ftruncate(memory.descriptor, off_t(bytes))
            }
        case .scribble: for memory in memories.values { memset(memory.base, 0x5A, memory.length) }
        case .destroy:
            if let stream { pw_stream_destroy(stream) }
            stream = nil
            note { $0.isGone = true }
        }
    }

    private func send(_ frame: ProducerFrame) {
        guard let stream, let agreement else { return }
        guard let buffer = pw_stream_dequeue_buffer(stream) else { return note { $0.nullDequeues += 1 } }
        guard let memory = memories[buffer], let spa = buffer.pointee.buffer, let chunk = spa.pointee.datas.pointee.chunk else { return }
        let start = memory.base + (memory.descriptor >= 0 ? options.mapOffset : 0) + options.offset
        for y in 0..<(memory.isCut ? 0 : agreement.size.height) {
            for x in 0..<agreement.size.width {
                let pixel = (start + y * stride + x * 4).assumingMemoryBound(to: UInt8.self)
                let colour = frame.colour(x, y, agreement.size)
                for byte in 0..<4 { pixel[byte] = options.filler }
                pixel[agreement.format.offsets.red] = colour.red
                pixel[agreement.format.offsets.green] = colour.green
                pixel[agreement.format.offsets.blue] = colour.blue
            }
        }
        chunk.pointee.offset = frame.chunkOffset ?? UInt32(options.offset)
        chunk.pointee.stride = frame.stride ?? Int32(stride)
        chunk.pointee.size = frame.isCursorOnly ? 0 : agreement.isDmaBuf ? 9 : UInt32(stride * agreement.size.height)
        chunk.pointee.flags = frame.isCorruptChunk ? Int32(SPA_CHUNK_FLAG_CORRUPTED) : 0
        if let size = frame.chunkSize { chunk.pointee.size = size }
        if let flags = frame.chunkFlags { chunk.pointee.flags = Int32(bitPattern: flags) }
        writeMetas(frame, spa)
        pw_stream_queue_buffer(stream, buffer)
        pw_stream_trigger_process(stream)
        note { $0.sent += 1 }
    }

    private func writeMetas(_ frame: ProducerFrame, _ spa: UnsafeMutablePointer<spa_buffer>) {
        func meta<Meta>(_ type: spa_meta_type, _: Meta.Type) -> UnsafeMutablePointer<Meta>? {
            spa_buffer_find_meta_data(spa, type.rawValue, MemoryLayout<Meta>.size)?.assumingMemoryBound(to: Meta.self)
        }
        if let header = meta(SPA_META_Header, spa_meta_header.self) {
            header.pointee = spa_meta_header()
            header.pointee.flags = frame.isCorruptHeader ? UInt32(SPA_META_HEADER_FLAG_CORRUPTED) : 0
            header.pointee.pts = frame.pts ?? Instant.now.nanoseconds
            header.pointee.seq = frame.sequence
        }
        if let crop = meta(SPA_META_VideoCrop, spa_meta_region.self) {
            crop.pointee.region = region(frame.crop ?? PixelRect(x: 0, y: 0, width: 0, height: 0))
        }
        if let transform = meta(SPA_META_VideoTransform, spa_meta_videotransform.self) { transform.pointee.transform = frame.transform }
        if let meta = spa_buffer_find_meta(spa, SPA_META_Cursor.rawValue), let start = meta.pointee.data {
            memset(start, 0xEE, Int(meta.pointee.size))
            for (index, byte) in frame.cursor.prefix(Int(meta.pointee.size)).enumerated() {
                start.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
            }
        }
        if let damage = meta(SPA_META_VideoDamage, spa_meta_region.self) {
            for index in 0..<4 {
                let rect = index < frame.damage.count ? frame.damage[index] : PixelRect(x: 0, y: 0, width: 0, height: 0)
                damage[index].region = region(rect)
            }
        }
    }

    private func region(_ rect: PixelRect) -> spa_region {
        spa_region(
            position: spa_point(x: Int32(rect.x), y: Int32(rect.y)),
            size: spa_rectangle(width: UInt32(rect.width), height: UInt32(rect.height)))
    }

    deinit {
        if let stream { pw_stream_destroy(stream) }
        if let core { pw_core_disconnect(core) }
        if let context { pw_context_destroy(context) }
        if let pipewire {
            cpw_loop_leave(pipewire)
            pw_loop_destroy(pipewire)
        }
        hook.deallocate()
        events.deallocate()
    }
}

private func producer(_ context: UnsafeMutableRawPointer?) -> ProducerSource? {
    context.map { Unmanaged<ProducerSource>.fromOpaque($0).takeUnretainedValue() }
}
