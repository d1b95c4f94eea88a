// SPDX-License-Identifier: MIT
import CLinux
import Frames
import Glibc
import Loop
import Testing

@testable import Streams

extension LiveTests {
    /// Pictures in shared memory.
    @Suite struct FrameStreamTests {
        private func grey(_ luma: UInt8) -> TestPicture { TestPicture(160, 120, luma: luma) }

        @Test(arguments: [(1, 1), (2, 2), (33, 31), (161, 121), (640, 360), (2_000, 3)])
        func picturesArriveSampleBySample(_ width: Int, _ height: Int) throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            var picture = TestPicture(width, height, luma: 50, blue: 90, red: 160)
            var lastTime: UInt64 = 0
            for index in 0..<6 {
                picture.luma[(index * 7_919) % picture.luma.count] &+= 90
                picture.blue[(index * 104_729) % picture.blue.count] &+= 40
                rig.publish(picture)
                let frame = try #require(reader.next())
                #expect(frame.picture == picture)
                #expect((frame.flags, frame.pool, frame.sequence) == (0, 1, UInt64(index + 1)))
                #expect(frame.isWhole || index > 0)
                #expect(frame.time > lastTime)
                lastTime = frame.time
                reader.release(frame)
                rig.wait("it is released") { reader.statistics.queuedBytes == 0 }
            }
            // The picture may be here before the word of it.
            rig.wait("the stream is known to have begun") { reader.stream?.size != nil }
            #expect(reader.stream?.size == PixelSize(width: width, height: height))
            #expect(reader.statistics.sent == 6 && reader.statistics.keyFrames >= 1)
            #expect(reader.events == [.started])
        }

        @Test func damageCoversEveryChangeAndLittleElse() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            var generator = Generator(state: 11)
            var picture = TestPicture.text(641, 361)
            rig.publish(picture)
            var before = try #require(reader.next())
            for round in 0..<40 {
                for _ in 0..<(1 + round % 5) {
                    let (x, y) = (Int(generator.next() % 630), Int(generator.next() % 350))
                    picture.fill(x: x, y: y, width: 9, height: 7, luma: UInt8(20 + generator.next() % 200))
                }
                picture.red[Int(generator.next() % UInt64(picture.red.count))] &+= 8
                rig.publish(picture)
                let frame = try #require(reader.next())
                #expect(frame.picture == picture)
                let differs = picture.luma.indices.filter { frame.picture.luma[$0] != before.picture.luma[$0] }
                #expect(differs.allSatisfy { frame.covers($0 % 641, $0 / 641) })
                let red = picture.red.indices.filter { frame.picture.red[$0] != before.picture.red[$0] }
                #expect(red.allSatisfy { frame.covers($0 % 321 * 2, $0 / 321 * 2) })
                let area = frame.damage.reduce(0) { $0 + Int($1[2] * $1[3]) }
                #expect(area < (2 + round % 5) * 40 * 32, "round \(round): \(frame.damage)")
                // Now and then one is kept for a while, so that slots with older pictures are used.
                if round % 3 == 0 { reader.release(before) }
                before = frame
                if round % 3 != 2 { reader.release(frame) }
            }
        }

        @Test func aReaderThatReleasesNothingGetsOnlyTheSlots() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            let good = try rig.read(StreamOptions(format: .y4m))
            var held: [ReceivedFrame] = []
            for index in 0..<SharedPool.slotCount {
                rig.publish(grey(UInt8(20 + index)))
                held.append(try #require(reader.next()))
            }
            #expect(Set(held.map(\.slot)).count == SharedPool.slotCount)
            for index in 4..<10 {
                let sent = good.sent
                rig.publish(grey(UInt8(20 + index)))
                rig.wait("others get each") { good.sent > sent }
            }
            var extra: ReceivedFrame?
            #expect(!reader.poll(&extra))
            #expect(reader.statistics.queuedBytes == 4 * UInt64(I420Planes.byteCount(PixelSize(width: 160, height: 120))))
            reader.release(held[1])
            let newest = try #require(reader.next("the newest, after it has released one"))
            #expect(newest.picture.luma.first == 29 && newest.slot == held[1].slot && newest.pool == 1)
            // Five were missed.
            #expect(newest.sequence == 10 && reader.statistics.coalesced == 5 && reader.statistics.sent == 5)
            #expect(newest.isWhole)
        }

        @Test func changesThatAReaderMissedAreInItsNextDamage() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            var picture = TestPicture(320, 160, luma: 100)
            var held: [ReceivedFrame] = []
            for index in 0..<SharedPool.slotCount {
                picture.fill(x: 0, y: 0, width: 16, height: 16, luma: UInt8(20 + index))
                rig.publish(picture)
                held.append(try #require(reader.next()))
            }
            picture.fill(x: 160, y: 0, width: 16, height: 16, luma: 200)
            rig.publish(picture)
            picture.fill(x: 0, y: 128, width: 16, height: 16, luma: 200)
            rig.publish(picture)
            rig.idle(.milliseconds(50))
            reader.release(held[2])
            let frame = try #require(reader.next())
            #expect(frame.picture == picture)
            #expect(frame.damage.sorted { $0[0] < $1[0] } == [[0, 128, 16, 16], [160, 0, 16, 16]])
        }

        @Test func slotsAreTakenBackOnceFromAReaderThatKeepsThem() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            func fill(_ lumas: Range<Int>) throws -> [ReceivedFrame] {
                try lumas.map { index in
                    rig.publish(grey(UInt8(index)))
                    return try #require(reader.next())
                }
            }
            let first = try fill(20..<24)
            let before = try #require(reader.pools.first).bytes
            rig.idle(.milliseconds(2_500))
            #expect(reader.pools.count == 1, "nothing is taken back for a picture that has not changed")
            rig.publish(grey(100))
            let next = try #require(reader.next("a picture in new memory"))
            #expect(next.pool == 2 && next.isWhole && next.picture.luma.first == 100)
            #expect(reader.pools[1].isTakenBack && !reader.pools[0].isTakenBack)
            // What it held may be released late.
            reader.release(first[0])
            let second = [next] + (try fill(30..<33))
            #expect(reader.pools.count == 2)
            #expect(reader.pools[0].bytes == before)
            var extra: ReceivedFrame?
            rig.publish(grey(150))
            rig.idle(.milliseconds(2_500))
            #expect(!reader.poll(&extra), "it has shown no sign of life since")
            reader.release(second[1])
            let last = try #require(reader.next("it has"))
            #expect(last.picture.luma.first == 150 && last.pool == 2)
        }

        @Test func readersCanNeitherWriteNorResizeTheMemory() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            rig.publish(grey(50))
            let frame = try #require(reader.next())
            let pool = try #require(reader.pools.first)
            let raw = pool.descriptor.raw
            #expect(mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_SHARED, raw, 0) == MAP_FAILED && errno == EPERM)
            #expect(mprotect(UnsafeMutableRawPointer(mutating: pool.base), 4_096, PROT_READ | PROT_WRITE) != 0 && errno == EACCES)
            var byte: UInt8 = 1
            #expect(pwrite(raw, &byte, 1, 0) < 0 && errno == EPERM)
            #expect(ftruncate(raw, 0) != 0 && errno == EPERM)
            #expect(ftruncate(raw, pool.byteCount * 2) != 0 && errno == EPERM)
            #expect(clinux_add_seals(raw, 8) < 0 && errno == EPERM)
            let again = open("/proc/self/fd/\(raw)", O_RDWR | O_CLOEXEC)
            #expect(pwrite(again, &byte, 1, 0) < 0)
            Glibc.close(again)
            reader.release(frame)
            rig.publish(grey(51))
            #expect(reader.next("the agent writes on")?.picture == grey(51))
        }

        @Test func laterPicturesAreNotInMemoryOfBefore() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            let hold = try FrameReader(rig, StreamOptions(format: .frames, placeholder: .hold))
            func next(_ luma: UInt8) throws {
                rig.publish(grey(luma))
                for one in [reader, hold] {
                    let frame = try #require(one.next())
                    #expect(frame.picture == grey(luma) && frame.flags == 0)
                    one.release(frame)
                }
            }
            try next(50)
            try next(60)
            let kept = [reader, hold].map { $0.pools[0].bytes }
            rig.track.showsPlaceholder = true
            let placeholder = try #require(reader.next("the placeholder"))
            #expect(placeholder.flags == 1 && placeholder.pool == 2 && placeholder.isWhole)
            reader.release(placeholder)
            rig.publish(grey(70))
            rig.idle(.milliseconds(200))
            var none: ReceivedFrame?
            #expect(!reader.poll(&none) && !hold.poll(&none))
            rig.track.showsPlaceholder = false
            for one in [reader, hold] {
                let frame = try #require(one.next("the newest picture"))
                #expect(frame.picture == grey(70) && frame.pool == 2)
                one.release(frame)
            }
            try next(80)
            // Paused.
            hold.stream?.isPaused = true
            rig.publish(grey(90))
            if let frame = reader.next() { reader.release(frame) }
            rig.idle(.milliseconds(100))
            #expect(!hold.poll(&none))
            hold.stream?.isPaused = false
            let resumed = try #require(hold.next("the picture that is shown"))
            #expect(resumed.picture == grey(90) && resumed.pool == 3 && resumed.isWhole)
            // The end, and what others see then.
            hold.stream?.finish()
            rig.wait("the end") { hold.events.last == .ended(.finished) }
            let rest = hold.pools.map(\.bytes)
            rig.publish(grey(100))
            #expect(reader.next()?.picture == grey(100))
            #expect([reader, hold].map { $0.pools[0].bytes } == kept)
            #expect(hold.pools.map(\.bytes) == rest)
            #expect(!rest.joined().contains(100))
        }

        @Test func theWholePictureComesAgainOnRequest() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            let other = try FrameReader(rig)
            rig.publish(grey(50))
            for one in [reader, other] { one.release(try #require(one.next())) }
            for _ in 0..<3 {
                reader.stream?.requestKeyFrame()
                let frame = try #require(reader.next("the same again"))
                #expect(frame.picture == grey(50) && frame.isWhole && frame.pool == 1)
                reader.release(frame)
            }
            var none: ReceivedFrame?
            #expect(!other.poll(&none))
            #expect(reader.statistics.keyFrames == 4 && other.statistics.keyFrames == 1)
            // Others, who waited all the time, get the next one.
            rig.publish(grey(60))
            for one in [reader, other] { #expect(one.next()?.picture == grey(60)) }
        }

        @Test func whoComesLateGetsAStillPictureAtOnceWhateverTheRate() throws {
            let rig = try Rig(StreamRates(maxSize: nil, frameRate: 1, bitrate: 0))
            let first = try FrameReader(rig)
            rig.publish(grey(50))
            #expect(first.next() != nil)
            let late = try FrameReader(rig)
            let frame = try #require(late.next())
            #expect(frame.picture == grey(50) && frame.isWhole)
            #expect(threads(named: "enc-").count == 1)
        }

        @Test(arguments: [StreamOptions.Format.frames, .y4m])
        func whoLeavesTakesNothingFromTheOthers(_ format: StreamOptions.Format) throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            let others = try (0..<4).map { _ in try rig.read(StreamOptions(format: format), reads: false) }
            rig.publish(grey(50))
            reader.release(try #require(reader.next()))
            for (index, other) in others.enumerated() {
                rig.wait("it begins") { other.events.first == .started }
                if index % 2 == 0 { other.stream?.finish() } else { other.close() }
                rig.wait("it ends") { other.stream?.hasEnded == true }
                rig.publish(grey(UInt8(60 + index)))
                let frame = try #require(reader.next("a picture as if nothing were"))
                #expect(frame.picture == grey(UInt8(60 + index)))
                reader.release(frame)
            }
        }

        @Test func theLastPictureComesOnceMoreBeforeTheEnd() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            let full = try FrameReader(rig)
            for index in 0..<SharedPool.slotCount {
                rig.publish(grey(UInt8(50 + index)))
                let frame = try #require(reader.next())
                reader.release(frame)
                #expect(full.next()?.picture == frame.picture)
            }
            rig.wait("it is released") { reader.statistics.queuedBytes == 0 }
            let begin = Instant.now
            for one in [reader, full] { one.stream?.finish() }
            let last = try #require(reader.next())
            #expect(last.picture == grey(53) && last.damage.isEmpty && last.time >= UInt64(begin.nanoseconds))
            reader.release(last)
            for one in [reader, full] {
                #expect(one.next("the end of the socket") == nil)
                rig.wait("it is told") { one.isAtEnd && one.events.last == .ended(.finished) }
                // Nobody is harmed by what it says afterwards.
                #expect(one.release(last) < 0 && errno == EPIPE)
            }
        }

        @Test func nothingComesBeforeTheFirstRealPicture() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            let early = try FrameReader(rig)
            rig.publish(grey(50))
            early.release(try #require(early.next()))
            reader.release(try #require(reader.next()))
            rig.track.showsPlaceholder = true
            let late = try FrameReader(rig)
            #expect(early.next()?.flags == 1)
            rig.idle(.milliseconds(100))
            early.close()
            reader.close()
            rig.idle(.milliseconds(200))
            var none: ReceivedFrame?
            #expect(!late.poll(&none) && late.pools.isEmpty && late.stream?.size == nil)
            rig.track.showsPlaceholder = false
            let first = try #require(late.next("its first picture"))
            #expect(first.flags == 0 && first.sequence == 1 && first.pool == 1 && first.picture == grey(50))
        }

        @Test func sizeLimitAndLetterboxAreThoseOfAnyStream() throws {
            let rig = try Rig()
            let reader = try FrameReader(rig, StreamOptions(format: .frames, maxSize: PixelSize(width: 80, height: 80)))
            rig.publish(TestPicture(160, 120, luma: 200))
            let first = try #require(reader.next())
            #expect(first.picture == TestPicture(80, 60, luma: 200))
            reader.release(first)
            rig.publish(TestPicture(320, 120, luma: 200))
            let wide = try #require(reader.next())
            #expect(wide.picture.size == PixelSize(width: 80, height: 60))
            #expect(wide.picture.luma[80 * 30 + 40] == 200 && wide.picture.luma[80 * 5 + 40] == 16)
        }

        @Test func rawReadersOfBothFormatsAreLimitedTogether() throws {
            let rig = try Rig()
            let frames = try (0..<4).map { _ in try FrameReader(rig) }
            let others = try (0..<4).map { _ in try rig.read(StreamOptions(format: .y4m)) }
            #expect(throws: StreamsError.rawReaderLimit(8)) { _ = try FrameReader(rig) }
            #expect(throws: StreamsError.rawReaderLimit(8)) { _ = try rig.read(StreamOptions(format: .y4m)) }
            frames[0].close()
            rig.wait("one leaves") { rig.track.readers.count == 7 }
            _ = try FrameReader(rig)
            #expect(others.count == 4)
        }

        @Test func whoSaysWhatMakesNoSenseIsNoReaderAnyMore() throws {
            let rig = try Rig()
            let good = try FrameReader(rig)
            rig.publish(grey(50))
            good.release(try #require(good.next()))
            let nonsense: [[UInt32]] = [
                [], [3], [3, 1], [3, 1, 0, 0], [4, 1, 0], [0, 0, 0], [3, 2, 0], [3, 0, 0], [3, 1, 1], [3, 1, 4], [3, 1, .max],
                [UInt32](repeating: 3, count: 30_000),
            ]
            for (index, words) in nonsense.enumerated() {
                let bad = try FrameReader(rig)
                _ = try #require(bad.next())
                bad.say(words)
                rig.wait("\(words.prefix(4)) ends it") { bad.events.last == .ended(.readerGone) }
                rig.publish(grey(UInt8(60 + index)))
                let frame = try #require(good.next("the others go on"))
                good.release(frame)
            }
            // Twice the same.
            let twice = try FrameReader(rig)
            let frame = try #require(twice.next())
            twice.release(frame)
            rig.wait("that is no sin") { twice.statistics.queuedBytes == 0 }
            twice.release(frame)
            rig.wait("this is") { twice.stream?.hasEnded == true }
        }

        @Test func whoClosesOneDirectionIsGone() throws {
            let rig = try Rig()
            for direction in [SHUT_RD, SHUT_WR, SHUT_RDWR] {
                let reader = try FrameReader(rig)
                rig.publish(grey(UInt8(50 + Int(direction))))
                _ = try #require(reader.next())
                shutdown(reader.raw, Int32(direction))
                // That nothing is read is found out by writing.
                rig.publish(grey(UInt8(90 + Int(direction))))
                rig.wait("it ends") { reader.events.last == .ended(.readerGone) }
            }
        }

        @Test func whoSpeaksBeforeItWasSpokenToOrFloodsIsGone() throws {
            let rig = try Rig()
            let early = try FrameReader(rig)
            early.say([3, 1, 0])
            rig.wait("there is nothing to release") { early.events == [.ended(.readerGone)] }
            let flood = try FrameReader(rig)
            while flood.say([UInt32](repeating: 0, count: 500)) > 0 {}
            rig.wait("it ends") { flood.events.last == .ended(.readerGone) }
        }

        @Test func thePointerComesBesideThePictures() throws {
            let rig = try Rig()
            try rig.pool.prepareCursor()
            let arrow = (0..<64).map { UInt8($0) }
            let bitmap = try CursorBitmap()
            func show(_ x: Int, _ y: Int, _ pixels: [UInt8]? = nil) {
                let size = PixelSize(width: 4, height: 4)
                if let pixels {
                    let isTaken = pixels.withUnsafeBytes { bitmap.load($0, size: size, strideBytes: 16, format: .bgra) }
                    #expect(isTaken)
                }
                rig.pool.showCursor(x: x, y: y, hotspotX: 1, hotspotY: 2, bitmap, isNew: pixels != nil)
                rig.pool.wakeReaders()
            }
            func hears(_ reader: FrameReader, _ count: Int, _ what: Comment) -> ReceivedCursor? {
                var none: ReceivedFrame?
                rig.wait(what) { reader.poll(&none) || reader.cursors.count == count }
                #expect(none == nil, "a place is no picture")
                return reader.cursors.last
            }
            let reader = try FrameReader(rig)
            let half = try FrameReader(rig, StreamOptions(format: .frames, maxSize: PixelSize(width: 80, height: 80)))
            let drawn = try rig.read(StreamOptions(format: .y4m))
            rig.publish(grey(100))
            var held: [ReceivedFrame] = []
            for one in [reader, half] { held.append(try #require(one.next())) }
            #expect(reader.cursors.isEmpty)
            show(50, 40, arrow)
            let first = try #require(hears(reader, 1, "the pointer"))
            #expect(first.isVisible && first.words == [49, 38, 4, 4, 1, 2, 4, 4, 16, 0] && first.bitmap == arrow)
            #expect(hears(half, 1, "scaled")?.words == [24, 19, 2, 2, 1, 2, 4, 4, 16, 0])
            show(-1, 60)
            let moved = try #require(hears(reader, 2, "its move"))
            #expect(moved.words.prefix(4) == [-2, 58, 4, 4] && moved.descriptor == nil)
            // The memory of the bitmap is as closed as that of the pictures.
            let raw = try #require(first.descriptor).raw
            var byte: UInt8 = 9
            #expect(pwrite(raw, &byte, 1, 0) < 0 && ftruncate(raw, 0) != 0)
            rig.wait("others have it drawn") { drawn.sent > 1 }
            // Who comes late hears of it behind its first picture, and so does who has no slot left.
            let late = try FrameReader(rig)
            #expect(late.next()?.picture == grey(100))
            #expect(hears(late, 1, "where it is")?.bitmap == arrow)
            for index in 1..<SharedPool.slotCount {
                rig.publish(grey(UInt8(100 + index)))
                held.append(try #require(reader.next()))
            }
            rig.publish(grey(120))
            show(10, 10, arrow.reversed())
            #expect(hears(reader, 3, "a new shape, without a slot")?.bitmap == arrow.reversed())
            // Muted, it is hidden; and it is not shown before there is a picture again.
            rig.track.showsPlaceholder = true
            #expect(hears(reader, 4, "that it is hidden")?.isVisible == false)
            show(20, 20)
            rig.idle(.milliseconds(200))
            #expect(reader.cursors.count == 4)
            rig.track.showsPlaceholder = false
            reader.release(held[0])
            #expect(reader.next("a picture in the new pool")?.flags != nil)
            rig.wait("and the pointer") {
                var next: ReceivedFrame?
                if reader.poll(&next), let next { reader.release(next) }
                return reader.cursors.last?.words.prefix(2) == [19, 18]
            }
            rig.pool.hideCursor()
            rig.pool.wakeReaders()
            rig.wait("it goes") {
                var next: ReceivedFrame?
                _ = reader.poll(&next)
                return reader.cursors.last?.isVisible == false
            }
        }

        @Test func aReaderThatDoesNotReadHearsTheNewestPlaceOnly() throws {
            let rig = try Rig()
            try rig.pool.prepareCursor()
            let reader = try FrameReader(rig)
            rig.publish(grey(100))
            _ = try #require(reader.next())
            let pixels = [UInt8](repeating: 255, count: 64)
            let bitmap = try CursorBitmap()
            _ = pixels.withUnsafeBytes { bitmap.load($0, size: PixelSize(width: 4, height: 4), strideBytes: 16, format: .bgra) }
            for index in 0..<3_000 {
                rig.pool.showCursor(x: index % 150, y: index % 100 + 4, hotspotX: 0, hotspotY: 0, bitmap, isNew: index == 0)
                rig.pool.wakeReaders()
                if index % 10 == 0 { rig.idle(.microseconds(300)) }
            }
            rig.idle(.milliseconds(300))
            var none: ReceivedFrame?
            rig.wait("the newest place") { reader.poll(&none) || reader.cursors.last?.words.prefix(2) == [149, 103] }
            #expect(reader.stream?.hasEnded == false && reader.cursors.count < 3_000)
        }

        @Test(arguments: [true, false])
        func aReaderThatDoesNotReadIsSentNoMoreMemory(_ pauses: Bool) throws {
            let rig = try Rig()
            let reader = try FrameReader(rig)
            rig.publish(grey(20))
            rig.wait("the first picture is sent") { reader.statistics.sent == 1 }
            // It may say what it likes.
            reader.say([3, 1, 0])
            rig.wait("it is released") { reader.statistics.queuedBytes == 0 }
            let other = try FrameReader(rig)
            other.release(try #require(other.next()))
            for index in 0..<30 {
                for isHidden in [true, false] {
                    if pauses { reader.stream?.isPaused = isHidden } else { rig.track.showsPlaceholder = isHidden }
                    rig.publish(grey(UInt8(30 + 2 * index + (isHidden ? 1 : 0))))
                    let frame = try #require(other.next("who reads gets each"))
                    other.release(frame)
                }
            }
            var last: ReceivedFrame?
            // What lies in the socket when it reads at last is of one pool.
            #expect(reader.poll(&last) && last?.pool == 1)
            while reader.poll(&last) {}
            #expect(reader.pools.count <= 2)
            rig.wait("having read, it has the newest") { last?.picture == grey(88) || reader.poll(&last) && last?.picture == grey(88) }
            #expect(last?.pool == 2 && last?.isWhole == true && reader.pools.count == 2)
        }

        @Test func oneShapeOfThePointerIsUnreadAtMost() throws {
            let rig = try Rig()
            try rig.pool.prepareCursor()
            let reader = try FrameReader(rig)
            let other = try FrameReader(rig)
            rig.publish(grey(100))
            for one in [reader, other] { _ = try #require(one.next()) }
            let bitmap = try CursorBitmap()
            for index in 0..<40 {
                let pixels = [UInt8](repeating: UInt8(index), count: 64)
                _ = pixels.withUnsafeBytes { bitmap.load($0, size: PixelSize(width: 4, height: 4), strideBytes: 16, format: .bgra) }
                rig.pool.showCursor(x: index, y: 50, hotspotX: 0, hotspotY: 0, bitmap, isNew: true)
                rig.pool.wakeReaders()
                var none: ReceivedFrame?
                rig.wait("who reads gets each") { other.poll(&none) || other.cursors.last?.bitmap.first == UInt8(index) }
            }
            var none: ReceivedFrame?
            rig.wait("having read, it has the newest") { reader.poll(&none) || reader.cursors.last?.bitmap.first == 39 }
            #expect(reader.cursors.count(where: { $0.descriptor != nil }) == 2 && reader.cursors.last?.words.first == 39)
            // Pictures go on meanwhile.
            rig.publish(grey(101))
            #expect(reader.next()?.picture == grey(101))
        }

        @Test func aReaderThatIsAlwaysBehindHearsOfEachShapeInTime() throws {
            let rig = try Rig()
            try rig.pool.prepareCursor()
            let reader = try FrameReader(rig)
            rig.publish(grey(20))
            rig.wait("a picture") { reader.statistics.sent == 1 }
            let bitmap = try CursorBitmap()
            func show(_ index: UInt8) {
                let pixels = [UInt8](repeating: index, count: 64)
                _ = pixels.withUnsafeBytes { bitmap.load($0, size: PixelSize(width: 4, height: 4), strideBytes: 16, format: .bgra) }
                rig.pool.showCursor(x: 50, y: 50, hotspotX: 0, hotspotY: 0, bitmap, isNew: true)
                rig.pool.wakeReaders()
                rig.idle(.milliseconds(100))
            }
            show(1)
            show(2)
            for index in 2...60 where reader.cursors.last?.bitmap.first != 2 {
                rig.publish(grey(UInt8(20 + index)))
                // There are three unread, but for the beginning: the socket is never empty.
                rig.wait("a picture") { reader.statistics.sent == index }
                if index > 3 { reader.release(try #require(reader.next())) }
            }
            #expect(reader.cursors.map(\.bitmap.first) == [1, 2] && reader.statistics.sent < 60)
        }

        @Test func comingAndGoingLeavesNoMemoryAndNoDescriptor() throws {
            let rig = try Rig()
            rig.publish(grey(50))
            func round(_ index: Int) throws {
                let readers = try (0..<4).map { _ in try FrameReader(rig) }
                for reader in readers { _ = try #require(reader.next()) }
                readers[0].stream?.finish()
                readers[1].close()
                readers[2].say([1, 2, 3])
                readers[3].stream?.isPaused = true
                rig.idle(.milliseconds(1))
                readers[3].close()
                rig.wait("all ended") { rig.track.readers.isEmpty }
            }
            for index in 0..<3 { try round(index) }
            let descriptors = openDescriptorCount()
            for index in 0..<30 { try round(index) }
            // Other tests of this process run beside this one: the margin is theirs.
            rig.wait("as many descriptors as before") { openDescriptorCount() < descriptors + 30 }
            rig.wait("no pool is mapped any more") { !mappings().contains { $0.contains("vitrine-frames") } }
        }

        private func mappings() -> [Substring] {
            var text: [UInt8] = []
            let descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
            defer { Glibc.close(descriptor) }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(descriptor, &chunk, chunk.count)
                guard count > 0 else { break }
                text += chunk[..<count]
            }
            return String(decoding: text, as: UTF8.self).split(separator: "\n")
        }
    }
}
