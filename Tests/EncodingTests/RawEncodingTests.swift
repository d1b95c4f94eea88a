// SPDX-License-Identifier: MIT
import Frames
import Glibc
import Loop
import Synchronization
import Testing

@testable import Encoding

/// A raw encoding, with its thread.
@Suite struct RawEncodingTests {
    /// What an encoding has sent, by the first sample of each picture.
    private final class Sent: Sendable {
        struct State {
            var placeholders = 0
            var last: UInt8 = 0
            /// Repetitions of what was not sent before.
            var wrong: [UInt8] = []
            var hasStopped = false
        }
        let state = Mutex(State())

        func note(_ event: EncoderEvent) {
            state.withLock { state in
                switch event {
                case .packet(let packet) where packet.isPlaceholder: state.placeholders += 1
                case .packet(let packet):
                    let luma = packet.bytes.first ?? 0
                    if !packet.isRepetition { state.last = luma } else if luma != state.last { state.wrong.append(luma) }
                case .stopped: state.hasStopped = true
                default: break
                }
            }
        }

        func wait(_ what: Comment, _ condition: (State) -> Bool) {
            let deadline = Instant.now + .seconds(30)
            while !state.withLock({ condition($0) }) && Instant.now < deadline { usleep(500) }
            #expect(state.withLock { condition($0) }, what)
        }
    }

    /// The placeholder is asked for while a picture is drawn: nobody is sent that picture, not even who would take one that was shown before.
    @Test func aPictureThatCameTooLateIsNotSentAsARepetition() throws {
        let pool = FramePool()
        let sent = Sent()
        let rates = EncodingRates(frameRate: 0, bitrate: 1_000_000)
        let encoder = try Encoder.start(
            number: 1, pool: pool, options: EncodingOptions(codec: .raw, maxSize: nil, rates: rates, holdsOnPlaceholder: false),
            showsPlaceholder: false
        ) { sent.note($0) }
        defer { encoder.join() }
        func publish(_ luma: UInt8) {
            let size = PixelSize(width: 1_920, height: 1_080)
            pool.write(size: size, time: .now, arrival: .now) { planes, _ in
                memset(planes.luma, Int32(luma), planes.lumaStride * size.height)
                return true
            }
            pool.wakeReaders()
        }
        encoder.setSuspended(false)
        encoder.requestPicture(again: true)
        publish(20)
        sent.wait("the first picture") { $0.last == 20 }
        for round in 0..<60 {
            encoder.setPlaceholder(true)
            encoder.requestPicture(again: true)
            sent.wait("the placeholder") { $0.placeholders > round }
            publish(UInt8(30 + round))
            encoder.requestPicture(again: true)
            encoder.setPlaceholder(false)
            // Another moment of the drawing each time.
            usleep(useconds_t(round * 150))
        }
        encoder.stop()
        sent.wait("the end") { $0.hasStopped }
        #expect(sent.state.withLock { $0.wrong } == [])
    }
}
