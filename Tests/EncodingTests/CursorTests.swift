// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop
import Synchronization
import Testing

@testable import Encoding

/// A pool's pointer, and pictures to draw below it.
private final class Scene {
    let pool = FramePool()
    let reader: FramePool.ReaderID
    let image = CursorImage()
    let bitmap: CursorBitmap
    let source: PixelSize
    let picture: Picture
    private var hotspot = 0

    init(_ source: PixelSize) throws {
        self.source = source
        (bitmap, picture) = (try CursorBitmap(), try Picture(size: source))
        reader = pool.addReader(bell: try FileDescriptor.makeBell(), followsCursor: true)
        try pool.prepareCursor()
        paint(PixelRect(source), 60)
    }

    /// Changes a part of the picture.
    func paint(_ rect: PixelRect, _ luma: UInt8) {
        guard let part = picture.planes.part(rect) else { return }
        for y in 0..<part.size.height {
            for x in 0..<part.size.width { part.luma[y * part.lumaStride + x] = luma &+ UInt8(truncatingIfNeeded: (x * 3 + y * 5) & 63) }
        }
    }

    /// Shows the pointer: opaque, but for a transparent right half.
    func point(_ x: Int, _ y: Int, side: Int? = nil, colour: UInt8 = 250) {
        if let side {
            var bytes = [UInt8](repeating: 0, count: side * side * 4)
            for index in 0..<(side * side) where index % side * 2 < side {
                bytes.replaceSubrange((index * 4)..<(index * 4 + 4), with: [colour, colour / 2, colour / 3, 255])
            }
            let size = PixelSize(width: side, height: side)
            _ = bytes.withUnsafeBytes { bitmap.load($0, size: size, strideBytes: side * 4, format: .bgra) }
            hotspot = side / 4
        }
        pool.showCursor(x: x, y: y, hotspotX: hotspot, hotspotY: hotspot, bitmap, isNew: side != nil)
        _ = pool.takeCursor(reader, into: image)
    }

    func hide() {
        pool.hideCursor()
        _ = pool.takeCursor(reader, into: image)
    }

    /// What a canvas shows that was never drawn on before.
    func fresh(_ size: PixelSize) throws -> [UInt8] {
        let canvas = try Canvas(size: size)
        var blocks = BlockMap(size: size)
        try canvas.draw(picture.planes, .everything, image, selecting: &blocks)
        return canvas.packed()
    }
}

/// The blocks in which two packed pictures differ, as a map has them.
private func differing(_ old: [UInt8], _ new: [UInt8], _ size: PixelSize) -> [UInt8] {
    let columns = (size.width + 15) / 16
    var flags = [UInt8](repeating: 0, count: columns * ((size.height + 15) / 16))
    let luma = size.width * size.height
    for index in old.indices where old[index] != new[index] {
        if index < luma {
            flags[index / size.width / 16 * columns + index % size.width / 16] = 1
        } else {
            let place = (index - luma) % (size.chroma.width * size.chroma.height)
            flags[place / size.chroma.width / 8 * columns + place % size.chroma.width / 8] = 1
        }
    }
    return flags
}

@Suite struct CursorOverlayTests {
    /// Sizes of source and canvas: equal, scaled, letterboxed, odd, and larger than the source.
    static let sizes = [
        (PixelSize(width: 160, height: 120), PixelSize(width: 160, height: 120)),
        (PixelSize(width: 161, height: 119), PixelSize(width: 161, height: 119)),
        (PixelSize(width: 320, height: 200), PixelSize(width: 160, height: 120)),
        (PixelSize(width: 100, height: 50), PixelSize(width: 131, height: 97)),
    ]

    /// Whatever it does, and whatever happens below it, the canvas shows just that, and only blocks that look different are selected.
    @Test(arguments: sizes) func itLeavesNoTrace(_ source: PixelSize, _ size: PixelSize) throws {
        let scene = try Scene(source)
        let canvas = try Canvas(size: size)
        var blocks = BlockMap(size: size)
        var random = SystemRandomNumberGenerator()
        var last = try scene.fresh(size)
        try canvas.draw(scene.picture.planes, .everything, scene.image, selecting: &blocks)
        scene.point(30, 30, side: 24)
        for step in 0..<150 {
            var damage = Damage.none
            switch step % 5 {
            case 0, 1:
                scene.point(.random(in: -30..<(source.width + 30), using: &random), .random(in: -30..<(source.height + 30), using: &random))
            case 2:
                scene.point(scene.image.cursor.x + 1, scene.image.cursor.y, side: [4, 24, 33, 60][step / 5 % 4], colour: UInt8(step + 90))
            case 3:
                let rect = PixelRect(
                    x: .random(in: 0..<source.width, using: &random), y: .random(in: 0..<source.height, using: &random), width: 37,
                    height: 19)
                scene.paint(rect, UInt8(step))
                damage = Damage(rect)
                if step % 2 == 0 { damage = .everything }
            default: if step % 3 == 0 { scene.hide() }
            }
            try canvas.draw(damage.isEmpty ? nil : scene.picture.planes, damage, scene.image, selecting: &blocks)
            let (shown, expected) = (canvas.packed(), try scene.fresh(size))
            #expect(shown == expected, "step \(step)")
            let changed = differing(last, shown, size)
            if damage.isEmpty {
                #expect(blocks.selected == changed, "step \(step)")
            } else {
                // What changed below it may be hidden by it.
                #expect(zip(blocks.selected, changed).allSatisfy { $0 >= $1 }, "step \(step)")
            }
            last = shown
        }
    }

    @Test func aStillOneCostsNothing() throws {
        let scene = try Scene(PixelSize(width: 160, height: 120))
        let canvas = try Canvas(size: scene.source)
        var blocks = BlockMap(size: scene.source)
        scene.point(30, 30, side: 24)
        try canvas.draw(scene.picture.planes, .everything, scene.image, selecting: &blocks)
        #expect(!blocks.selectsNothing)
        for damage in [Damage.everything, .none, Damage(PixelRect(x: 20, y: 20, width: 30, height: 30))] {
            try canvas.draw(scene.picture.planes, damage, scene.image, selecting: &blocks)
            #expect(blocks.selectsNothing)
        }
        try canvas.draw(nil, .none, scene.image, selecting: &blocks)
        #expect(blocks.selectsNothing)
    }

    /// Its point lies where the point lies, at any scale, and the bars around a picture stay black.
    @Test func itIsScaledWithThePicture() throws {
        let (source, size) = (PixelSize(width: 320, height: 120), PixelSize(width: 160, height: 120))
        let scene = try Scene(source)
        scene.paint(PixelRect(source), 0)
        scene.point(100, 60, side: 16)
        let canvas = try Canvas(size: size)
        var blocks = BlockMap(size: size)
        try canvas.draw(scene.picture.planes, .everything, scene.image, selecting: &blocks)
        // The picture lies in rows 30 to 89. The bitmap's opaque half is 8x16, its hotspot 4,4: 4x8 at 48,58.
        let planes = canvas.planes
        let opaque = Int(planes.luma[60 * planes.lumaStride + 50])
        #expect(opaque > 100)
        for (x, y, isOpaque) in [(48, 58, true), (51, 65, true), (46, 60, false), (54, 60, false), (50, 56, false), (50, 68, false)] {
            #expect((abs(Int(planes.luma[y * planes.lumaStride + x]) - opaque) < 3) == isOpaque, "\(x), \(y)")
        }
        scene.point(100, 0)
        try canvas.draw(nil, .none, scene.image, selecting: &blocks)
        #expect(canvas.planes.luma[29 * planes.lumaStride + 50] == 16 && canvas.planes.luma[30 * planes.lumaStride + 50] > 100)
    }

    @Test func thePlaceholderHasNone() throws {
        let scene = try Scene(PixelSize(width: 160, height: 120))
        let canvas = try Canvas(size: scene.source)
        var blocks = BlockMap(size: scene.source)
        scene.point(80, 60, side: 24)
        try canvas.draw(scene.picture.planes, .everything, scene.image, selecting: &blocks)
        try canvas.drawPlaceholder()
        let other = try Canvas(size: scene.source)
        try other.drawPlaceholder()
        #expect(canvas.packed() == other.packed())
        scene.point(40, 60)
        try canvas.draw(scene.picture.planes, .everything, scene.image, selecting: &blocks)
        #expect(try scene.fresh(scene.source) == canvas.packed())
    }
}

/// A whole encoder and its thread.
@Suite struct CursorEncoderTests {
    private final class Sink: Sendable {
        let packets = Mutex<[Packet]>([])
        let isStopped = Atomic(false)

        func note(_ event: EncoderEvent) {
            switch event {
            case .packet(let packet): packets.withLock { $0.append(packet) }
            case .stopped: isStopped.store(true, ordering: .relaxed)
            default: break
            }
        }

        var count: Int { packets.withLock { $0.count } }
        var last: Packet? { packets.withLock { $0.last } }

        func wait(_ what: Comment, _ condition: () -> Bool) {
            let deadline = Instant.now + .seconds(30)
            while !condition() && Instant.now < deadline { usleep(1_000) }
            #expect(condition(), what)
        }
    }

    private let size = PixelSize(width: 320, height: 240)

    private func start(_ scene: Scene, _ codec: Codec, _ sink: Sink, frameRate: UInt32 = 20) throws -> Encoder {
        let options = EncodingOptions(
            codec: codec, maxSize: nil, rates: EncodingRates(frameRate: frameRate, bitrate: 2_000_000), holdsOnPlaceholder: false)
        let encoder = try Encoder.start(number: 1, pool: scene.pool, options: options, showsPlaceholder: false) { sink.note($0) }
        encoder.setSuspended(false)
        return encoder
    }

    private func show(_ scene: Scene) {
        let planes = scene.picture.planes
        scene.pool.write(size: size, time: .now, arrival: .now) { target, _ in
            Conversion.copy(planes, into: target)
            return true
        }
        scene.pool.wakeReaders()
    }

    private func move(_ scene: Scene, _ x: Int, _ y: Int, side: Int? = nil) {
        scene.point(x, y, side: side)
        scene.pool.wakeReaders()
    }

    /// At the rate that was asked for, and ending where it stands.
    @Test(arguments: Codec.video) func aMoveOverAStillPictureGivesPicturesAtTheFrameRate(_ codec: Codec) throws {
        let (scene, sink) = (try Scene(size), Sink())
        let encoder = try start(scene, codec, sink)
        defer { encoder.join() }
        show(scene)
        sink.wait("a first picture") { sink.count == 1 }
        let begin = Instant.now
        move(scene, 10, 50, side: 24)
        for step in 0..<1_000 {
            move(scene, 10 + step % 250, 50)
            usleep(1_000)
        }
        move(scene, 200, 200)
        usleep(200_000)
        let count = sink.count
        let seconds = Double((Instant.now - begin).microseconds) / 1_000_000
        // What is blurred is made sharp while nothing else comes.
        #expect(count > 5 && Double(count) < seconds * 20 * 32 / 31 + 3)
        let packets = sink.packets.withLock { $0 }
        #expect(packets.dropFirst().allSatisfy { !$0.isKeyFrame && $0.bytes.count < packets[0].bytes.count })
        // Then everything is sharp, and nothing comes any more.
        var (quiet, last) = (Instant.now, sink.count)
        sink.wait("silence") {
            if sink.count != last { (quiet, last) = (Instant.now, sink.count) }
            return Instant.now - quiet > .seconds(1)
        }
        encoder.stop()
        sink.wait("the end") { sink.isStopped.load(ordering: .relaxed) }
    }

    @Test func rawPicturesShowIt() throws {
        let (scene, sink) = (try Scene(size), Sink())
        let encoder = try start(scene, .raw, sink, frameRate: 0)
        defer { encoder.join() }
        encoder.requestPicture(again: false)
        show(scene)
        sink.wait("a first picture") { sink.count == 1 }
        #expect(try scene.fresh(size) == sink.last?.bytes)
        for (x, y) in [(50, 50), (51, 50), (300, 230), (0, 0)] {
            encoder.requestPicture(again: false)
            let before = sink.count
            move(scene, x, y, side: before == 1 ? 24 : nil)
            sink.wait("the pointer") { sink.count == before + 1 }
            #expect(try scene.fresh(size) == sink.last?.bytes)
        }
        // One that comes late.
        let late = Sink()
        let second = try start(scene, .raw, late)
        defer { second.join() }
        second.requestPicture(again: true)
        late.wait("the same picture") { late.count == 1 }
        #expect(try scene.fresh(size) == late.last?.bytes)
        // Under the placeholder it does not show, and moving it there is no picture.
        encoder.setPlaceholder(true)
        encoder.requestPicture(again: true)
        sink.wait("the placeholder") { sink.last?.isPlaceholder ?? false }
        let placeholder = sink.last?.bytes
        let before = sink.count
        encoder.requestPicture(again: false)
        move(scene, 100, 100)
        usleep(200_000)
        #expect(sink.count == before)
        encoder.setPlaceholder(false)
        sink.wait("the picture again") { sink.count > before && sink.last?.isPlaceholder == false }
        #expect(sink.last?.bytes != placeholder)
        #expect(try scene.fresh(size) == sink.last?.bytes)
        for encoder in [encoder, second] { encoder.stop() }
        for sink in [sink, late] { sink.wait("the end") { sink.isStopped.load(ordering: .relaxed) } }
    }
}

extension Codec {
    fileprivate static let video = [Codec.video(.vp8), .video(.vp9)]
}
