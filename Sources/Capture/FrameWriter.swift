// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Loop

/// Copies a stream's frames into the pool: the way of the pixels.
///
/// Thread: capture.
final class FrameWriter: PoolWriter {
    /// Everything that decides where a pixel of memory lies in the picture. When it changes, the whole picture does.
    private struct Geometry: Equatable {
        var agreement: Negotiation.Agreement
        var crop: PixelRect?
        var transform: Transform
    }

    private let pool: FramePool
    private let converter = Converter()
    private(set) var view: CaptureView
    private var agreement: Negotiation.Agreement?
    private var geometry: Geometry?
    /// What changed in memory since the last published picture.
    private var damage = Damage.everything
    /// The producer's number of the last buffer that came.
    private var lastSequence: UInt64?
    private var lastTime = Instant(nanoseconds: 0)
    /// The producer's damage was found to be wrong: whole pictures are converted and compared instead.
    private(set) var distrustsDamage = false
    /// The part of the upright source that the latest picture shows; nil before the first, and when it shows none.
    private var part: PixelRect?
    /// The row from which the next check of the producer's damage starts.
    private var nextChecked = 0
    /// What the last published picture was; read after the callback.
    private(set) var format: StreamFormat?
    /// Whether a picture was published.
    private(set) var hasPicture = false
    /// How often the graph has run for this stream.
    private(set) var cycles: UInt64 = 0
    /// Whether another source's pictures go into the pool in place of this one's.
    var isReplaced = false
    /// Writes into the same pool, until this one does.
    private weak var predecessor: (any PoolWriter)?

    /// Where the pointer is; nil where it does not come beside the pixels.
    private var cursor: CursorTracker?
    private let hasCursor: Bool

    init(pool: FramePool, view: CaptureView, hasCursor: Bool, replacing predecessor: (any PoolWriter)? = nil) {
        (self.pool, self.view, self.hasCursor, self.predecessor) = (pool, view, hasCursor, predecessor)
    }

    /// Gets the memory that pictures of a size need.
    func prepare(_ size: PixelSize) throws(Errno) {
        if hasCursor && cursor == nil { cursor = try CursorTracker(pool: pool) }
        try pool.prepare(size: size)
        try converter.prepare(size: size)
    }

    /// What frames look like from now on; nil: there are none for the moment.
    func agree(on agreement: Negotiation.Agreement?) {
        self.agreement = agreement
        damage = .everything
    }

    /// The process callback: soft real time, since a compositor with two buffers waits while one is held.
    ///
    /// Drain to the newest buffer with pixels, give each older one back at once, copy, give the last one back, wake the readers. Forbidden in
    /// here: allocation, logging, any lock but the pool's, keeping a buffer beyond the return. Tested: not one allocation.
    func process(_ stream: OpaquePointer) {
        cycles &+= 1
        let arrival = Instant.now
        var newest: BufferReading?
        while let buffer = pw_stream_dequeue_buffer(stream) {
            let reading = BufferReading(buffer: buffer)
            let content = agreement.map { reading.content($0.size) } ?? .invalid
            reading.foldDamage(into: &damage, hasPixels: content != .cursorOnly)
            noteSequence(reading)
            if let cursor, let said = reading.cursor { cursor.note(said) }
            if content == .picture {
                if let older = newest {
                    pool.count(.superseded)
                    pw_stream_queue_buffer(stream, older.buffer)
                }
                newest = reading
                continue
            }
            pool.count(content.loss)
            pw_stream_queue_buffer(stream, buffer)
        }
        if let newest {
            publish(newest, arrival)
            pw_stream_queue_buffer(stream, newest.buffer)
        }
        if hasPicture { cursor?.show(over: placement(of: part), view) }
        pool.wakeReaders()
    }

    /// The process callback while nothing of this stream is shown. A bitmap of the pointer comes once only.
    func skip(_ stream: OpaquePointer) {
        cycles &+= 1
        while let buffer = pw_stream_dequeue_buffer(stream) {
            if let cursor, let said = BufferReading(buffer: buffer).cursor { cursor.note(said) }
            pw_stream_queue_buffer(stream, buffer)
        }
    }

    /// Where the pointer lies in a picture that shows a part of the source.
    private func placement(of part: PixelRect?) -> CursorTracker.Placement? {
        guard let geometry, let part, !part.isEmpty else { return nil }
        let visible = geometry.crop?.intersection(PixelRect(geometry.agreement.size)) ?? PixelRect(geometry.agreement.size)
        return CursorTracker.Placement(visible: visible, transform: geometry.transform, part: part)
    }

    /// A buffer that PipeWire replaced before it was read took with it what it said of its damage.
    private func noteSequence(_ reading: BufferReading) {
        guard let sequence = reading.sequence else { return }
        if let lastSequence, sequence != lastSequence, sequence != lastSequence &+ 1 { damage = .everything }
        lastSequence = sequence
    }

    private func publish(_ reading: BufferReading, _ arrival: Instant) {
        guard let agreement, let mapped = reading.mapped, let bounds = reading.bounds(agreement.size) else { return pool.count(.dropped) }
        var source = SourcePicture(
            bytes: UnsafeRawBufferPointer(rebasing: mapped.bytes[bounds.offset...]), size: agreement.size, strideBytes: bounds.strideBytes,
            format: agreement.format, crop: reading.crop, transform: reading.transform)
        // A crop outside the picture: what it would show is not known.
        guard !source.visible.isEmpty else { return pool.count(.dropped) }
        let present = Geometry(agreement: agreement, crop: source.crop, transform: source.transform)
        if present != geometry { damage = .everything }
        let sourceSize = source.uprightSize
        let part = visiblePart(sourceSize)
        if !part.isEmpty { source.crop = source.inMemory(part) }
        let size = part.isEmpty ? sourceSize : part.size
        let time = reading.time(arrival: arrival, last: lastTime)
        let changed = checked(upright(source), source, part, mapped)
        // What another stream has left in the pool.
        if !hasPicture { pool.hideCursor() }
        let outcome = pool.write(size: size, time: time, arrival: arrival, damage: changed) { planes, stale in
            if part.isEmpty {
                Conversion.fillBlack(planes)
                return true
            }
            let isConverted = mapped.read { converter.convert(source, into: planes, stale) } ?? false
            mask(planes, part)
            return isConverted
        }
        guard case .published(let sequence) = outcome else { return }
        if !hasPicture, let predecessor {
            predecessor.isReplaced = true
            pool.withdraw(before: sequence)
        }
        (damage, geometry, lastTime, hasPicture) = (.none, present, time, true)
        self.part = part.isEmpty ? nil : part
        let described = StreamFormat(
            size: size, sourceSize: sourceSize, pixelFormat: agreement.format, strideBytes: bounds.strideBytes, memory: mapped.memory)
        if described != format { format = described }
    }

    /// What changed, as it lies in the picture.
    private func upright(_ source: SourcePicture) -> Damage {
        if damage.isEverything || distrustsDamage { return .everything }
        var result = Damage()
        damage.forEach(in: source.size) { result.insert(source.upright($0)) }
        return result
    }

    /// The damage, or everything when it turns out to be wrong.
    ///
    /// Only what a producer calls damaged is converted, so one that forgets something would leave old pixels standing; mutter did, before GNOME 50.
    /// So of each frame a few rows outside the damage are compared with the picture that should still show them; after one lie nothing is
    /// believed any more.
    private func checked(_ changed: Damage, _ source: SourcePicture, _ part: PixelRect, _ mapped: MappedBuffer) -> Damage {
        guard !changed.isEverything, !part.isEmpty, let latest = pool.latest(), latest.size == part.size else { return changed }
        if nextChecked >= part.height { nextChecked = 0 }
        let rows = PixelRect(x: 0, y: nextChecked, width: part.width, height: min(Converter.checkedRows, part.height - nextChecked))
        nextChecked += Converter.checkedRows
        var isOutside = true
        changed.forEach(in: part.size) { if !$0.evenlyAligned(in: part.size).intersection(rows).isEmpty { isOutside = false } }
        guard isOutside else { return changed }
        let isSame = mapped.read {
            guard let new = converter.band(source, rows) else { return true }
            mask(new, PixelRect(x: part.x, y: part.y + rows.y, width: rows.width, height: rows.height))
            return latest.withPlanes { planes in planes.part(rows).map { Conversion.isSame($0, new) } ?? true }
        }
        if isSame ?? true { return changed }
        distrustsDamage = true
        return .everything
    }

    // MARK: - The view

    /// Shows another part from the next picture on. What is to be hidden is hidden at once, since a still source may send no other: the present
    /// picture is replaced by what of it may still be seen, and whatever was drawn of it before is withdrawn.
    ///
    /// - Returns: whether the view shows something that the present picture does not have.
    func setView(_ view: CaptureView) -> Bool {
        let before = self.view
        self.view = view
        damage = .everything
        guard !isReplaced, let part, let format, let latest = pool.latest(), latest.size == part.size else { return true }
        let wanted = visiblePart(format.sourceSize)
        let kept = wanted.intersection(part)
        let showsMore = kept != wanted || !before.masks.allSatisfy(view.masks.contains)
        if kept == part && view.masks.isEmpty { return showsMore }
        let shown = kept == part ? part : wanted
        let size = shown.isEmpty ? format.sourceSize : shown.size
        let now = Instant.now
        lastTime = max(now, Instant(nanoseconds: lastTime.nanoseconds + 1))
        // The pointer first: whoever has the picture takes no older one.
        cursor?.show(over: placement(of: shown), view)
        let outcome = pool.write(size: size, time: lastTime, arrival: now) { planes, _ in
            if kept != shown || shown.isEmpty { Conversion.fillBlack(planes) }
            if kept.isEmpty { return true }
            let rect = PixelRect(x: kept.x - part.x, y: kept.y - part.y, width: kept.width, height: kept.height)
            latest.withPlanes { Conversion.copy($0, rect, into: planes, x: kept.x - shown.x, y: kept.y - shown.y) }
            mask(planes, shown)
            return true
        }
        guard case .published(let sequence) = outcome else {
            pool.withdrawAll()
            return true
        }
        pool.withdraw(before: sequence)
        self.part = shown.isEmpty ? nil : shown
        self.format?.size = size
        pool.wakeReaders()
        return showsMore
    }

    /// Its pictures are shown again, and the other source's no more.
    func goOn() {
        (isReplaced, damage) = (false, .everything)
        pool.withdrawAll()
        pool.hideCursor()
        cursor?.forgetShown()
    }

    /// The part of an upright source that is shown.
    private func visiblePart(_ size: PixelSize) -> PixelRect {
        view.crop.map { $0.intersection(PixelRect(size)) } ?? PixelRect(size)
    }

    /// Blackens what must not be seen, in whole chroma samples.
    private func mask(_ planes: I420Planes, _ part: PixelRect) {
        for index in view.masks.indices {
            if let target = planes.part(view.mask(index, of: part)) { Conversion.fillBlack(target) }
        }
    }
}

extension BufferContent {
    fileprivate var loss: FrameLoss {
        switch self {
        case .corrupted: .corrupted
        case .cursorOnly: .cursorOnly
        case .picture, .invalid: .dropped
        }
    }
}
