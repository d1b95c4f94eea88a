// SPDX-License-Identifier: MIT
import CLinux
import CPipeWire
import Glibc

/// `F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW`, which Swift cannot import.
private let allSizeSeals: Int32 = 0x7

/// One buffer of a source's pool: its memory, and which parts of the picture in it are old.
final class SourceBuffer {
    /// Where the picture goes in the buffer.
    struct Layout {
        let agreement: Agreement
        let stride: Int
        let offset: Int
        let transform: Transform
        /// The part of the buffer that has the picture.
        let region: Rect
        private let placement: Transform.Placement

        init(_ agreement: Agreement, _ settings: Settings) {
            (self.agreement, transform) = (agreement, settings.transform)
            (stride, offset) = (agreement.stride(settings), Int(settings.offset))
            let region = settings.crop?.clipped(to: Rect(agreement.size)) ?? Rect(agreement.size)
            self.region = region.isEmpty ? Rect(agreement.size) : region
            let upright =
                transform.exchangesSides ? Size(self.region.height, self.region.width) : Size(self.region.width, self.region.height)
            placement = transform.placement(of: upright)
        }

        /// The size of the picture, upright.
        var picture: Size {
            let size = Size(region.width, region.height)
            return transform.exchangesSides ? size.turned : size
        }

        /// Which byte of the buffer an upright picture's pixel begins at.
        func address(_ x: Int, _ y: Int) -> Int {
            offset + (region.y + placement.origin.y + x * placement.right.y + y * placement.down.y) * stride
                + (region.x + placement.origin.x + x * placement.right.x + y * placement.down.x) * agreement.format.bytesPerPixel
        }

        /// A rectangle of the upright picture, in the buffer's pixels.
        func place(_ rect: Rect) -> Rect {
            func at(_ x: Int, _ y: Int) -> (x: Int, y: Int) {
                (
                    region.x + placement.origin.x + x * placement.right.x + y * placement.down.x,
                    region.y + placement.origin.y + x * placement.right.y + y * placement.down.y
                )
            }
            let (first, last) = (at(rect.x, rect.y), at(rect.x + rect.width - 1, rect.y + rect.height - 1))
            return Rect(min(first.x, last.x), min(first.y, last.y), abs(last.x - first.x) + 1, abs(last.y - first.y) + 1)
        }
    }

    let buffer: UnsafeMutablePointer<pw_buffer>
    /// nil: all of it is old.
    private var stale: [Rect]?
    private var mappings: [(base: UnsafeMutableRawPointer, length: Int)] = []
    private var descriptors: [Int32] = []

    private init(_ buffer: UnsafeMutablePointer<pw_buffer>) { self.buffer = buffer }

    /// Takes a buffer whose memory PipeWire has allocated and mapped.
    static func adopting(_ buffer: UnsafeMutablePointer<pw_buffer>) -> SourceBuffer { SourceBuffer(buffer) }

    /// Gives a buffer memory of its own, one memfd a plane; nil when there is none to be had.
    static func allocating(_ buffer: UnsafeMutablePointer<pw_buffer>, bytes: Int, settings: Settings) -> SourceBuffer? {
        let made = SourceBuffer(buffer)
        let spa = buffer.pointee.buffer.pointee
        for plane in 0..<Int(spa.n_datas) {
            // Planes after the first carry nothing; they are there to be met.
            let claimed = plane == 0 ? bytes : 4096
            let real = max(1, settings.isShort ? claimed / 2 : claimed)
            let descriptor = clinux_memfd_create("testscreen", UInt32(CLINUX_MFD_CLOEXEC | CLINUX_MFD_ALLOW_SEALING))
            guard descriptor >= 0 else { return nil }
            made.descriptors.append(descriptor)
            guard ftruncate(descriptor, real) == 0, let base = mmap(nil, real, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
                base != MAP_FAILED
            else { return nil }
            if settings.isSealed { _ = clinux_add_seals(descriptor, allSizeSeals) }
            made.mappings.append((base, real))
            let data = spa.datas + plane
            data.pointee.type = UInt32(SPA_DATA_MemFd.rawValue)
            data.pointee.flags = UInt32(SPA_DATA_FLAG_READABLE | SPA_DATA_FLAG_WRITABLE)
            data.pointee.fd = Int64(descriptor)
            data.pointee.mapoffset = 0
            data.pointee.maxsize = UInt32(clamping: claimed)
            data.pointee.data = base
        }
        return made
    }

    deinit {
        for mapping in mappings { munmap(mapping.base, mapping.length) }
        for descriptor in descriptors { close(descriptor) }
    }

    /// Bytes that can be written without leaving the first plane.
    private var room: (base: UnsafeMutableRawPointer, length: Int)? {
        if let own = mappings.first { return own }
        let spa = buffer.pointee.buffer.pointee
        guard spa.n_datas > 0, let base = spa.datas.pointee.data else { return nil }
        return (base, Int(spa.datas.pointee.maxsize))
    }

    /// Notes that a part of the picture has changed, or all of it.
    func markStale(_ rects: [Rect]?) {
        guard let rects, let known = stale, known.count < 64 else {
            stale = nil
            return
        }
        stale = known + rects
    }

    /// Brings the buffer up to the canvas.
    func update(from canvas: Canvas, _ layout: Layout) {
        guard let room else { return }
        if stale == nil {
            if layout.region != Rect(layout.agreement.size) { fillOutside(room, layout, canvas) }
            copy(Rect(canvas.size), from: canvas, to: room, layout)
        }
        for rect in stale ?? [] { copy(rect.clipped(to: Rect(canvas.size)), from: canvas, to: room, layout) }
        stale = []
    }

    /// Draws the pointer over the picture, and remembers that it has to go again.
    ///
    /// - Parameter place: where its bitmap lies in the upright picture.
    func draw(_ shape: PointerShape, at place: Rect, _ layout: Layout, _ canvas: Canvas) {
        guard let room, Grid(size: canvas.size).isReadable else { return }
        let visible = place.clipped(to: Rect(canvas.size))
        var pixel = canvas.pixel(shape.colour)
        let written = min(4, layout.agreement.format.bytesPerPixel)
        for y in visible.y..<(visible.y + visible.height) {
            for x in visible.x..<(visible.x + visible.width) where PointerShape.covers(x - place.x, y - place.y) {
                let target = layout.address(x, y)
                if target >= 0, target + written <= room.length { memcpy(room.base + target, &pixel, written) }
            }
        }
        markStale([visible])
    }

    /// Fills the buffer with what nobody may show.
    func fillWithGarbage(seed: UInt32) {
        guard let room else { return }
        memset(room.base, Int32(0x5a ^ (seed & 0x7f)), room.length)
        stale = nil
    }

    private func copy(_ rect: Rect, from canvas: Canvas, to room: (base: UnsafeMutableRawPointer, length: Int), _ layout: Layout) {
        guard !rect.isEmpty else { return }
        let bytes = layout.agreement.format.bytesPerPixel
        let written = min(4, bytes)
        let isStraight = layout.transform == .normal && bytes == 4
        let step = layout.address(1, 0) - layout.address(0, 0)
        for y in rect.y..<(rect.y + rect.height) {
            let from = canvas.pixels + y * canvas.size.width + rect.x
            let to = layout.address(rect.x, y)
            let last = to + (rect.width - 1) * step
            // Short memory ends before the picture does.
            guard min(to, last) >= 0, max(to, last) + written <= room.length else { continue }
            if isStraight {
                memcpy(room.base + to, from, rect.width * 4)
            } else {
                for x in 0..<rect.width { (room.base + to + x * step).copyMemory(from: from + x, byteCount: written) }
            }
        }
    }

    private func fillOutside(_ room: (base: UnsafeMutableRawPointer, length: Int), _ layout: Layout, _ canvas: Canvas) {
        var pixel = canvas.pixel(.magenta)
        let bytes = min(layout.agreement.format.bytesPerPixel, 4)
        for y in 0..<layout.agreement.size.height {
            for x in 0..<layout.agreement.size.width {
                let target = layout.offset + y * layout.stride + x * layout.agreement.format.bytesPerPixel
                if target + bytes <= room.length { memcpy(room.base + target, &pixel, bytes) }
            }
        }
    }
}
