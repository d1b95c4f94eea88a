// SPDX-License-Identifier: MIT

/// The sound of one input, laid out on the common clock.
///
/// A device counts its own samples, a little too fast or too slow. Each block says when it was taken: while that and where the block would lie by
/// count differ by more than a millisecond, samples are made a little shorter or longer (by 1/2000, which nobody hears) until they agree. When they
/// differ by much (samples were lost, or come from another device), the block is put where it belongs.
///
/// Thread: the sound thread's. Units: samples of the common clock.
struct Timeline {
    /// What may wait to be mixed: 1.4 s. Later samples are lost.
    static let capacity = 65_536
    /// Beyond this a block is put where it belongs at once: 15 ms.
    private static let greatestError = 720.0
    /// Beyond this it is steered: 1 ms.
    private static let toleratedError = 48.0
    private static let steering = 1.0 / 2_000
    /// How much of each block's error is believed: its time jitters.
    private static let trust = 0.1

    /// Interleaved; sample `n` lies at `n % capacity`. What was not written is 0.
    private var samples = [Float](repeating: 0, count: capacity * SampleClock.channelCount)
    /// Where the next sample lands; nil before the first.
    private(set) var end: Int64?
    private var error = 0.0
    /// 1 while samples are made longer, -1 while they are made shorter, 0 else.
    private var direction = 0.0
    /// Where between the second and the third of the last four samples the next one is taken.
    private var phase = 0.0
    private var history = [Float](repeating: 0, count: 4 * SampleClock.channelCount)

    /// Adds a block that was taken from `position` on.
    ///
    /// - Parameters:
    ///   - block: interleaved samples.
    ///   - first: those before it have been mixed, and are not written any more.
    mutating func add(_ block: UnsafeBufferPointer<Float>, at position: Double, notBefore first: Int64) {
        align(to: position)
        guard var next = end else { return }
        let limit = first + Int64(Timeline.capacity)
        let step = 1 - direction * Timeline.steering
        for index in 0..<block.count / SampleClock.channelCount {
            push(block[2 * index], block[2 * index + 1])
            while phase < 1 {
                if next >= first && next < limit {
                    let place = Int(next % Int64(Timeline.capacity)) * SampleClock.channelCount
                    samples[place] = interpolated(0)
                    samples[place + 1] = interpolated(1)
                }
                next += 1
                phase += step
            }
            phase -= 1
        }
        end = next
    }

    private mutating func align(to position: Double) {
        guard let end, abs(position - Double(end)) <= Timeline.greatestError else {
            end = Int64(position.rounded())
            (error, direction, phase) = (0, 0, 0)
            for index in history.indices { history[index] = 0 }
            return
        }
        error += (position - Double(end) - error) * Timeline.trust
        if direction == 0 {
            if abs(error) > Timeline.toleratedError { direction = error > 0 ? 1 : -1 }
        } else if error * direction <= 0 {
            direction = 0
        }
    }

    private mutating func push(_ left: Float, _ right: Float) {
        for index in 0..<6 { history[index] = history[index + 2] }
        (history[6], history[7]) = (left, right)
    }

    /// The sample between the second and the third of the last four, by a cubic through all (Catmull-Rom); the second itself at phase 0.
    private func interpolated(_ channel: Int) -> Float {
        let (a, b, c, d) = (history[channel], history[2 + channel], history[4 + channel], history[6 + channel])
        if phase == 0 { return b }
        let t = Float(phase)
        let third: Float = 3 * (b - c) + d - a
        let second: Float = 2 * a - 5 * b + 4 * c - d
        return b + 0.5 * t * (c - a + t * (second + t * third))
    }

    /// Adds `gain` times the samples from `first` on to `frame`, and forgets them.
    mutating func take(from first: Int64, into frame: inout [Float], gain: Float) {
        for index in 0..<frame.count / SampleClock.channelCount {
            let place = Int((first + Int64(index)) % Int64(Timeline.capacity)) * SampleClock.channelCount
            frame[2 * index] += gain * samples[place]
            frame[2 * index + 1] += gain * samples[place + 1]
            (samples[place], samples[place + 1]) = (0, 0)
        }
    }

    /// Forgets all samples; the next block is put where it belongs.
    mutating func clear() {
        for index in samples.indices { samples[index] = 0 }
        end = nil
    }
}
