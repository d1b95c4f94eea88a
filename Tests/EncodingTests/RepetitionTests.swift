// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop
import Synchronization
import Testing

@testable import Encoding

/// The last picture once more, for readers that leave, and those who stay.
@Suite struct RepetitionTests {
    private struct Sent: Sendable {
        var pictures: [Packet] = []
        var farewells: [Packet] = []
        var answered: UInt64 = 0
        var hasStopped = false
    }

    /// However many leave, and however few pictures a second there are: the next picture has the time at which it was taken.
    @Test(arguments: [Codec.video(.vp8), .video(.vp9), .raw]) func whoLeavesDoesNotSetTheOthersClockForward(_ codec: Codec) throws {
        let pool = FramePool()
        let sent = Mutex(Sent())
        let rates = EncodingRates(frameRate: 1, bitrate: 1_000_000)
        let encoder = try Encoder.start(
            number: 1, pool: pool, options: EncodingOptions(codec: codec, maxSize: nil, rates: rates, holdsOnPlaceholder: false),
            showsPlaceholder: false
        ) { event in
            sent.withLock { sent in
                switch event {
                case .packet(let packet): if packet.isFarewell { sent.farewells.append(packet) } else { sent.pictures.append(packet) }
                case .repeated(let request): sent.answered = request
                case .stopped: sent.hasStopped = true
                default: break
                }
            }
        }
        defer { encoder.join() }
        func wait(_ what: Comment, _ condition: (Sent) -> Bool) {
            let deadline = Instant.now + .seconds(30)
            while !sent.withLock({ condition($0) }) && Instant.now < deadline { usleep(500) }
            let holds = sent.withLock { condition($0) }
            #expect(holds, what)
        }
        func publish(_ luma: Int32) {
            let size = PixelSize(width: 64, height: 64)
            pool.write(size: size, time: .now, arrival: .now) { planes, _ in
                memset(planes.luma, luma, planes.lumaStride * size.height)
                return true
            }
            pool.wakeReaders()
            encoder.requestPicture(again: false)
        }
        encoder.setSuspended(false)
        publish(40)
        wait("a picture") { $0.pictures.count == 1 }
        for request in 1...UInt64(20) {
            encoder.repeatLastPicture(request, isKeyFrame: false)
            wait("repetition \(request)") { $0.answered == request }
        }
        publish(200)
        wait("another picture") { $0.pictures.count >= 2 }
        let now = Instant.now
        encoder.stop()
        wait("the end") { $0.hasStopped }
        let last = try #require(sent.withLock { $0.pictures.last })
        #expect(sent.withLock { $0.farewells.count } == 20)
        #expect(last.time <= now)
    }
}
