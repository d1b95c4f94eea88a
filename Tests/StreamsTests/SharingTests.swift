// SPDX-License-Identifier: MIT
import Frames
import Loop
import Testing

@testable import Streams

extension LiveTests {
    /// What readers cost each other, and what coming back costs.
    @Suite struct SharingTests {
        /// Closes the reading end, and waits until that is noticed.
        private func leave(_ reader: TestReader, _ rig: Rig) {
            reader.close()
            rig.wait("the reader is gone") { reader.events.last == .ended(.readerGone) }
        }

        @Test(arguments: StreamOptions.compressed + [StreamOptions(format: .y4m)])
        func aReaderThatComesBackFindsItsEncoder(_ options: StreamOptions) throws {
            let rig = try Rig()
            rig.publish(.text(320, 240))
            var reader = try rig.read(options)
            rig.wait("a picture") { reader.sent > 0 }
            let encoder = rig.track.groups.map(\.id)
            for _ in 0..<5 {
                leave(reader, rig)
                let left = Instant.now
                #expect(!rig.track.encoderIsRunning && rig.track.readers.isEmpty)
                reader = try rig.read(options)
                if Instant.now - left < Streams.grace { #expect(rig.track.groups.map(\.id) == encoder) }
                // The screen stands still.
                rig.wait("a picture") { reader.sent > 0 && reader.isCurrent }
            }
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            #expect(recording.packets.first?.isKeyFrame == true)
        }

        /// Equal by chance at present, they are not when the track changes.
        @Test func whoAsksForANumberSharesWithNobodyWhoFollows() throws {
            let rig = try Rig()
            let follower = try rig.read()
            let fixed = try rig.read(StreamOptions(frameRate: rig.track.rates.frameRate))
            let equal = try rig.read(StreamOptions(frameRate: rig.track.rates.frameRate))
            #expect(rig.track.groups.count == 2 && fixed.stream?.group === equal.stream?.group)
            var rates = rig.track.rates
            rates.frameRate = 7
            rig.track.rates = rates
            #expect(follower.stream?.group?.options.rates.frameRate == 7)
            #expect(fixed.stream?.group?.options.rates.frameRate != 7)
            let late = try rig.read()
            #expect(late.stream?.group === follower.stream?.group)
        }

        /// An encoder takes its first picture on its own thread, while the track's limit changes: what it was fitted into is what is said of it,
        /// and who comes then gets the size of the new limit.
        @Test func aLimitThatChangesWithTheFirstPicture() throws {
            let source = TestPicture.text(1280, 720)
            let (old, new) = (PixelSize(width: 640, height: 360), PixelSize(width: 320, height: 180))
            for turn in 0..<60 {
                let rig = try Rig(StreamRates(maxSize: old, frameRate: 0, bitrate: 4_000_000))
                let reader = try rig.read()
                rig.publish(source)
                let moment = Instant.now + .microseconds(turn * 100)
                while Instant.now < moment {}
                rig.track.rates = StreamRates(maxSize: new, frameRate: 0, bitrate: 4_000_000)
                let late = try rig.read()
                rig.wait("both begin") { reader.stream?.size != nil && late.stream?.size != nil }
                let group = try #require(reader.stream?.group)
                #expect(group.size == source.size.fitted(into: group.options.maxSize), "turn \(turn)")
                #expect(late.stream?.size == new, "turn \(turn)")
            }
        }

        /// Programs in a sandbox have tracks that leave half of all encodings to others.
        @Test func halfIsLeftToOthers() throws {
            let rig = try Rig()
            let tracks = (0..<3).map { _ in rig.streams.openTrack(pool: FramePool(), rates: rig.track.rates, precedence: .last) }
            var readers: [FileDescriptor] = []
            for number in 0..<16 {
                let options = StreamOptions(bitrate: 1_000_000 + UInt32(number))
                readers.append(try tracks[number / 8].subscribe(options) { _ in }.reading)
            }
            #expect(throws: StreamsError.encodingLimit(16)) { _ = try tracks[2].subscribe { _ in } }
            readers.append(try rig.track.subscribe { _ in }.reading)
            #expect(rig.track.groups.count == 1 && readers.count == 17)
        }

        /// The one track that everybody may read has its encodings, whatever other tracks take.
        @Test func aReserveIsKept() throws {
            let rig = try Rig()
            let tracks = (0..<5).map { _ in rig.streams.openTrack(pool: FramePool(), rates: rig.track.rates) }
            var readers: [FileDescriptor] = []
            for number in 0..<32 {
                let options = StreamOptions(bitrate: 1_000_000 + UInt32(number))
                readers.append(try tracks[number / 8].subscribe(options) { _ in }.reading)
            }
            #expect(throws: StreamsError.encodingLimit(32)) { _ = try tracks[4].subscribe { _ in } }
            let reserved = rig.streams.openTrack(pool: FramePool(), rates: rig.track.rates, precedence: .first)
            readers.append(try reserved.subscribe { _ in }.reading)
            #expect(reserved.groups.count == 1 && readers.count == 33)
        }

        @Test func anEncoderWithoutReadersGoesAfterTheGrace() throws {
            let rig = try Rig()
            rig.publish(.text(320, 240))
            let reader = try rig.read()
            rig.wait("a picture") { reader.sent > 0 }
            let begin = Instant.now
            leave(reader, rig)
            let delivered = rig.pool.statistics.delivered
            rig.publish(.text(320, 240, first: 5))
            rig.wait("the encoder goes") { threads(named: "enc-").isEmpty }
            #expect(Instant.now - begin >= Streams.grace)
            #expect(rig.track.groups.isEmpty && rig.pool.statistics.readers == 0)
            // It took no picture meanwhile.
            #expect(rig.pool.statistics.delivered == delivered)
        }

        @Test func encodersThatRestMakeRoom() throws {
            let rig = try Rig()
            for number in 0..<20 {
                let reader = try rig.read(StreamOptions(bitrate: 1_000_000 + UInt32(number)))
                leave(reader, rig)
            }
            #expect(rig.track.groups.count <= TrackStreams.greatestEncodingCount)
            let readers = try (0..<8).map { try rig.read(StreamOptions(bitrate: 2_000_000 + UInt32($0))) }
            #expect(throws: StreamsError.encodingLimit(8)) { try rig.read(StreamOptions(bitrate: 3_000_000)) }
            // The oldest goes first.
            for reader in readers { leave(reader, rig) }
            let ids = rig.track.groups.map(\.id)
            let begin = Instant.now
            _ = try rig.read(StreamOptions(bitrate: 3_000_000))
            if Instant.now - begin < .seconds(1), ids.count == 8 { #expect(rig.track.groups.map(\.id).dropLast() == ids.dropFirst()) }
        }

        @Test func encodersThatRestMakeRoomForOtherTracks() throws {
            let rig = try Rig()
            let tracks = (0..<5).map { _ in rig.streams.openTrack(pool: FramePool(), rates: rig.track.rates) }
            var readers: [ReaderStream] = []
            for track in tracks.dropLast() {
                for number in 0..<8 {
                    readers.append(try track.subscribe(StreamOptions(bitrate: 1_000_000 + UInt32(number))) { _ in }.stream)
                }
            }
            #expect(throws: StreamsError.encodingLimit(32)) { try tracks[4].subscribe { _ in } }
            for reader in readers { reader.finish() }
            rig.wait("all end") { readers.allSatisfy(\.hasEnded) }
            for number in 0..<8 { _ = try tracks[4].subscribe(StreamOptions(bitrate: 1_000_000 + UInt32(number))) { _ in } }
            for track in tracks { track.close() }
        }

        @Test func nothingRestsInATrackThatIsClosedOrWhoseBroadcastHasEnded() throws {
            for closes in [true, false] {
                let rig = try Rig()
                rig.publish(.text(160, 120))
                let (gone, ends) = (try rig.read(StreamOptions(bitrate: 500_000)), try rig.read(StreamOptions(placeholder: .end)))
                rig.wait("pictures") { gone.sent > 0 && ends.sent > 0 }
                leave(gone, rig)
                var isDone = false
                if closes { rig.track.close { isDone = true } } else { rig.track.finishBroadcast { isDone = true } }
                rig.wait("the end") { isDone }
                #expect(rig.track.groups.isEmpty)
            }
        }

        @Test(arguments: StreamOptions.compressed) func whoJoinsOrLeavesDisturbsNobody(_ options: StreamOptions) throws {
            let rig = try Rig()
            let steady = try rig.read(options)
            var number = 0
            /// The picture says which one it is.
            func publish() {
                number += 1
                let before = steady.sent
                rig.publish(TestPicture(160, 120, luma: UInt8(20 + 5 * (number % 40))))
                rig.wait("each picture arrives") { steady.sent > before }
            }
            publish()
            let begin = Instant.now
            var passing: [TestReader] = []
            for index in 0..<30 {
                passing.append(try rig.read(options))
                publish()
                if index % 3 == 0 { passing.removeFirst().close() }
                if index % 3 == 1 { passing.removeFirst().stream?.finish() }
            }
            rig.wait("all have a picture") { passing.allSatisfy { $0.sent > 0 || $0.stream?.hasEnded == true } }
            let seconds = Double((Instant.now - begin).nanoseconds) / 1e9
            steady.stream?.finish()
            rig.wait("the end") { steady.isAtEnd }
            #expect(steady.stream?.statistics.coalesced == 0)
            let recording = Recording(steady.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            #expect(recording.timesGrow)
            // One at first, one for the first that joined, then one for all of each half second.
            #expect(Double(recording.packets.count(where: \.isKeyFrame)) <= 3 + seconds * 2)
            let seen = recording.frames.map { (Int($0[0]) - 20 + 2) / 5 }
            var runs: [Int] = []
            for value in seen where value != runs.last { runs.append(value) }
            #expect(runs == (1...number).map { $0 % 40 })
        }
    }
}
