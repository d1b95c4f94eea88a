// SPDX-License-Identifier: MIT
import Frames
import Loop
import Testing

@testable import Streams

extension LiveTests {
    /// What readers get while there is no real picture.
    @Suite struct PlaceholderTests {
        /// Bright pictures are the source's; the placeholder is dark.
        private let bright = TestPicture(160, 120, luma: 220)

        private func isDark(_ frame: [UInt8]) -> Bool { (frame.first ?? 255) < 60 }

        private func end(_ reader: TestReader, _ rig: Rig) -> Recording {
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            return Recording(reader.bytes, suffix: reader.stream?.options.suffix ?? "")
        }

        @Test func nothingComesBeforeTheFirstRealPicture() throws {
            let rig = try Rig()
            rig.track.showsPlaceholder = true
            let reader = try rig.read()
            rig.publish(bright)
            reader.stream?.requestKeyFrame()
            rig.idle(.milliseconds(300))
            #expect(reader.bytes.isEmpty && reader.events.isEmpty)
            rig.track.showsPlaceholder = false
            rig.wait("the picture that was there all along") { reader.sent > 0 }
            let recording = end(reader, rig)
            #expect(recording.complaints == "")
            #expect(!recording.frames.contains(where: isDark))
        }

        @Test(arguments: StreamOptions.compressed, [StreamOptions.Placeholder.picture, .end])
        func muteShowsThePlaceholderOnceAndUnmuteAKeyFrame(_ kind: StreamOptions, _ mode: StreamOptions.Placeholder) throws {
            let rig = try Rig()
            var options = kind
            options.placeholder = mode
            let reader = try rig.read(options)
            rig.publish(bright)
            rig.wait("a picture") { reader.sent == 1 }
            rig.track.showsPlaceholder = true
            rig.wait("the placeholder") { reader.sent == 2 }
            rig.publish(TestPicture(160, 120, luma: 150))
            rig.idle(.milliseconds(300))
            #expect(reader.sent == 2)
            rig.track.showsPlaceholder = false
            rig.wait("the newest picture") { reader.sent == 3 }
            let recording = end(reader, rig)
            #expect(recording.complaints == "")
            #expect(recording.timesGrow)
            #expect(recording.packets.prefix(3).map(\.isKeyFrame).contains(false) == false)
            #expect(recording.frames.prefix(3).map(isDark) == [false, true, false])
            #expect(abs(Int(recording.frames[2][0]) - 150) < 6)
        }

        /// Who ends while nothing is to be seen gets its last picture once more, and nobody else gets it.
        @Test(arguments: [StreamOptions(format: .y4m), StreamOptions(format: .frames)])
        func aFarewellIsForThoseWhoHaveThePicture(_ kind: StreamOptions) throws {
            let rig = try Rig()
            var options = kind
            options.placeholder = .hold
            let first = try rig.read(options)
            rig.publish(bright)
            rig.wait("a picture") { first.sent == 1 }
            rig.track.showsPlaceholder = true
            let second = try rig.read(options)
            first.stream?.finish()
            rig.wait("the end") { first.events.last == .ended(.finished) }
            rig.idle(.milliseconds(200))
            #expect(rig.track.groups.count == 1 && second.sent == 0 && second.events.isEmpty)
        }

        /// What was drawn of a picture that must not be seen any more is sent no more: not as a key frame, not to who joins, not at the end.
        @Test(arguments: [StreamOptions.Format.webm, .y4m]) func aWithdrawnPictureIsSentNoMore(_ format: StreamOptions.Format) throws {
            let rig = try Rig()
            let reader = try rig.read(StreamOptions(format: format))
            rig.publish(bright)
            rig.wait("a picture") { reader.sent == 1 }
            rig.pool.withdrawAll()
            // What was on its way already comes.
            rig.idle(.milliseconds(300))
            let sent = reader.sent
            reader.stream?.requestKeyFrame()
            let late = try rig.read(StreamOptions(format: format))
            let ending = try rig.read(StreamOptions(format: format))
            ending.stream?.finish()
            rig.wait("an end without a picture") { ending.isAtEnd }
            rig.idle(.milliseconds(300))
            #expect(reader.sent == sent && late.bytes.isEmpty && ending.bytes.isEmpty)
            rig.publish(TestPicture(160, 120, luma: 60))
            rig.wait("the next picture, for both") { reader.sent > sent && late.sent >= 1 }
            reader.stream?.finish()
            late.stream?.finish()
            rig.wait("the end") { reader.isAtEnd && late.isAtEnd }
            guard format == .webm else { return }
            let recordings = [Recording(reader.bytes), Recording(late.bytes)]
            #expect(recordings.map(\.complaints) == ["", ""])
            #expect(recordings[0].frames.map { $0[0] < 100 }.firstIndex(of: true) == sent)
            #expect(!recordings[1].frames.contains { $0[0] >= 100 })
        }

        @Test func holdSendsNothingAndGoesOnWithAKeyFrame() throws {
            let rig = try Rig()
            let reader = try rig.read(StreamOptions(placeholder: .hold))
            rig.publish(bright)
            rig.wait("a picture") { reader.sent == 1 }
            rig.track.showsPlaceholder = true
            rig.publish(TestPicture(160, 120, luma: 100))
            rig.idle(.milliseconds(300))
            #expect(reader.sent == 1)
            rig.track.showsPlaceholder = false
            rig.wait("the newest picture") { reader.sent == 2 }
            let recording = end(reader, rig)
            #expect(recording.complaints == "")
            #expect(recording.packets.prefix(2).map(\.isKeyFrame).contains(false) == false)
            #expect(!recording.frames.contains(where: isDark))
        }

        @Test func whoJoinsWhileMutedGetsNothingUntilUnmuted() throws {
            let rig = try Rig()
            let first = try rig.read()
            rig.publish(bright)
            rig.wait("a picture") { first.sent == 1 }
            rig.track.showsPlaceholder = true
            rig.wait("the placeholder") { first.sent == 2 }
            let late = try rig.read()
            rig.idle(.milliseconds(300))
            #expect(late.bytes.isEmpty)
            rig.track.showsPlaceholder = false
            rig.wait("a picture") { late.sent > 0 }
            #expect(!end(late, rig).frames.contains(where: isDark))
        }

        @Test(arguments: [StreamOptions(), StreamOptions(format: .ivf, codec: .vp9), StreamOptions(format: .y4m)])
        func noPictureFollowsAMute(_ options: StreamOptions) throws {
            let rig = try Rig()
            let reader = try rig.read(options)
            var generator = Generator(state: 5)
            for round in 0..<15 {
                let before = reader.sent
                rig.publish(TestPicture(640, 360, luma: 215))
                rig.track.showsPlaceholder = false
                rig.wait("a picture") { reader.sent > before }
                // Right in the middle of the next one.
                rig.publish(TestPicture(640, 360, luma: UInt8(230 - round % 2)))
                rig.idle(.microseconds(Int64(generator.next() % 6_000)))
                rig.track.showsPlaceholder = true
                rig.publish(TestPicture(640, 360, luma: 100))
                rig.idle(.milliseconds(20))
            }
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes, suffix: options.suffix)
            #expect(recording.complaints == "")
            // 100 was published while muted only.
            #expect(!recording.frames.contains { abs(Int($0[0]) - 100) < 20 })
            #expect(recording.frames.contains(where: isDark))
            #expect(isDark(recording.frames.last ?? []))
        }

        @Test func anEndedBroadcastIsNotShownAgain() throws {
            let rig = try Rig()
            let reader = try rig.read()
            let held = try rig.read(StreamOptions(placeholder: .hold))
            rig.publish(bright)
            rig.wait("a picture") { reader.sent == 1 && held.sent == 1 }
            rig.track.showsPlaceholder = true
            rig.pool.clear()
            rig.wait("the placeholder") { reader.sent == 2 }
            rig.track.showsPlaceholder = false
            rig.idle(.milliseconds(200))
            #expect(reader.sent == 2 && held.sent == 1)
            rig.publish(TestPicture(160, 120, luma: 150))
            rig.wait("the next broadcast's picture") { reader.sent == 3 && held.sent == 2 }
            for reader in [reader, held] {
                let recording = end(reader, rig)
                #expect(recording.complaints == "")
                #expect(abs(Int(recording.frames.last?.first ?? 0) - 150) < 6)
            }
        }

        @Test func endStreamsEndWithTheBroadcast() throws {
            let rig = try Rig()
            let ends = try rig.read(StreamOptions(placeholder: .end))
            let stuck = try rig.read(StreamOptions(placeholder: .end), reads: false)
            let stays = try rig.read()
            rig.publish(.text(1_280, 720))
            rig.wait("a picture") { ends.sent > 0 && stays.sent > 0 }
            var isDone = false
            let begin = Instant.now
            rig.track.finishBroadcast {
                isDone = true
                #expect(ends.events.last == .ended(.finished) && stuck.events.last == .ended(.finished))
            }
            #expect(!isDone)
            rig.track.showsPlaceholder = true
            rig.wait("completion") { isDone }
            #expect(Instant.now - begin < .seconds(10))
            rig.wait("end of file") { ends.isAtEnd }
            #expect(!stays.isAtEnd && stays.events == [.started])
            let recording = Recording(ends.bytes)
            #expect(recording.complaints == "")
            var again = false
            rig.track.finishBroadcast { again = true }
            rig.wait("nobody left to wait for") { again }
        }
    }
}
