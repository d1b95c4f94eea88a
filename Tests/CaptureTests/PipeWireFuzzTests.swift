// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Glibc
import Loop
import TestSupport
import Testing

@testable import Capture

extension AllCaptureTests {
    /// A source that says anything of its buffers, at any moment. Seeded: the same each time; `make fuzz` runs more rounds with another seed.
    @Suite struct PipeWireFuzz {
        struct Dice: RandomNumberGenerator {
            private var numbers: SeededGenerator

            init(seed: UInt64) { numbers = SeededGenerator(seed: seed) }

            mutating func next() -> UInt64 { numbers.next() }

            mutating func isOne(in sides: Int) -> Bool { Int.random(in: 0..<sides, using: &self) == 0 }

            /// A number of the kind that breaks things.
            mutating func word() -> UInt32 {
                switch Int.random(in: 0..<6, using: &self) {
                case 0: 0
                case 1: .max
                case 2: 1 << 31
                case 3: UInt32.random(in: 0..<64, using: &self)
                case 4: UInt32.random(in: 0..<20_000, using: &self)
                default: UInt32.random(in: 0...(.max), using: &self)
                }
            }

            mutating func rect() -> PixelRect {
                PixelRect(
                    x: Int(Int32(bitPattern: word())), y: Int(Int32(bitPattern: word())), width: Int(word()), height: Int(word()))
            }

            mutating func frame() -> ProducerFrame {
                var frame = ProducerFrame(UInt8.random(in: 0...255, using: &self))
                frame.isCorruptHeader = isOne(in: 8)
                frame.isCorruptChunk = isOne(in: 8)
                frame.isCursorOnly = isOne(in: 8)
                if isOne(in: 3) { frame.pts = Int64(bitPattern: next()) }
                if isOne(in: 3) { frame.sequence = next() }
                if isOne(in: 3) { frame.damage = (0..<Int.random(in: 0...4, using: &self)).map { _ in rect() } }
                if isOne(in: 3) { frame.crop = rect() }
                if isOne(in: 3) { frame.transform = isOne(in: 2) ? UInt32.random(in: 0..<8, using: &self) : word() }
                if isOne(in: 4) { frame.stride = Int32(bitPattern: word()) }
                if isOne(in: 4) { frame.chunkOffset = word() }
                if isOne(in: 4) { frame.chunkSize = word() }
                if isOne(in: 4) { frame.chunkFlags = word() }
                if isOne(in: 2) { frame.cursor = cursor() }
                return frame
            }

            /// `spa_meta_cursor` and a `spa_meta_bitmap` behind it, of numbers that need not fit; or bytes.
            mutating func cursor() -> [UInt8] {
                if isOne(in: 3) { return (0..<Int.random(in: 0...96, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) } }
                var words = (0..<11).map { _ in word() }
                if isOne(in: 2) { (words[0], words[6]) = (1, UInt32(MemoryLayout<spa_meta_cursor>.size)) }
                return words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
            }
        }

        static func number(_ name: String, or usual: Int) -> Int { getenv(name).flatMap { Int(String(cString: $0)) } ?? usual }

        // Faults: B14 B15 B17 B23 B33
        @Test func aSourceThatSaysAnything() throws {
            let seed = PipeWireFuzz.number("VITRINE_FUZZ_SEED", or: 1)
            let rounds = PipeWireFuzz.number("VITRINE_FUZZ_ROUNDS", or: 250)
            var dice = Dice(seed: UInt64(bitPattern: Int64(seed)))
            let courses = max(1, rounds / 20)
            var received: UInt64 = 0
            for course in 0..<courses {
                let stage = try Stage()
                var options = ProducerOptions()
                options.memory = [.memfd, .sealedMemfd, .pointer].randomElement(using: &dice) ?? .memfd
                options.stridePadding = [0, 4, 36].randomElement(using: &dice) ?? 0
                options.buffers = [2, 4, 8].randomElement(using: &dice) ?? 4
                options.cursorBytes = [nil, 40, 64 * 64 * 4 + 64].randomElement(using: &dice) ?? nil
                let producer = try stage.makeProducer(options)
                try stage.connect(producer)
                for _ in 0..<60 {
                    producer.send(dice.frame())
                    if dice.isOne(in: 15) {
                        producer.tell(
                            .resize(PixelSize(width: Int.random(in: 1...90, using: &dice), height: Int.random(in: 1...90, using: &dice))))
                    }
                    if dice.isOne(in: 20) { stage.capture.setView(1, CaptureView(crop: dice.rect(), masks: [dice.rect(), dice.rect()])) }
                    if dice.isOne(in: 20) { producer.tell(.scribble) }
                    if dice.isOne(in: 30) { producer.tell(.setActive(dice.isOne(in: 2))) }
                    _ = stage.loop.run(until: { false }, timeout: .milliseconds(3))
                }
                producer.tell(.setActive(true))
                received += stage.pool.statistics.received
                // Honest again, it is shown as it is.
                stage.capture.setView(1, CaptureView())
                producer.tell(.resize(PixelSize(width: 64, height: 48)))
                try stage.show(producer, "an honest picture after course \(course) of seed \(seed)", ProducerFrame(123)) { $0.shows(123) }
                #expect(!stage.events.contains { if case .failed = $0 { true } else { false } })
                // Cut short at last, it is survived too.
                if options.memory == .memfd {
                    producer.tell(.truncate(0))
                    producer.send(dice.frame())
                    producer.send(ProducerFrame(1))
                }
                try stage.close()
            }
            // Some courses stop the source at once.
            #expect(received > 10 * courses)
        }
    }
}
