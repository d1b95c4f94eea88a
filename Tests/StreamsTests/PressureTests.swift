// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Testing

@testable import Streams

extension LiveTests {
    /// Readers that do not read, that come and go, and ends at bad moments.
    @Suite struct PressureTests {
        /// Noise, so that packets are large.
        private func noise(_ width: Int, _ height: Int, _ seed: Int) -> TestPicture {
            var picture = TestPicture(width, height)
            var generator = Generator(state: UInt64(seed))
            for index in picture.luma.indices { picture.luma[index] = UInt8(truncatingIfNeeded: generator.next()) }
            return picture
        }

        @Test func aReaderThatDoesNotReadCostsTheOthersNothing() throws {
            let rig = try Rig(StreamRates(maxSize: nil, frameRate: 0, bitrate: 100_000_000))
            let good = try rig.read()
            let stuck = try rig.read(reads: false)
            let pictures = (0..<4).map { noise(640, 360, $0) }
            rig.publish(pictures[0])
            rig.wait("both begin") { good.sent > 0 && stuck.events == [.started] }
            var round = 0
            while (stuck.stream?.statistics.coalesced ?? 0) < 5 && round < 500 {
                round += 1
                let before = good.sent
                rig.publish(pictures[round % 4])
                rig.wait("the good reader gets each") { good.sent > before }
                #expect((stuck.stream?.statistics.queuedBytes ?? 0) <= 4 << 20)
            }
            #expect((stuck.stream?.statistics.coalesced ?? 0) >= 5)
            #expect(good.stream?.statistics.coalesced == 0)
            let keyFrames = stuck.stream?.statistics.keyFrames ?? 0
            stuck.startReading()
            rig.wait("it resumes on a key frame by itself") { (stuck.stream?.statistics.keyFrames ?? 0) > keyFrames && stuck.isCurrent }
            for reader in [good, stuck] {
                reader.stream?.finish()
                rig.wait("the end") { reader.isAtEnd }
                let recording = Recording(reader.bytes)
                #expect(recording.complaints == "")
                #expect(recording.timesGrow)
                #expect(recording.frames.count == recording.packets.count)
            }
        }

        @Test(arguments: [VideoCodec.vp8, .vp9])
        func slowReadersCostTheOthersAKeyFrameEveryTwoSecondsAtMost(_ codec: VideoCodec) throws {
            let rig = try Rig(StreamRates(maxSize: nil, frameRate: 0, bitrate: 100_000_000))
            let good = try rig.read(StreamOptions(codec: codec))
            let slow = try (0..<5).map { _ in try rig.read(StreamOptions(codec: codec), reads: false) }
            let pictures = (0..<4).map { noise(640, 360, $0) }
            let first = Instant.now
            rig.publish(pictures[0])
            rig.wait("all begin") { good.sent > 0 && slow.allSatisfy { $0.events == [.started] } }
            // One that the writer heard of after the first picture cost a key frame of its own.
            let joined = Int((Instant.now - first).microseconds / 1_000)
            var round = 0
            let begin = Instant.now
            // Each falls behind again and again, at times of its own.
            var lost = [UInt64](repeating: 0, count: slow.count)
            var resumed = [Int](repeating: 0, count: slow.count)
            while (resumed.contains { $0 < 3 } || Instant.now - begin < .seconds(7)) && Instant.now - begin < .seconds(60) {
                round += 1
                let before = good.sent
                rig.publish(pictures[round % 4])
                rig.wait("the good reader gets each") { good.sent > before }
                for (index, reader) in slow.enumerated() {
                    guard let statistics = reader.stream?.statistics, statistics.coalesced > lost[index] + UInt64(index) else { continue }
                    lost[index] = statistics.coalesced
                    // Most of the queue.
                    for _ in 0..<12 {
                        reader.read(1 << 18)
                        rig.idle(.milliseconds(1))
                    }
                    resumed[index] += 1
                }
            }
            #expect(good.stream?.statistics.coalesced == 0)
            for reader in slow { reader.startReading() }
            rig.wait("all is read") { slow.allSatisfy { $0.isCurrent } }
            for reader in [good] + slow {
                reader.stream?.finish()
                rig.wait("the end") { reader.isAtEnd }
            }
            let recording = Recording(good.bytes)
            #expect(recording.complaints == "")
            // Requests are two seconds apart; how long each waits for its picture is the machine's affair, so
            // that the first and the last may lie closer together, by less than one request.
            let keys = recording.packets.filter(\.isKeyFrame).map(\.milliseconds).filter { $0 > joined }
            #expect(keys.count > 1)
            #expect((keys.count - 2) * 2_000 <= (keys.last ?? 0) - (keys.first ?? 0), "\(keys)")
            for reader in slow.prefix(2) {
                let recording = Recording(reader.bytes)
                #expect(recording.complaints == "")
                #expect(recording.frames.count == recording.packets.count)
            }
        }

        @Test func rawReadersSkipToTheNewestPicture() throws {
            let rig = try Rig()
            let good = try rig.read(StreamOptions(format: .y4m))
            let stuck = try rig.read(StreamOptions(format: .y4m), reads: false)
            for index in 0..<20 {
                let before = good.sent
                rig.publish(TestPicture(1_280, 720, luma: UInt8(20 + 10 * index)))
                rig.wait("the good reader gets each") { good.sent > before }
            }
            #expect((stuck.stream?.statistics.queuedBytes ?? 0) < 1_280 * 720 * 3 / 2 + 100)
            stuck.startReading()
            rig.wait("the one in progress and the newest") { stuck.sent == 2 && stuck.isCurrent }
            stuck.close()
            #expect(Recording(stuck.bytes, suffix: ".y4m").frames.compactMap(\.first) == [20, 210])
        }

        @Test func pausedStreamsGetNothingAndGoOnWithAKeyFrame() throws {
            let rig = try Rig()
            let reader = try rig.read()
            rig.publish(TestPicture(64, 64, luma: 50))
            rig.wait("a picture") { reader.sent == 1 }
            reader.stream?.isPaused = true
            rig.publish(TestPicture(64, 64, luma: 100))
            rig.idle(.milliseconds(200))
            #expect(reader.sent == 1)
            reader.stream?.isPaused = false
            rig.wait("a key frame") { reader.stream?.statistics.keyFrames == 2 }
            let other = try rig.read()
            rig.wait("another joins") { other.sent > 0 }
            reader.stream?.isPaused = true
            rig.publish(TestPicture(64, 64, luma: 200))
            rig.wait("the other goes on") { other.sent > 1 }
            let keyFrames = reader.stream?.statistics.keyFrames ?? 0
            reader.stream?.isPaused = false
            rig.wait("a key frame") { (reader.stream?.statistics.keyFrames ?? 0) > keyFrames && reader.isCurrent }
            reader.close()
            let recording = Recording(reader.bytes)
            #expect(recording.complaints == "")
            #expect(abs(Int(recording.frames.last?.first ?? 0) - 200) < 8)
        }

        @Test func manyRequestsMakeFewKeyFrames() throws {
            let rig = try Rig()
            let reader = try rig.read()
            rig.publish(.text(320, 240))
            rig.wait("a picture") { reader.sent > 0 }
            let begin = Instant.now
            for _ in 0..<50 {
                for _ in 0..<20 { reader.stream?.requestKeyFrame() }
                rig.idle(.milliseconds(5))
            }
            let atMost = 2 + (Instant.now - begin).nanoseconds / 500_000_000
            rig.wait("an answer") { (reader.stream?.statistics.keyFrames ?? 0) > 1 }
            #expect((reader.stream?.statistics.keyFrames ?? 0) <= atMost)
            reader.close()
            #expect(Recording(reader.bytes).complaints == "")
        }

        @Test func rateChangesReachARunningStream() throws {
            let rig = try Rig(StreamRates(maxSize: nil, frameRate: 0, bitrate: 8_000_000))
            let reader = try rig.read()
            let fixed = try rig.read(StreamOptions(maxSize: PixelSize(width: 320, height: 180), bitrate: 1_000_000))
            var line = 0
            func bytes(_ count: Int) -> UInt64 {
                let before = reader.stream?.statistics.bytes ?? 0
                for _ in 0..<count {
                    let sent = reader.sent
                    line += 3
                    rig.publish(.text(640, 360, first: line))
                    rig.wait("a packet") { reader.sent > sent }
                    rig.idle(.milliseconds(50))
                }
                return (reader.stream?.statistics.bytes ?? 0) - before
            }
            _ = bytes(8)
            let much = bytes(12)
            rig.track.rates.bitrate = 300_000
            _ = bytes(8)
            let little = bytes(12)
            #expect(little * 2 < much)
            rig.track.rates.maxSize = PixelSize(width: 64, height: 64)
            let late = try rig.read()
            rig.wait("a new stream has the new size") { late.stream?.size != nil }
            #expect(late.stream?.size == PixelSize(width: 64, height: 36))
            #expect(reader.stream?.size == PixelSize(width: 640, height: 360))
            #expect(fixed.stream?.size == PixelSize(width: 320, height: 180))
        }

        @Test func aSizeThatIsNotFixedYetFollowsTheTrack() throws {
            let rig = try Rig()
            let reader = try rig.read()
            rig.track.rates.maxSize = PixelSize(width: 64, height: 64)
            rig.publish(TestPicture(128, 64))
            rig.wait("a picture") { reader.stream?.size != nil }
            #expect(reader.stream?.size == PixelSize(width: 64, height: 32))
        }

        @Test func endsAtAnyMomentComeInTime() throws {
            let rig = try Rig()
            let early = try rig.read()
            early.stream?.finish()
            early.stream?.finish()
            rig.wait("before the first picture: no byte") { early.isAtEnd && early.events == [.ended(.finished)] }
            #expect(early.bytes.isEmpty)
            early.stream?.finish()
            var generator = Generator(state: 3)
            for round in 0..<20 {
                let reader = try rig.read(reads: round % 3 != 0)
                rig.publish(.text(640, 360, first: round))
                rig.idle(.microseconds(Int64(generator.next() % 12_000)))
                reader.stream?.finish()
                if round % 2 == 0 { reader.stream?.requestKeyFrame() }
                rig.wait("the end") { reader.events.last == .ended(.finished) }
            }
            rig.wait("no encoder left") { threads(named: "enc-").isEmpty }
        }

        @Test func shutdownDoesNotWaitForReaders() throws {
            for round in 0..<8 {
                let rig = try Rig()
                let readers = try (0..<3).map {
                    try rig.read(StreamOptions(format: $0 == 2 ? .y4m : .webm, frameRate: UInt32($0 * 10)), reads: false)
                }
                rig.publish(.text(640, 360, first: round))
                rig.idle(.milliseconds(Int64(3 * round)))
                let begin = Instant.now
                rig.streams.shutdown()
                rig.streams.shutdown()
                #expect(Instant.now - begin < .seconds(5))
                #expect(throws: StreamsError.closed) { _ = try rig.track.subscribe { _ in } }
                #expect(readers.allSatisfy { $0.stream?.hasEnded == false })
            }
            #expect(threads(named: "enc-").isEmpty && threads(named: "writer").isEmpty)
        }

        @Test func aClosedTrackTakesNobody() throws {
            let rig = try Rig()
            let reader = try rig.read()
            rig.publish(TestPicture(64, 64))
            rig.wait("a picture") { reader.sent > 0 }
            var isDone = false
            rig.track.close { isDone = true }
            #expect(throws: StreamsError.closed) { _ = try rig.track.subscribe { _ in } }
            rig.wait("the end") { isDone && reader.isAtEnd }
            #expect(rig.track.readers.isEmpty)
        }

        @Test func comingAndGoingLeavesNothingBehind() throws {
            let rig = try Rig()
            rig.publish(.text(160, 120))
            var number: UInt32 = 0
            func round() throws {
                // None finds an encoder of the round before.
                let options = StreamOptions(bitrate: 1_000_000 + number)
                let readers = try [options, options, StreamOptions(format: .y4m, bitrate: number)].map { try rig.read($0) }
                rig.wait("pictures") { readers.allSatisfy { $0.sent > 0 } }
                readers[0].stream?.finish()
                readers[1].close()
                readers[2].close()
                rig.wait("all ended") { rig.track.readers.isEmpty }
                readers[0].close()
                number += 1
            }
            for _ in 0..<3 { try round() }
            rig.wait("no encoder left") { threads(named: "enc-").isEmpty }
            let (descriptors, tasks) = (openDescriptorCount(), taskIDs().count)
            for _ in 0..<35 { try round() }
            rig.wait("no encoder left") { threads(named: "enc-").isEmpty }
            // Other tests of this process run beside this one: the margin is theirs.
            rig.wait("as many descriptors as before") { openDescriptorCount() < descriptors + 30 }
            rig.wait("as many threads as before") { taskIDs().count < tasks + 30 }
            #expect(rig.pool.statistics.readers == 0)
        }

        @Test func aHundredReadersShareOneEncoder() throws {
            let rig = try Rig()
            let readers = try (0..<100).map { _ in try rig.read() }
            rig.publish(.text(320, 240))
            rig.wait("all begin") { readers.allSatisfy { $0.sent > 0 } }
            #expect(threads(named: "enc-").count == 1)
            var isDone = false
            rig.track.close { isDone = true }
            rig.wait("all end") { isDone && readers.allSatisfy { $0.isAtEnd } }
            #expect(Recording(readers[99].bytes).complaints == "")
            #expect(readers.allSatisfy { $0.bytes == readers[0].bytes } || readers.allSatisfy { $0.stream?.statistics.keyFrames != 0 })
        }
    }
}
