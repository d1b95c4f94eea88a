// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop
import Streams
import Testing

/// Tests with threads, one after the other: they count them.
@Suite(.serialized, .timeLimit(.minutes(10))) enum LiveTests {}

/// A track with a pool that the test fills, on a loop that the test runs.
final class Rig {
    let loop: EventLoop
    let pool = FramePool()
    let streams: Streams
    let track: TrackStreams
    /// They live as long as the rig, so that none goes before it was told to.
    private var readers: [TestReader] = []

    init(_ rates: StreamRates = StreamRates(maxSize: nil, frameRate: 0, bitrate: 4_000_000)) throws {
        loop = try EventLoop()
        streams = Streams(on: loop)
        track = streams.openTrack(pool: pool, rates: rates)
        track.showsPlaceholder = false
    }

    deinit { streams.shutdown() }

    /// Runs the loop until the condition holds; fails the test if it never does.
    func wait(_ what: Comment, _ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        // Other threads change what is waited for without waking this loop.
        let deadline = Instant.now + .seconds(30)
        var holds = condition()
        while !holds && Instant.now < deadline { holds = loop.run(until: condition, timeout: .milliseconds(5)) }
        #expect(holds, what, sourceLocation: sourceLocation)
    }

    /// Runs the loop for a while, in which something should not happen.
    func idle(_ duration: Duration) { _ = loop.run(until: { false }, timeout: duration) }

    /// Publishes a picture as a capture does.
    func publish(_ picture: TestPicture, damage: Damage = .everything, time: Instant? = nil, arrival: Instant? = nil) {
        let now = arrival ?? Instant.now
        pool.write(size: picture.size, time: time ?? now, arrival: now, damage: damage) { planes, _ in
            picture.write(to: planes)
            return true
        }
        pool.wakeReaders()
    }

    /// Subscribes, and reads what comes whenever the loop runs.
    func read(_ options: StreamOptions = StreamOptions(), reads: Bool = true) throws -> TestReader {
        let reader = TestReader(loop)
        let (stream, descriptor) = try track.subscribe(options) { [weak reader] event in reader?.events.append(event) }
        try descriptor.setNonBlocking()
        (reader.stream, reader.descriptor) = (stream, descriptor)
        if reads { reader.startReading() }
        readers.append(reader)
        return reader
    }
}

extension StreamOptions {
    /// A stream of each kind that has key frames.
    static let compressed = [
        StreamOptions(), StreamOptions(codec: .vp9), StreamOptions(format: .ivf), StreamOptions(format: .ivf, codec: .vp9),
    ]

    /// What ffmpeg tells the format by; "" of one that is no file.
    var suffix: String {
        switch format {
        case .webm: ".webm"
        case .ivf: ".ivf"
        case .y4m: ".y4m"
        case .frames: ""
        }
    }
}

/// What one reader got.
final class TestReader {
    private let loop: EventLoop
    fileprivate(set) var stream: ReaderStream?
    fileprivate var descriptor: FileDescriptor?
    private var watch: Watch?
    fileprivate(set) var events: [StreamEvent] = []
    private(set) var bytes: [UInt8] = []
    private(set) var isAtEnd = false

    fileprivate init(_ loop: EventLoop) { self.loop = loop }

    var sent: Int { Int(stream?.statistics.sent ?? 0) }

    /// Whether all that was written was read.
    var isCurrent: Bool { UInt64(bytes.count) == stream?.statistics.bytes && stream?.statistics.queuedBytes == 0 }

    func startReading() {
        guard let descriptor else { return }
        watch = loop.watch(descriptor.raw, for: .read) { [unowned self] _ in drain(descriptor.raw) }
    }

    /// Reads so many bytes, if they are there, and then no more.
    func read(_ count: Int) {
        guard let descriptor else { return }
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        var left = count
        while left > 0 {
            let got = Glibc.read(descriptor.raw, &chunk, min(left, chunk.count))
            if got <= 0 { return }
            bytes.append(contentsOf: chunk[..<got])
            left -= got
        }
    }

    /// Closes the reading end.
    func close() {
        watch?.cancel()
        (watch, descriptor) = (nil, nil)
    }

    private func drain(_ raw: Int32) {
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = Glibc.read(raw, &chunk, chunk.count)
            if count > 0 {
                bytes.append(contentsOf: chunk[..<count])
                continue
            }
            if count == 0 {
                isAtEnd = true
                watch?.cancel()
            }
            return
        }
    }
}

/// A picture of samples that a test made.
struct TestPicture: Equatable {
    let size: PixelSize
    var luma: [UInt8]
    var blue: [UInt8]
    var red: [UInt8]

    /// One colour.
    init(_ width: Int, _ height: Int, luma value: UInt8 = 128, blue: UInt8 = 128, red: UInt8 = 128) {
        size = PixelSize(width: width, height: height)
        luma = [UInt8](repeating: value, count: width * height)
        self.blue = [UInt8](repeating: blue, count: size.chroma.width * size.chroma.height)
        self.red = [UInt8](repeating: red, count: size.chroma.width * size.chroma.height)
    }

    /// Dark letters on white, in lines of different length; `first` is the first line shown.
    static func text(_ width: Int, _ height: Int, first: Int = 0) -> TestPicture {
        var picture = TestPicture(width, height, luma: 235)
        for row in 0..<(height / 18) {
            var generator = Generator(state: UInt64(first + row) &* 7_919 &+ 1)
            let columns = Int(generator.next() % 60) * (width / 10) / 60 + width / 40
            for column in 0..<min(columns, width / 10 - 1) {
                let glyph = generator.next() % 40
                if glyph >= 34 { continue }
                picture.draw(glyph, x: column * 10 + 4, y: row * 18 + 3)
            }
        }
        return picture
    }

    /// Draws a letter of five by seven strokes, with softened edges as a screen's letters have.
    private mutating func draw(_ glyph: UInt64, x: Int, y: Int) {
        var shape = Generator(state: glyph &+ 99)
        let bits = shape.next() & shape.next() | shape.next() & 0x1084_2108_4210
        for row in 0..<12 {
            for column in 0..<8 where y + row < size.height && x + column < size.width {
                let isInk = bits >> UInt64(row / 2 * 5 + column / 2 % 5) & 1 == 1
                let isEdge = column & 1 == 1 && bits >> UInt64(row / 2 * 5 + (column / 2 + 1) % 5) & 1 == 0
                if isInk { luma[(y + row) * size.width + x + column] = isEdge ? 130 : 30 }
            }
        }
    }

    mutating func fill(x: Int, y: Int, width: Int, height: Int, luma value: UInt8) {
        for row in y..<min(y + height, size.height) {
            for column in x..<min(x + width, size.width) { luma[row * size.width + column] = value }
        }
    }

    func write(to planes: I420Planes) {
        for (samples, plane, stride, part) in [
            (luma, planes.luma, planes.lumaStride, size), (blue, planes.blue, planes.chromaStride, size.chroma),
            (red, planes.red, planes.chromaStride, size.chroma),
        ] {
            samples.withUnsafeBufferPointer { samples in
                guard let base = samples.baseAddress else { return }
                for row in 0..<part.height { (plane + row * stride).update(from: base + row * part.width, count: part.width) }
            }
        }
    }
}

/// Numbers that look random and are the same each time.
struct Generator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 17
    }
}
