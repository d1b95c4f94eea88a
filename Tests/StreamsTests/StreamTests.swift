// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Testing

@testable import Streams

extension LiveTests {
    /// What readers get, checked with ffmpeg.
    @Suite struct StreamTests {
        @Test(arguments: StreamOptions.compressed) func aStreamIsDecodableAndItsTimesGrow(_ options: StreamOptions) throws {
            let rig = try Rig()
            let reader = try rig.read(options)
            for index in 0..<10 {
                rig.publish(.text(320, 240, first: index))
                rig.wait("a packet for each picture") { reader.sent > index }
            }
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd && reader.events.last == .ended(.finished) }
            #expect(reader.events.first == .started)
            #expect(reader.stream?.size == PixelSize(width: 320, height: 240))
            let recording = Recording(reader.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            #expect((recording.width, recording.height) == (320, 240))
            #expect(recording.packets.count == recording.frames.count)
            #expect(recording.packets.count >= 11)
            #expect(recording.timesGrow)
            #expect(recording.packets.first?.isKeyFrame == true && recording.packets.dropFirst().allSatisfy { !$0.isKeyFrame })
        }

        private static let sizes = [
            (1, 1), (2, 2), (15, 17), (33, 31), (321, 241), (17, 640), (16_383, 2), (3, 16_383), (2_700, 1_501),
        ]

        @Test(arguments: [VideoCodec.vp8, .vp9], sizes) func anySizeGoes(_ codec: VideoCodec, _ size: (Int, Int)) throws {
            let (width, height) = size
            let rig = try Rig()
            let reader = try rig.read(StreamOptions(codec: codec))
            rig.publish(TestPicture(width, height, luma: 90))
            rig.wait("the first picture") { reader.sent == 1 }
            rig.publish(TestPicture(width, height, luma: 200))
            rig.wait("the second") { reader.sent == 2 }
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes)
            #expect(recording.complaints == "")
            #expect((recording.width, recording.height) == (width, height))
            // The end repeats the last one, unless that takes longer than an end may.
            #expect(recording.frames.count >= 2)
            #expect(abs(Int(recording.frames.last?.first ?? 0) - 200) < 6)
        }

        @Test(arguments: StreamOptions.compressed) func aReaderThatComesLateGetsAStillPictureAtOnce(_ options: StreamOptions) throws {
            let rig = try Rig()
            let first = try rig.read(options)
            rig.publish(.text(320, 240))
            rig.wait("the first reader's picture") { first.sent > 0 }
            let late = try rig.read(options)
            rig.wait("the late one's") { late.sent > 0 }
            #expect(threads(named: "enc-").count == 1)
            late.stream?.finish()
            rig.wait("the end") { late.isAtEnd }
            let recording = Recording(late.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            #expect(recording.packets.first?.isKeyFrame == true)
            #expect(recording.packets.first?.milliseconds == 0)
        }

        @Test func equalOptionsShareAnEncoderAndTheLastToLeaveStopsIt() throws {
            let rig = try Rig()
            let one = try rig.read()
            let two = try rig.read()
            let small = try rig.read(StreamOptions(maxSize: PixelSize(width: 100, height: 100)))
            rig.publish(.text(320, 240))
            rig.wait("all begin") { one.sent > 0 && two.sent > 0 && small.stream?.size != nil }
            #expect(threads(named: "enc-").count == 2)
            #expect(small.stream?.size == PixelSize(width: 100, height: 75))
            small.close()
            rig.wait("its encoder stops") { threads(named: "enc-").count == 1 }
            #expect(small.events.last == .ended(.readerGone))
            one.close()
            rig.wait("it is noticed without a packet") { one.events.last == .ended(.readerGone) }
            let before = two.sent
            rig.publish(.text(320, 240, first: 5))
            rig.wait("the other goes on") { two.sent > before }
            #expect(rig.track.encoderIsRunning)
            two.close()
            rig.wait("the last encoder stops") { threads(named: "enc-").isEmpty }
            #expect(rig.track.readers.isEmpty && !rig.track.encoderIsRunning)
            rig.wait("the pool has no reader") { rig.pool.statistics.readers == 0 }
            #expect(Recording(two.bytes).complaints == "")
        }

        @Test(arguments: StreamOptions.compressed) func theSizeStaysWhenTheSourceChanges(_ options: StreamOptions) throws {
            let rig = try Rig()
            let reader = try rig.read(options)
            rig.publish(TestPicture(320, 240, luma: 200))
            rig.wait("the first") { reader.sent == 1 }
            rig.publish(TestPicture(640, 240, luma: 200))
            rig.wait("the wide one") { reader.sent >= 2 }
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            #expect((recording.width, recording.height) == (320, 240))
            let last = try #require(recording.frames.last)
            #expect(abs(Int(last[320 * 120 + 160]) - 200) < 6)
            #expect(last[320 * 10 + 160] < 24 && last[320 * 230 + 160] < 24)
        }

        @Test(arguments: StreamOptions.compressed) func whoComesLaterHasTheSizeOfThePresentPicture(_ options: StreamOptions) throws {
            let rig = try Rig()
            let reader = try rig.read(options)
            rig.publish(TestPicture(320, 240, luma: 200))
            rig.wait("the first") { reader.sent == 1 && reader.stream?.size != nil }
            rig.publish(TestPicture(640, 240, luma: 200))
            rig.wait("the wide one") { reader.sent >= 2 }
            let (late, equal) = (try rig.read(options), try rig.read(options))
            rig.wait("the late ones'") { late.stream?.size != nil && equal.stream?.size != nil }
            #expect(reader.stream?.size == PixelSize(width: 320, height: 240))
            #expect(late.stream?.size == PixelSize(width: 640, height: 240))
            #expect(equal.stream?.size == PixelSize(width: 640, height: 240))
            #expect(rig.track.groups.count == 2)
        }

        /// Where there may be no more encodings, one of another size is better than none.
        @Test func oneOfManySizesIsSharedWhenThereMayBeNoMore() throws {
            let rig = try Rig()
            let options = StreamOptions(format: .y4m)
            for index in 0..<(TrackStreams.greatestRawReaderCount - 1) {
                rig.publish(TestPicture(64 + 16 * index, 64, luma: 200))
                let reader = try rig.read(options)
                rig.wait("a size") { reader.stream?.size != nil }
            }
            let webm = try rig.read(StreamOptions())
            rig.wait("a size") { webm.stream?.size != nil }
            #expect(rig.track.groups.count == TrackStreams.greatestEncodingCount)
            rig.publish(TestPicture(48, 64, luma: 200))
            let late = try rig.read(options)
            rig.wait("the late one's") { late.stream?.size != nil }
            #expect(rig.track.groups.count == TrackStreams.greatestEncodingCount)
            #expect(late.stream?.size == PixelSize(width: 64, height: 64))
        }

        @Test func rawPicturesCanBeRead() throws {
            let rig = try Rig()
            let reader = try rig.read(StreamOptions(format: .y4m))
            for index in 0..<3 {
                rig.publish(TestPicture(33, 31, luma: UInt8(60 + 50 * index)))
                rig.wait("the picture") { reader.sent == index + 1 }
            }
            let late = try rig.read(StreamOptions(format: .y4m))
            rig.wait("the late reader's") { late.sent == 1 }
            #expect(reader.sent == 3)
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes, suffix: ".y4m")
            #expect(recording.complaints == "")
            #expect((recording.width, recording.height) == (33, 31))
            #expect(recording.frames.compactMap(\.first) == [60, 110, 160, 160])
        }

        @Test func rawReadersAreLimited() throws {
            let rig = try Rig()
            let readers = try (0..<TrackStreams.greatestRawReaderCount).map { _ in try rig.read(StreamOptions(format: .y4m)) }
            #expect(throws: StreamsError.rawReaderLimit(8)) { try rig.read(StreamOptions(format: .y4m)) }
            readers.first?.close()
            rig.wait("one leaves") { rig.track.readers.count == 7 }
            _ = try rig.read(StreamOptions(format: .y4m))
        }

        @Test(arguments: [VideoCodec.vp8, .vp9]) func aStillTextBecomesSharp(_ codec: VideoCodec) throws {
            let rig = try Rig(StreamRates(maxSize: nil, frameRate: 30, bitrate: 2_000_000))
            let reader = try rig.read(StreamOptions(codec: codec))
            let picture = TestPicture.text(1_280, 720)
            rig.publish(picture)
            rig.wait("the key frame") { reader.sent > 0 }
            let begin = Instant.now
            var lastCount = 0
            var lastPacket = begin
            rig.wait("refinement ends") {
                if reader.sent != lastCount { (lastCount, lastPacket) = (reader.sent, .now) }
                return Instant.now - lastPacket > .seconds(1) && reader.isCurrent
            }
            reader.close()
            let recording = Recording(reader.bytes)
            #expect(recording.complaints == "")
            #expect(recording.packets.count <= 8)
            #expect((recording.times.last ?? 0) < 2_000)
            #expect(Recording.likeness(recording.frames.last ?? [], picture.luma) >= 40)
        }

        @Test func aStillPictureWakesNobody() throws {
            let rig = try Rig()
            let reader = try rig.read()
            rig.publish(.text(320, 240))
            rig.wait("the first picture") { reader.sent > 0 }
            rig.idle(.seconds(3))
            let workers = threads(named: "enc-") + threads(named: "writer")
            let before = wakeUps(of: workers)
            rig.idle(.seconds(3))
            #expect(wakeUps(of: workers) == before)
            // The same picture again is no new picture.
            let sent = reader.sent
            rig.publish(.text(320, 240), damage: .none)
            rig.publish(.text(320, 240))
            rig.wait("it was looked at") { rig.pool.statistics.inFlight == 0 }
            rig.idle(.milliseconds(300))
            #expect(reader.sent == sent)
        }

        @Test(arguments: StreamOptions.compressed + [StreamOptions(format: .y4m)])
        func theFrameRateLimitKeepsTheLastOfABurst(_ options: StreamOptions) throws {
            let rig = try Rig(StreamRates(maxSize: nil, frameRate: 5, bitrate: 0))
            let reader = try rig.read(options)
            for index in 0..<40 {
                rig.publish(TestPicture(64, 64, luma: UInt8(20 + 5 * index)))
                rig.idle(.milliseconds(10))
            }
            rig.idle(.milliseconds(700))
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            #expect(recording.packets.count < 12)
            #expect(abs(Int(recording.frames.last?.first ?? 0) - 215) < 6)
        }

        @Test(arguments: StreamOptions.compressed + [StreamOptions(format: .y4m)])
        func latencyIsFromTheTimeStampToTheDescriptor(_ options: StreamOptions) throws {
            let rig = try Rig()
            let reader = try rig.read(options)
            // It was on its way for a while before it came.
            rig.publish(.text(320, 240), time: Instant(nanoseconds: Instant.now.nanoseconds - 400_000_000))
            rig.wait("a picture") { reader.sent > 0 }
            let first = try #require(rig.pool.statistics.latencyMedian)
            #expect(first >= .milliseconds(400) && first < .seconds(20))
            // The others were not.
            for index in 1...9 {
                rig.publish(.text(320, 240, first: index))
                rig.wait("a picture") { reader.sent > index }
            }
            let statistics = rig.pool.statistics
            #expect(statistics.latencyMedian.map { $0 < first } == true)
            #expect(statistics.latencyP99.map { $0 >= .milliseconds(400) } == true)
        }

        @Test func latencyCountsWhatThePipeHoldsUp() throws {
            let rig = try Rig()
            let reader = try rig.read(StreamOptions(format: .y4m), reads: false)
            // More than the pipe takes.
            rig.publish(TestPicture(1_920, 1_080))
            rig.wait("the stream begins") { reader.events == [.started] }
            rig.idle(.milliseconds(600))
            #expect(rig.pool.statistics.latencyMedian == nil)
            reader.startReading()
            rig.wait("the whole picture") { reader.sent > 0 }
            #expect(rig.pool.statistics.latencyMedian.map { $0 >= .milliseconds(500) } == true)
        }

        @Test func timesGrowWhateverTheProducerSays() throws {
            let rig = try Rig()
            let reader = try rig.read()
            for (index, time) in [Instant.now, Instant.now, Instant(nanoseconds: -1), Instant(nanoseconds: .max), Instant(nanoseconds: 0)]
                .enumerated()
            {
                rig.publish(TestPicture(64, 64, luma: UInt8(40 * index + 20)), time: time)
                rig.wait("a packet each") { reader.sent > index }
            }
            rig.wait("all is read") { reader.isCurrent }
            reader.close()
            let recording = Recording(reader.bytes)
            #expect(recording.complaints == "")
            #expect(recording.timesGrow)
            #expect((recording.times.last ?? 0) < 30_000)
        }
    }
}
