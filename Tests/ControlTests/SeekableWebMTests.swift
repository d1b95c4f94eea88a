// SPDX-License-Identifier: MIT
import Glibc
import Loop
import Matroska
import Testing

@testable import vitrinectl

/// A stream as the agent writes it; times are milliseconds.
private struct LiveStream {
    private(set) var output = EBML()

    init(docType: StaticString = "webm", scale: UInt64 = 1_000_000, codec: StaticString = "V_VP8") {
        output.append(.ebml) { $0.append(.docType, docType) }
        output.appendUnsizedHeader(.segment)
        output.append(.info) { $0.append(.timestampScale, scale) }
        output.append(.tracks) { tracks in
            tracks.append(.trackEntry) { track in
                track.append(.trackNumber, 1)
                track.append(.codecID, codec)
            }
        }
    }

    mutating func cluster(_ time: UInt64) {
        output.appendUnsizedHeader(.cluster)
        output.append(.timestamp, time)
    }

    mutating func picture(_ relative: UInt16, isKeyFrame: Bool = false, byteCount: Int = 10, track: UInt8 = 0x81, flags: UInt8 = 0) {
        let head = [track, UInt8(relative >> 8), UInt8(relative & 0xFF), flags | (isKeyFrame ? 0x80 : 0)]
        output.append(.simpleBlock, head + [UInt8](repeating: 7, count: byteCount))
    }

    /// Two clusters with key frames and one without, of two pictures each.
    static var usual: LiveStream {
        var stream = LiveStream()
        for (time, isKeyFrame) in [(0, true), (2_000, true), (32_001, false)] as [(UInt64, Bool)] {
            stream.cluster(time)
            stream.picture(0, isKeyFrame: isKeyFrame)
            stream.picture(500)
        }
        return stream
    }
}

/// A file of its own, with a recording in it.
private final class Written {
    let path = "/tmp/vitrine-test-\(getpid())-\(UInt64.random(in: 0...UInt64.max)).webm"
    let target: RecordTarget
    var recording: SeekableWebM

    init() throws {
        target = try RecordTarget(path, keepsExisting: true)
        recording = SeekableWebM(into: target)
    }

    deinit { unlink(path) }

    var bytes: [UInt8] { (try? Files.contents(of: path)) ?? [] }
}

/// An element that was read back: strict, all sizes known.
private struct Element: Equatable {
    let id: ElementID?
    let position: Int
    let content: [UInt8]

    var number: UInt64 { content.reduce(0) { $0 << 8 | UInt64($1) } }
    var children: [Element] { Element.all(content) }
    func first(_ id: ElementID) -> Element? { children.first { $0.id == id } }

    /// Empty when anything goes beyond the end.
    static func all(_ bytes: [UInt8]) -> [Element] {
        var elements: [Element] = []
        var position = 0
        while position < bytes.count {
            let idLength = bytes[position].leadingZeroBitCount + 1
            let sizeLength = bytes[position + idLength].leadingZeroBitCount + 1
            let content = position + idLength + sizeLength
            let number = { (range: Range<Int>) in bytes[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
            let size = number(position + idLength..<content) & (1 << UInt64(7 * sizeLength) - 1)
            guard size <= UInt64(bytes.count - content) else { return [] }
            let id = ElementID(rawValue: UInt32(number(position..<position + idLength)))
            elements.append(Element(id: id, position: position, content: Array(bytes[content..<content + Int(size)])))
            position = content + Int(size)
        }
        return elements
    }
}

@Suite struct SeekableWebMTests {
    @Test(arguments: [1, 7, 4_096])
    func aFinishedFileHasSizesLengthAndIndex(chunk: Int) throws {
        let file = try Written()
        let bytes = LiveStream.usual.output.bytes
        for start in stride(from: 0, to: bytes.count, by: chunk) { try file.recording.take(bytes[start..<min(start + chunk, bytes.count)]) }
        try file.recording.finish()
        let top = Element.all(file.bytes)
        #expect(top.map(\.id) == [.ebml, .segment])
        let segment = try #require(top.last)
        #expect(segment.children.map(\.id) == [.seekHead, .info, .tracks, .cluster, .cluster, .cluster, .cues])
        let clusters = segment.children.filter { $0.id == .cluster }
        #expect(clusters.map { $0.children.map(\.id) } == Array(repeating: [.timestamp, .simpleBlock, .simpleBlock], count: 3))
        let duration = try #require(segment.first(.info)?.first(.duration)?.number)
        #expect(Double(bitPattern: duration) == 32_534)
        let cues = try #require(segment.first(.cues)?.children)
        #expect(cues.compactMap { $0.first(.cueTime)?.number } == [0, 2_000])
        let places = cues.compactMap { $0.first(.cueTrackPositions)?.first(.cueClusterPosition)?.number }
        #expect(places == clusters.prefix(2).map { UInt64($0.position) })
        for seek in try #require(segment.first(.seekHead)?.children) {
            let id = try #require(seek.first(.seekID)?.number), position = try #require(seek.first(.seekPosition)?.number)
            #expect(segment.children.first { $0.position == Int(position) }?.id?.rawValue == UInt32(id))
        }
        #expect(file.recording.written == UInt64(file.bytes.count))
    }

    /// The agent does not wait with a picture for the sound of the same time: the file has them in order.
    @Test func picturesAndSoundAreInTheOrderOfTheirTimes() throws {
        var stream = LiveStream(codec: "A_OPUS")
        stream.cluster(0)
        stream.picture(0, isKeyFrame: true)
        for time in stride(from: UInt64(40), to: 4_000, by: 40) {
            stream.cluster(time)
            stream.picture(0, isKeyFrame: time == 2_000)
            stream.cluster(time - 30)
            stream.picture(0, isKeyFrame: true, track: 0x82)
            stream.picture(20, isKeyFrame: true, track: 0x82)
        }
        let file = try Written()
        try file.recording.take(stream.output.bytes[...])
        #expect(file.recording.isWaiting)
        try file.recording.finish()
        let clusters = Element.all(file.bytes).last?.children.filter { $0.id == .cluster } ?? []
        #expect(clusters.count == 2)
        var times: [UInt64] = []
        for cluster in clusters {
            let time = try #require(cluster.children.first?.number)
            for block in cluster.children.dropFirst() { times.append(time + UInt64(block.content[1]) << 8 + UInt64(block.content[2])) }
        }
        #expect(times.count == 1 + 99 * 3)
        #expect(times == times.sorted())
        let cues = Element.all(file.bytes).last?.first(.cues)?.children ?? []
        #expect(cues.compactMap { $0.first(.cueTime)?.number } == [0, 2_000])
    }

    @Test func whatWaitsForSoundIsWrittenWhenNoneComes() throws {
        var stream = LiveStream(codec: "A_OPUS")
        stream.cluster(0)
        stream.picture(0, isKeyFrame: true)
        let file = try Written()
        try file.recording.take(stream.output.bytes[...])
        #expect(file.bytes.isEmpty && file.recording.isWaiting)
        try file.recording.settle()
        #expect(Self.find(ElementID.simpleBlock.bytes + [0x8E, 0x81], in: file.bytes) != nil)
        #expect(!file.recording.isWaiting)
    }

    @Test func eachMomentBeforeTheEndLeavesALiveStreamOfWholePictures() throws {
        let file = try Written()
        let bytes = LiveStream.usual.output.bytes
        var whole = 0
        for (index, byte) in bytes.enumerated() {
            try file.recording.take([byte])
            guard file.bytes.count > whole else { continue }
            whole = file.bytes.count
            #expect(Self.isPlayable(file.bytes), "after byte \(index)")
        }
        #expect(whole > 0)
    }

    /// Whether segment and last cluster are open, all other elements whole, and nothing is left over.
    private static func isPlayable(_ bytes: [UInt8]) -> Bool {
        let open = [0x01] + [UInt8](repeating: 0xFF, count: 7)
        guard let segment = find(ElementID.segment.bytes + open, in: bytes),
            let cluster = find(ElementID.cluster.bytes + open, in: bytes)
        else { return false }
        let whole = Element.all(Array(bytes[(segment + 12)..<cluster])), last = Element.all(Array(bytes[(cluster + 12)...]))
        let clusters = whole.dropFirst(3)
        return whole.prefix(3).map(\.id) == [.void, .info, .tracks] && clusters.allSatisfy { $0.id == .cluster && $0.children.count == 3 }
            && last.first?.id == .timestamp && last.count > 1 && last.dropFirst().allSatisfy { $0.id == .simpleBlock }
    }

    private static func find(_ pattern: [UInt8], in bytes: [UInt8]) -> Int? {
        bytes.indices.first { bytes[$0...].starts(with: pattern) }
    }

    @Test func aPictureThatIsNotWholeIsLeftOut() throws {
        let file = try Written()
        try file.recording.take(LiveStream.usual.output.bytes.dropLast(3))
        try file.recording.finish()
        let clusters = Element.all(file.bytes).last?.children.filter { $0.id == .cluster } ?? []
        #expect(clusters.map(\.children.count) == [3, 3, 2])
    }

    @Test func nothingIsWrittenBeforeTheFirstPicture() throws {
        let file = try Written()
        try file.recording.take(LiveStream().output.bytes[...])
        try file.recording.finish()
        file.target.discardIfEmpty()
        #expect(access(file.path, F_OK) != 0)
    }

    @Test func anotherKindOfStreamIsRefused() throws {
        var wrongTrack = LiveStream(), laced = LiveStream(), early = LiveStream(), large = LiveStream()
        wrongTrack.cluster(0)
        wrongTrack.picture(0, track: 0x82)
        laced.cluster(0)
        laced.picture(0, flags: 0x02)
        early.picture(0)
        large.cluster(0)
        var huge = large.output
        huge.appendHeader(.simpleBlock, byteCount: 1 << 40)
        let streams: [[UInt8]] = [
            Array("YUV4MPEG2 W2 H2".utf8), [0], LiveStream(docType: "matroska").output.bytes, LiveStream(scale: 1_000).output.bytes,
            wrongTrack.output.bytes, laced.output.bytes, early.output.bytes, huge.bytes,
        ]
        for bytes in streams {
            let file = try Written()
            #expect(throws: RecordingFault.self, "\(bytes.prefix(16))") { try file.recording.take(bytes[...]) }
            #expect(throws: Never.self) { try file.recording.finish() }
        }
    }

    @Test func noiseTrapsNothing() throws {
        var generator = SystemRandomNumberGenerator()
        let good = LiveStream.usual.output.bytes
        for _ in 0..<2_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            var stream = LiveWebM()
            stream.append(bytes[...])
            do { while try stream.next() != nil {} } catch { #expect(!error.text.isEmpty) }
        }
    }
}

@Suite struct CueListTests {
    @Test func aLongRecordingKeepsSomeOfItsKeyFrames() {
        var list = CueList()
        // Three days with a key frame a second.
        let seconds = UInt64(3 * 86_400)
        for second in 0..<seconds { list.add(CueList.Cue(time: second * 1_000, position: second * 100)) }
        #expect(list.cues.count <= CueList.capacity && list.cues.count > CueList.capacity / 4)
        let gaps = zip(list.cues.dropFirst(), list.cues).map { $0.time - $1.time }
        #expect((gaps.max() ?? 0) <= 2 * (seconds * 1_000 / UInt64(CueList.capacity / 4)))
        #expect(list.cues.allSatisfy { $0.position == $0.time / 10 })
        #expect(list.cues.first?.time == 0)
    }

    @Test func whatWasNotWrittenIsForgotten() {
        var list = CueList()
        for index in 0..<5 { list.add(CueList.Cue(time: UInt64(index), position: UInt64(index * 10))) }
        list.removeAll(from: 30)
        #expect(list.cues.map(\.position) == [0, 10, 20])
    }
}

@Suite struct KeyFrameWishTests {
    @Test func aKeyFrameIsWishedForEachTenSecondsOfPictures() {
        var wish = KeyFrameWish()
        var asked: [UInt64] = []
        wish.see(isKeyFrame: true, at: 0)
        for time in stride(from: UInt64(33), to: 60_000, by: 33) {
            wish.see(isKeyFrame: false, at: time)
            guard wish.isOpen else { continue }
            asked.append(time)
            wish.close()
            // One in two comes.
            if asked.count % 2 == 0 { wish.see(isKeyFrame: true, at: time + 1) }
        }
        #expect(asked.count == 5)
        #expect(zip(asked.dropFirst(), asked).allSatisfy { $0 - $1 >= 10_000 })
    }

    @Test func keyFramesThatComeAnywayAreEnough() {
        var wish = KeyFrameWish()
        for time in stride(from: UInt64(0), to: 60_000, by: 100) {
            wish.see(isKeyFrame: time % 9_000 == 0, at: time)
            #expect(!wish.isOpen)
        }
    }
}

@Suite struct RecordFormatTests {
    @Test(
        arguments: [
            ("x.webm", .webm), ("x.MKV", .webm), ("a.b/x.y4m", .y4m), ("-", .webm), ("/dev/null", .webm), ("a.mp4/x", .webm),
            ("x.IVF", .ivf),
            (".hidden", .webm),
            ("x.mp4", nil), ("x.", nil), ("x.webm.part", nil),
        ] as [(String, RecordFormat?)])
    func theNameSaysTheFormat(name: String, format: RecordFormat?) {
        #expect(RecordFormat(fileName: name) == format)
    }
}
