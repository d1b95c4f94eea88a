// SPDX-License-Identifier: MIT
public import Frames
public import Loop

/// Composes the newest pictures of several sources into one, in the pool of a track.
///
/// Each source is captured into a small pool of its own, an *input*. ``compose()`` takes what is new in them and writes one picture: only what has changed is
/// copied, and nothing happens when nothing came. Crop and masks are those of the composed picture as it was when they were set: what they hide of a source
/// stays hidden when the sources move.
///
/// Thread: capture, outside of the process callback.
public final class Composer: PoolWriter {
    /// Slots of an input: the latest picture, the one that is written, and the one that was composed.
    public static let slotsOfInput = 3

    /// Whether another one's pictures go into the pool: nothing is composed then.
    public var isReplaced = false {
        didSet { if isReplaced { forgetNews() } }
    }
    /// Size of all sources together, before the crop; nil before the first picture.
    public var wholeSize: PixelSize? { hasPicture ? arrangement?.size : nil }
    /// Size of the picture in the pool; nil before the first.
    public private(set) var size: PixelSize?
    /// Whether a picture was published.
    public private(set) var hasPicture = false

    private let pool: FramePool
    private var inputs: [Input]
    /// As it was asked for.
    private var view: CaptureView
    /// As it is of the present arrangement.
    private var shownView: CaptureView
    /// Whether what the view hides moves with the sources. Before all have come it is where it was asked for.
    private var isBound = false
    private var layout: Layout
    private var arrangement: Arrangement?
    private var lastTime = Instant(nanoseconds: 0)
    private weak var predecessor: (any PoolWriter)?
    private let pointer: ComposedPointer?
    private let bell: FileDescriptor?
    /// Whether the last picture found no slot to be written into.
    private var isUnwritten = false

    /// - Parameters:
    ///   - pool: of the track.
    ///   - inputs: a pool for each source, and the size that it is taken to have before its first picture, where one is known.
    ///   - hasCursor: whether the pointer comes beside the pixels of the sources.
    ///   - bell: rung when ``compose()`` is to be called although nothing came.
    ///   - predecessor: writes into the pool until there is a picture.
    public init(
        into pool: FramePool, _ inputs: [(pool: FramePool, expected: PixelSize?)], view: CaptureView, layout: Layout, hasCursor: Bool,
        bell: FileDescriptor? = nil, replacing predecessor: (any PoolWriter)? = nil
    ) {
        (self.pool, self.view, self.layout, self.bell, self.predecessor) = (pool, view, layout, bell, predecessor)
        shownView = view
        self.inputs = inputs.map { Input($0.pool, expected: $0.expected) }
        // Without memory for a bitmap there is no pointer.
        pointer = hasCursor ? try? ComposedPointer(pool) : nil
        for input in inputs { pool.addInput(input.pool) }
    }

    /// Composes what has come since the last call. Without anything new it does nothing.
    public func compose() {
        guard !isReplaced else { return }
        var news = News()
        for index in inputs.indices { take(index, &news) }
        if news.frames > 0 || isUnwritten { publish(news) }
        guard hasPicture else { return }
        showPointer()
        pool.wakeReaders()
    }

    /// What has come since the last picture.
    private struct News {
        var frames = 0
        var damage = Damage.none
        var arrival = Instant.now
        /// When the newest frame was shown; nil for a change of ours.
        var time: Instant?
    }

    private func take(_ index: Int, _ news: inout News) {
        let input = inputs[index]
        // A picture that nobody wants is not lost when the next one replaces it.
        input.pool.setNextDue(input.reader, pool.isWanted ? Instant(nanoseconds: .min) : Instant(nanoseconds: .max))
        guard let frame = input.pool.take(input.reader) else { return }
        news.frames += 1
        news.arrival = min(news.arrival, frame.info.arrival)
        news.time = max(news.time ?? frame.info.time, frame.info.time)
        if input.hasPicture && frame.size != input.size { bindOnce() }
        let isSameSize = input.hasPicture && frame.size == input.size
        if let arrangement, isSameSize {
            let place = arrangement.places[index]
            let damage = frame.info.damage
            news.damage.merge(damage.isEverything ? Damage(place) : damage.scaled(from: frame.size, into: place))
        } else {
            news.damage = .everything
            arrangement = nil
        }
        input.accept(frame)
    }

    /// What has come while another one's pictures are shown is nobody's.
    private func forgetNews() {
        for input in inputs { input.pool.setNextDue(input.reader, Instant(nanoseconds: .max)) }
    }

    // MARK: - The picture

    /// Where the sources lie now.
    private func arranged() -> Arrangement {
        if let arrangement { return arrangement }
        // One of which nothing is known yet is as large as one that is.
        let known = inputs.lazy.compactMap { $0.hasPicture ? $0.size : nil }.first
        let sizes = inputs.map { $0.hasPicture ? $0.size : $0.expected ?? known ?? PixelSize(width: 2, height: 2) }
        let made = Arrangement(sizes, layout)
        arrangement = made
        showView(of: made)
        return made
    }

    /// Before the sources move: what the view hides of them moves with them from now on.
    private func bindOnce() { if hasPicture && !isBound { bind(masks: true, crop: true) } }

    /// What of the view is new is of the picture as it is now; the rest stays with the sources.
    private func bind(masks: Bool, crop: Bool) {
        let arrangement = arranged()
        for (input, place) in zip(inputs, arrangement.places) {
            let size = input.hasPicture ? input.size : place.size
            let (old, isNew) = (input.hidden, !isBound)
            let byMasks = masks || isNew ? nil : old?.byMasks
            let byCrop = crop || isNew ? nil : old?.byCrop
            input.hidden = (
                byMasks: byMasks ?? HiddenParts(below: view.masks, place, size),
                byCrop: byCrop ?? HiddenParts(outside: view.crop, place, size)
            )
        }
        isBound = true
        showView(of: arrangement)
    }

    private func showView(of arrangement: Arrangement) {
        shownView = view
        guard isBound else { return }
        shownView.masks = zip(inputs, arrangement.places).flatMap { input, place in
            let size = input.hasPicture ? input.size : place.size
            guard let hidden = input.hidden else { return [PixelRect]() }
            return hidden.byMasks.masks(at: place, size) + hidden.byCrop.masks(at: place, size)
        }
    }

    /// The part of the whole that is shown, in whole chroma samples; empty when the crop leaves nothing.
    private func part(of whole: PixelSize) -> PixelRect {
        guard let crop = view.crop else { return PixelRect(whole) }
        let inside = crop.intersection(PixelRect(whole))
        let (left, top) = ((inside.x + 1) & ~1, (inside.y + 1) & ~1)
        let right = (inside.x + inside.width) & ~1
        let bottom = (inside.y + inside.height) & ~1
        return PixelRect(x: left, y: top, width: max(0, right - left), height: max(0, bottom - top))
    }

    /// Writes one picture.
    ///
    /// - Parameter hidesEarlier: whether no earlier one may be seen any more.
    private func publish(_ news: News, hidesEarlier: Bool = false) {
        let isNew = arrangement == nil
        let arrangement = arranged()
        let part = part(of: arrangement.size)
        let size = part.isEmpty ? arrangement.size : part.size
        // A pool without memory for it counts the frames as dropped.
        if isNew || size != self.size { try? pool.prepare(size: size) }
        if !hasPicture { pool.hideCursor() }
        lastTime = max(news.time ?? .now, Instant(nanoseconds: lastTime.nanoseconds + 1))
        let outcome = pool.write(
            size: size, time: lastTime, arrival: news.arrival, damage: moved(news.damage, to: part), composed: news.frames
        ) { planes, stale in
            draw(arrangement, part, on: planes, stale)
            return true
        }
        guard case .published(let sequence) = outcome else {
            // What was taken is not in any picture: the next one is drawn as a whole.
            self.arrangement = nil
            if hidesEarlier { pool.withdrawAll() }
            isUnwritten = true
            if let bell { pool.ringWhenFree(bell) }
            return
        }
        isUnwritten = false
        if !hasPicture, let predecessor { predecessor.isReplaced = true }
        if hidesEarlier || !hasPicture && predecessor != nil { pool.withdraw(before: sequence) }
        (self.size, hasPicture) = (size, true)
        if inputs.allSatisfy(\.hasPicture) { bindOnce() }
    }

    /// Damage of the whole as it lies in the picture.
    private func moved(_ damage: Damage, to part: PixelRect) -> Damage {
        if damage.isEverything || part.x == 0 && part.y == 0 { return damage }
        var result = Damage.none
        damage.forEach(in: PixelSize(width: part.x + part.width, height: part.y + part.height)) { rect in
            var rect = rect.intersection(part)
            (rect.x, rect.y) = (rect.x - part.x, rect.y - part.y)
            result.insert(rect)
        }
        return result
    }

    /// Draws what is out of date: black where no source is, the sources over it, the masks over all.
    private func draw(_ arrangement: Arrangement, _ part: PixelRect, on planes: I420Planes, _ stale: Damage) {
        if part.isEmpty { return Conversion.fillBlack(planes) }
        var areas: [PixelRect] = []
        stale.forEach(in: planes.size) { rect in
            var area = rect.evenlyAligned(in: planes.size)
            (area.x, area.y) = (area.x + part.x, area.y + part.y)
            areas.append(area)
            let owner = arrangement.places.indices.first { inputs[$0].hasPicture && area.intersection(arrangement.places[$0]) == area }
            if owner == nil { fillBlack(area, of: part, planes) }
        }
        for (input, place) in zip(inputs, arrangement.places) { input.draw(areas, at: place, part, planes) }
        for index in shownView.masks.indices {
            if let target = planes.part(shownView.mask(index, of: part)) { Conversion.fillBlack(target) }
        }
    }

    private func fillBlack(_ area: PixelRect, of part: PixelRect, _ planes: I420Planes) {
        let rect = PixelRect(x: area.x - part.x, y: area.y - part.y, width: area.width, height: area.height)
        if let target = planes.part(rect) { Conversion.fillBlack(target) }
    }

    private func showPointer() {
        guard let pointer, let arrangement else { return }
        let part = part(of: arrangement.size)
        pointer.show(over: part, shownView, zip(inputs, arrangement.places).map { (input: $0.0, place: $0.1) })
    }

    // MARK: - Changes

    /// Composes all of it in another way.
    private func composeAnew(hidesEarlier: Bool = false) {
        guard hasPicture, !isReplaced else { return }
        var news = News()
        for index in inputs.indices { take(index, &news) }
        news.damage = .everything
        publish(news, hidesEarlier: hidesEarlier)
        showPointer()
        pool.wakeReaders()
    }

    /// Shows another part. What it hides is hidden when this returns, and what was drawn of it before is withdrawn.
    public func setView(_ new: CaptureView) {
        guard new != view else { return }
        let (hasNewMasks, hasNewCrop) = (new.masks != view.masks, new.crop != view.crop)
        view = new
        if hasPicture { bind(masks: hasNewMasks, crop: hasNewCrop) } else { shownView = new }
        // The pointer first: whoever has the picture takes no older one.
        if hasPicture && !isReplaced { showPointer() }
        composeAnew(hidesEarlier: true)
    }

    /// Lays the sources out in another way.
    public func setLayout(_ new: Layout) {
        guard new != layout else { return }
        bindOnce()
        (layout, arrangement) = (new, nil)
        composeAnew()
    }

    /// Takes a source out: the others are laid out without it. The last one's picture stays.
    public func remove(_ input: FramePool) {
        guard inputs.count > 1, let index = inputs.firstIndex(where: { $0.pool === input }) else { return }
        bindOnce()
        // What it has sent and was not composed yet is not shown any more.
        inputs.remove(at: index).close()
        pool.removeInput(input)
        arrangement = nil
        composeAnew()
    }

    /// Another one that was to replace this is gone: these pictures are shown again.
    public func goOn() {
        guard isReplaced else { return }
        isReplaced = false
        pool.withdrawAll()
        pool.hideCursor()
        pointer?.forgetShown()
        arrangement = nil
        composeAnew()
    }

    /// Lets go of all pools; the composer is of no use any more.
    public func close() {
        for input in inputs {
            input.close()
            pool.removeInput(input.pool)
        }
        inputs = []
    }
}
