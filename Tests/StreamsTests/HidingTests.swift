// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Glibc
import Loop
import Sound
import Testing

@testable import Streams

extension LiveTests {
    /// What waits for a slow reader when it is hidden.
    @Suite struct HidingTests {
        private static let kinds = StreamOptions.compressed + [StreamOptions(format: .y4m)]

        /// Noise, so that packets are large; before anything is hidden it is bright.
        private func noise(_ seed: Int, luma: Int = 200) -> TestPicture {
            var picture = TestPicture(640, 360)
            var generator = Generator(state: UInt64(seed))
            for index in picture.luma.indices { picture.luma[index] = UInt8(luma - 40 + Int(generator.next() % 80)) }
            return picture
        }

        private func isBright(_ frame: [UInt8]) -> Bool { frame.reduce(0) { $0 + Int($1) } / max(frame.count, 1) > 140 }

        /// A reader that does not read, with pictures that wait for it: of raw ones, the rest of one.
        private func stuckReader(_ rig: Rig, _ options: StreamOptions) throws -> TestReader {
            let good = try rig.read(options)
            let stuck = try rig.read(options, reads: false)
            rig.publish(noise(0))
            rig.wait("both begin") { good.sent > 0 && stuck.events == [.started] }
            let wanted: UInt64 = options.format == .y4m ? 1 : 1 << 20
            for round in 1..<300 where (stuck.stream?.statistics.queuedBytes ?? 0) < wanted {
                let before = good.sent
                rig.publish(noise(round))
                rig.wait("the good reader gets each") { good.sent > before }
            }
            #expect((stuck.stream?.statistics.queuedBytes ?? 0) >= wanted)
            return stuck
        }

        private func rig() throws -> Rig { try Rig(StreamRates(maxSize: nil, frameRate: 0, bitrate: 100_000_000)) }

        /// Reads until it has more than what it had begun to get.
        private func readPresent(_ reader: TestReader, _ rig: Rig, after before: Int) {
            reader.startReading()
            rig.wait("a picture") { reader.sent > before && reader.isCurrent }
            // It may have been the one that it had begun to get: the next is not.
            let sent = reader.sent
            rig.publish(noise(2_000, luma: 80))
            rig.wait("another") { reader.sent > sent && reader.isCurrent }
        }

        /// Reads all, to the end.
        private func end(_ reader: TestReader, _ rig: Rig) -> Recording {
            reader.stream?.finish()
            rig.wait("the end") { reader.isAtEnd }
            let recording = Recording(reader.bytes, suffix: reader.stream?.options.suffix ?? "")
            #expect(recording.complaints == "")
            #expect(recording.timesGrow)
            #expect(recording.frames.count == recording.packets.count)
            #expect(recording.packets.count == reader.sent)
            return recording
        }

        /// It gets what lies in its pipe, and the picture that it has begun to get, if any.
        private func checkNothingBrightFollows(_ recording: Recording, _ begun: Int) {
            let first = recording.frames.firstIndex { !isBright($0) } ?? recording.frames.count
            #expect(first <= begun, "\(first) pictures of before, where \(begun) were begun")
            #expect(first < recording.frames.count && !recording.frames[first...].contains(where: isBright))
            #expect(recording.packets[first].isKeyFrame)
        }

        @Test(arguments: HidingTests.kinds) func whatWaitsWhenItIsMutedIsNotSent(_ options: StreamOptions) throws {
            let rig = try rig()
            let reader = try stuckReader(rig, options)
            let before = try #require(reader.stream?.statistics)
            rig.track.showsPlaceholder = true
            reader.startReading()
            rig.wait("the placeholder") { reader.isCurrent && reader.sent > before.sent }
            let recording = end(reader, rig)
            checkNothingBrightFollows(recording, Int(before.sent) + 1)
            guard options.format != .y4m else { return }
            let after = try #require(reader.stream?.statistics)
            #expect(after.coalesced >= before.coalesced + 2)
        }

        @Test(arguments: HidingTests.kinds) func itGoesOnWhenItIsUnmuted(_ options: StreamOptions) throws {
            let rig = try rig()
            let reader = try stuckReader(rig, options)
            let before = reader.sent
            rig.track.showsPlaceholder = true
            rig.publish(noise(1_000, luma: 80))
            rig.track.showsPlaceholder = false
            readPresent(reader, rig, after: before)
            checkNothingBrightFollows(end(reader, rig), before + 1)
        }

        @Test(arguments: HidingTests.kinds) func whatWaitsWhenItIsWithdrawnIsNotSent(_ options: StreamOptions) throws {
            let rig = try rig()
            let reader = try stuckReader(rig, options)
            let before = reader.sent
            // As a mask does: another picture, and those before it are withdrawn.
            rig.publish(noise(1_000, luma: 80))
            rig.pool.withdraw(before: rig.pool.newestSequence)
            readPresent(reader, rig, after: before)
            checkNothingBrightFollows(end(reader, rig), before + 1)
        }

        @Test(arguments: StreamOptions.compressed) func whatWaitsGoesAtOnceWhereNothingTakesItsPlace(_ kind: StreamOptions) throws {
            let rig = try rig()
            var options = kind
            options.placeholder = .hold
            let reader = try stuckReader(rig, options)
            let (begun, greatest) = (reader.sent + 1, reader.stream?.statistics.queuedBytes ?? 0)
            rig.track.showsPlaceholder = true
            // At most the rest of one picture.
            rig.wait("the queue is gone") { (reader.stream?.statistics.queuedBytes ?? .max) < greatest / 2 }
            rig.publish(noise(1_000, luma: 80))
            rig.track.showsPlaceholder = false
            readPresent(reader, rig, after: begun - 1)
            checkNothingBrightFollows(end(reader, rig), begun)
        }

        @Test(arguments: StreamOptions.compressed) func whatWaitsWhenItIsPausedIsNotSent(_ options: StreamOptions) throws {
            let rig = try rig()
            let reader = try stuckReader(rig, options)
            let begun = reader.sent + 1
            reader.stream?.isPaused = true
            rig.wait("the queue is gone") { (reader.stream?.statistics.queuedBytes ?? .max) < 1 << 20 }
            rig.publish(noise(1_000, luma: 80))
            reader.startReading()
            rig.wait("all there is") { reader.isCurrent }
            #expect(reader.sent <= begun)
            let sent = reader.sent
            reader.stream?.isPaused = false
            rig.wait("the newest picture") { reader.sent > sent && reader.isCurrent }
            checkNothingBrightFollows(end(reader, rig), begun)
        }

        @Test func theOthersGetThePlaceholderOnce() throws {
            let rig = try rig()
            let good = try rig.read()
            let stuck = try stuckReader(rig, StreamOptions())
            rig.wait("the good one has all") { good.isCurrent }
            let before = good.sent
            rig.track.showsPlaceholder = true
            stuck.startReading()
            rig.wait("the placeholder") { good.sent > before && stuck.isCurrent }
            rig.idle(.milliseconds(1_000))
            #expect(good.sent == before + 1)
            #expect(good.stream?.statistics.coalesced == 0)
        }

        private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
            bytes.indices.contains { bytes[$0...].starts(with: part) }
        }

        @Test func soundThatWaitsGoesWithThePictures() throws {
            let rig = try rig()
            let gate = SoundGate()
            gate.open(for: 1)
            rig.track.hasSound = true
            let stuck = try stuckReader(rig, StreamOptions())
            let inlet = try #require(rig.track.makeSoundInlet(gate))
            let queued = stuck.stream?.statistics.queuedBytes ?? 0
            inlet(SoundPacket(bytes: [UInt8](repeating: 0xE3, count: 100), time: .now, period: 1))
            rig.wait("it waits") { (stuck.stream?.statistics.queuedBytes ?? 0) >= queued + 100 }
            gate.close()
            rig.track.showsPlaceholder = true
            rig.publish(noise(1_000, luma: 80))
            rig.track.showsPlaceholder = false
            gate.open(for: 2)
            let later = [UInt8](repeating: 0xE4, count: 100)
            inlet(SoundPacket(bytes: later, time: .now, period: 2))
            stuck.startReading()
            rig.wait("the sound of afterwards") { stuck.isCurrent && contains(stuck.bytes, later) }
            #expect(!contains(stuck.bytes, [UInt8](repeating: 0xE3, count: 100)))
            stuck.stream?.finish()
            rig.wait("the end") { stuck.isAtEnd }
            #expect(Recording(stuck.bytes).complaints == "")
        }
    }
}

@Suite struct PacketQueueTests {
    private let size = PixelSize(width: 64, height: 64)
    private let pool = FramePool()

    private func picture(_ milliseconds: Int64, _ byte: UInt8, isKeyFrame: Bool, count: Int = 10_000) -> PacketQueue.Entry {
        let time = Instant(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000)
        return .picture(
            Delivery(Packet(bytes: [UInt8](repeating: byte, count: count), time: time, isKeyFrame: isKeyFrame, size: size), from: pool))
    }

    private func sound(_ milliseconds: Int64) -> PacketQueue.Entry {
        let time = Instant(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000)
        return .sound(SoundPacket(bytes: [9, 9, 9], time: time, period: 1))
    }

    /// What lies in a pipe.
    private func takeAll(_ pipe: FileDescriptor) -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        let count = read(pipe.raw, &chunk, chunk.count)
        return Array(chunk.prefix(max(0, count)))
    }

    /// What comes after a drop is packed as if the rest had never been: no cluster is missing, of which only the beginning was made.
    @Test func whatIsDroppedIsNotInTheStream() throws {
        let pipe = try FileDescriptor.pipe()
        try pipe.writing.setNonBlocking()
        try pipe.reading.setNonBlocking()
        var queue = PacketQueue()
        var muxer: any Muxer = WebMMuxer(.vp8)
        muxer.carrySound(true)
        var sent = 0
        func write() {
            var outcome = WriteOutcome.drained
            while outcome == .drained && !queue.isEmpty {
                outcome = queue.writeFirst(to: pipe.writing.raw, &muxer) { _ in sent += 1 }.outcome
            }
        }
        queue.append(picture(0, 1, isKeyFrame: true))
        write()
        #expect(sent == 1 && queue.isEmpty && queue.byteCount == 0)
        // Filled to the last byte, so that nothing is written of a key frame that would begin a cluster.
        let filler = [UInt8](repeating: 0, count: 4_096)
        while Glibc.write(pipe.writing.raw, filler, filler.count) > 0 {}
        while Glibc.write(pipe.writing.raw, filler, 1) > 0 {}
        queue.append(picture(100, 2, isKeyFrame: true))
        queue.append(sound(110))
        queue.append(picture(130, 3, isKeyFrame: false))
        write()
        #expect(sent == 1 && queue.byteCount == 20_003)
        #expect(queue.drop() == 2)
        #expect(queue.isEmpty && queue.byteCount == 0 && queue.drop() == 0)
        _ = takeAll(pipe.reading)
        // In the cluster that there is.
        queue.append(sound(120))
        write()
        #expect(takeAll(pipe.reading) == [0xA3, 0x87, 0x82, 0, 120, 0x80, 9, 9, 9])
        queue.append(picture(200, 4, isKeyFrame: true))
        write()
        let cluster: [UInt8] = [0x1F, 0x43, 0xB6, 0x75, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xE7, 0x81, 200]
        let begins = takeAll(pipe.reading).starts(with: cluster)
        #expect(begins && sent == 2)
    }

    @Test func whatIsBegunIsFinished() throws {
        let pipe = try FileDescriptor.pipe()
        try pipe.writing.setNonBlocking()
        try pipe.reading.setNonBlocking()
        var queue = PacketQueue()
        var muxer: any Muxer = IVFMuxer(.vp8)
        queue.append(picture(0, 1, isKeyFrame: true, count: 2_000_000))
        queue.append(picture(30, 2, isKeyFrame: false))
        var sent = 0
        let (outcome, byteCount) = queue.writeFirst(to: pipe.writing.raw, &muxer) { _ in sent += 1 }
        #expect(outcome == .full && byteCount > 0 && sent == 0)
        #expect(queue.drop() == 1)
        #expect(!queue.isEmpty && queue.byteCount == 2_000_044 - byteCount)
        queue.append(picture(60, 3, isKeyFrame: true))
        var bytes: [UInt8] = []
        while !queue.isEmpty {
            bytes += takeAll(pipe.reading)
            _ = queue.writeFirst(to: pipe.writing.raw, &muxer) { _ in sent += 1 }
        }
        bytes += takeAll(pipe.reading)
        #expect(sent == 2 && queue.byteCount == 0)
        #expect(bytes.count == 32 + 12 + 2_000_000 + 12 + 10_000)
        let isLast = bytes[(2_000_044 + 12)...].allSatisfy { $0 == 3 }
        #expect(isLast)
    }
}
