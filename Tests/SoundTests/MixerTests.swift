// SPDX-License-Identifier: MIT
import Loop
import Testing

@testable import Sound

/// A mixer, and what has come out of it so far, laid out on the common clock.
private struct Bench {
    static let epoch = Instant(nanoseconds: 5_000_000_000)
    var mixer: Mixer
    var output: [Float] = []
    var times: [Instant] = []

    init(inputs: Int) { mixer = Mixer(SampleClock(epoch: Bench.epoch), inputCount: inputs) }

    /// - Parameter position: of the first sample, samples since the epoch.
    mutating func add(_ samples: [Float], at position: Double, to input: Int = 0) {
        let time = Bench.epoch + .nanoseconds(Int64(position * 1e9 / 48_000))
        samples.withUnsafeBufferPointer { mixer.add($0, at: time, to: input) }
        while let frame = mixer.next() {
            times.append(frame.time)
            output += frame.samples
        }
    }
}

@Suite struct MixerTests {
    @Test func oneInputKeepsItsSamplesAndTheirPlaces() {
        var bench = Bench(inputs: 1)
        let samples = tone(left: 440, right: 1_000, count: 48_000)
        for start in stride(from: 0, to: 48_000, by: 1_024) {
            let end = min(start + 1_024, 48_000)
            bench.add(Array(samples[2 * start..<2 * end]), at: Double(start))
        }
        #expect(bench.times.count == 50)
        #expect(bench.times.first == Bench.epoch)
        #expect(bench.times.last == Bench.epoch + .milliseconds(980))
        // Two samples later: each is made of the four around it.
        #expect(Array(bench.output[4..<90_000]) == Array(samples[0..<89_996]))
    }

    @Test func twoSignalsAtFullScaleDoNotClip() {
        var bench = Bench(inputs: 2)
        for block in 0..<20 {
            let samples = tone(left: 500, right: 500, level: 1, count: 960, from: block * 960)
            bench.add(samples, at: Double(block * 960), to: 0)
            bench.add(samples, at: Double(block * 960), to: 1)
        }
        let settled = Array(bench.output.dropFirst(1_920))
        #expect(settled.count > 30_000)
        #expect(settled.allSatisfy { abs($0) <= 1 })
        // A clipped tone would have more than itself.
        #expect(abs(level(of: 500, in: Array(settled.prefix(2 * 9_600)), channel: 0) - 1) < 0.01)
        #expect(level(of: 1_500, in: Array(settled.prefix(2 * 9_600)), channel: 0) < 0.001)
    }

    @Test func eachOfTwoInputsHasHalfOfItsLevel() {
        var bench = Bench(inputs: 2)
        for block in 0..<20 {
            bench.add(tone(left: 500, right: 0, count: 960, from: block * 960), at: Double(block * 960), to: 0)
            bench.add(tone(left: 0, right: 2_000, count: 960, from: block * 960), at: Double(block * 960), to: 1)
        }
        let settled = Array(bench.output.dropFirst(1_920).prefix(2 * 9_600))
        #expect(abs(level(of: 500, in: settled, channel: 0) - 0.125) < 0.002)
        #expect(abs(level(of: 2_000, in: settled, channel: 1) - 0.125) < 0.002)
        #expect(level(of: 2_000, in: settled, channel: 0) < 0.001)
        #expect(level(of: 500, in: settled, channel: 1) < 0.001)
    }

    @Test func anInputThatSendsNothingIsNotWaitedFor() {
        var bench = Bench(inputs: 2)
        for block in 0..<50 { bench.add(tone(left: 500, right: 500, count: 960, from: block * 960), at: Double(block * 960), to: 1) }
        #expect(bench.times.count >= 49)
    }

    @Test func anInputThatIsLateByALittleIsWaitedFor() {
        var bench = Bench(inputs: 2)
        for block in 0..<20 {
            bench.add(tone(left: 500, right: 500, count: 960, from: block * 960), at: Double(block * 960), to: 0)
            guard block >= 5 else { continue }
            bench.add(tone(left: 2_000, right: 2_000, count: 960, from: (block - 5) * 960), at: Double((block - 5) * 960), to: 1)
        }
        #expect(bench.times.count == 15)
        #expect(abs(level(of: 2_000, in: Array(bench.output.suffix(2 * 4_800)), channel: 0) - 0.125) < 0.002)
    }

    @Test(arguments: [0.7, 30, 4_000.0])
    func aPauseMakesNoFramesBeyondASecondAndLeavesTheTimesTrue(seconds: Double) throws {
        var bench = Bench(inputs: 1)
        bench.add(tone(left: 500, right: 500, count: 1_920), at: 0)
        let later = 1_920 + (seconds * 48_000).rounded()
        bench.output = []
        bench.times = []
        bench.add(tone(left: 500, right: 500, count: 4_800), at: later)
        #expect(bench.times.count < 60)
        let first = try #require(bench.output.firstIndex { $0 != 0 })
        let frame = bench.times[first / 1_920]
        let begin = (frame - Bench.epoch).nanoseconds * 48 / 1_000_000 + Int64(first % 1_920 / 2)
        #expect(abs(Double(begin) - later) <= 4)
    }

    /// An hour of that drift would be more than a second.
    @Test(arguments: [-450.0, 300.0])
    func aDeviceWhoseClockDriftsStaysInPlaceWithoutAJump(partsPerMillion: Double) {
        var bench = Bench(inputs: 1)
        let pace = 1 - partsPerMillion / 1e6
        let clickDistance = 24_000
        var position = 0
        while position < 60 * 48_000 {
            var block = [Float](repeating: 0, count: 2 * 1_000)
            for index in 0..<1_000 where (position + index) % clickDistance == clickDistance / 2 { block[2 * index] = 1 }
            // The time that a callback is told jitters by half a millisecond.
            bench.add(block, at: Double(position) * pace + Double((position / 1_000 * 7) % 49) - 24)
            position += 1_000
        }
        let clicks = stride(from: 0, to: bench.output.count, by: 2).filter { bench.output[$0] > 0.4 }.map { $0 / 2 }
        var places: [Int] = []
        for click in clicks where places.last.map({ click - $0 > 100 }) ?? true { places.append(click) }
        #expect(places.count >= 118)
        for (number, place) in places.enumerated() {
            // 2 ms.
            #expect(abs(Double(place) - Double(number * clickDistance + clickDistance / 2) * pace) < 96, "click \(number)")
        }
        for (one, next) in zip(places, places.dropFirst()) {
            // No step of more than the steering can make.
            #expect(abs(Double(next - one) - Double(clickDistance)) <= 24_000 / 2_000 + 3)
        }
    }

    @Test func samplesThatWereLostArePutWhereTheyBelong() throws {
        var bench = Bench(inputs: 1)
        bench.add(tone(left: 500, right: 500, count: 9_600), at: 0)
        var click = [Float](repeating: 0, count: 2 * 4_800)
        click[2 * 2_000] = 1
        bench.add(click, at: 9_600 + 2_400)
        let place = try #require(bench.output.indices.dropFirst(2 * 9_600).first { bench.output[$0] > 0.5 })
        let frame = (bench.times[place / 1_920] - Bench.epoch).nanoseconds * 48 / 1_000_000
        #expect(abs(Int(frame) + place % 1_920 / 2 - (9_600 + 2_400 + 2_000)) <= 2)
    }

    @Test func aTimeThatCannotBeIsTakenForThePresent() {
        let now: Int64 = 1_000_000_000_000
        #expect(SoundPort.credible(now - 21_000_000, now: now) == now - 21_000_000)
        for time in [0, -1, .min, .max, now + 3_000_000_000] { #expect(SoundPort.credible(time, now: now) == now) }
    }

    @Test func aDelayIsBelievedUpToASecond() {
        #expect(SoundPort.crediblePart(of: 480, 1, 48_000) == 10_000_000)
        #expect(SoundPort.crediblePart(of: 19_200_000_000, 1, 48_000) == 1_000_000_000)
        #expect(SoundPort.crediblePart(of: .max, .max, 1) == 1_000_000_000)
        for delay: Int64 in [0, -1, .min] { #expect(SoundPort.crediblePart(of: delay, 1, 48_000) == 0) }
        #expect(SoundPort.crediblePart(of: 480, 1, 0) == 0)
    }
}
