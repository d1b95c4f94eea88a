// SPDX-License-Identifier: MIT
import Loop

/// Puts inputs together, frame by frame, on the common clock.
///
/// A frame is ready when all inputs have come to its end; one that has fallen behind is not waited for, and is silent. No frame is made of a time of
/// which nothing came at all. Two inputs are mixed at half their level each (-6 dB), so that two at full scale do not clip; one alone keeps its level.
///
/// Thread: the sound thread's. Units: samples of the common clock.
struct Mixer {
    /// Samples in a frame: 20 ms, one Opus packet.
    static let frameLength = 960
    /// How far an input may be behind another before it is not waited for: 200 ms, more than the longest period of a device.
    private static let patience: Int64 = 9_600
    /// After a pause this long, what was left of the sound before it is not worth a frame of its own.
    private static let longPause: Int64 = 48_000

    private let clock: SampleClock
    private let gain: Float
    private var inputs: [Timeline]
    /// Where the next frame begins: a whole number of frames.
    private var position: Int64 = 0
    private var frame = [Float](repeating: 0, count: frameLength * SampleClock.channelCount)

    /// - Parameter inputCount: one or two.
    init(_ clock: SampleClock, inputCount: Int) {
        self.clock = clock
        gain = 1 / Float(inputCount)
        inputs = Array(repeating: Timeline(), count: inputCount)
    }

    /// The furthest that any input has come.
    private var front: Int64? { inputs.lazy.compactMap(\.end).max() }

    /// Adds a block of interleaved samples, the first of which was taken at `time`.
    mutating func add(_ block: UnsafeBufferPointer<Float>, at time: Instant, to input: Int) {
        let start = clock.position(at: time)
        let first = Int64(start.rounded(.down))
        if let front, first > front + Mixer.longPause {
            for index in inputs.indices { inputs[index].clear() }
        }
        // Nothing waits to be mixed: the time between is skipped.
        if (front ?? 0) <= position, first > position + Int64(Mixer.frameLength) {
            position = first / Int64(Mixer.frameLength) * Int64(Mixer.frameLength)
        }
        inputs[input].add(block, at: start, notBefore: position)
    }

    /// The next frame that is ready, and when its first sample was taken; nil while there is none.
    mutating func next() -> (samples: [Float], time: Instant)? {
        let end = position + Int64(Mixer.frameLength)
        guard let front, front >= end else { return nil }
        for input in inputs {
            let reached = input.end ?? .min / 2
            if reached < end && front - reached <= Mixer.patience { return nil }
        }
        for index in frame.indices { frame[index] = 0 }
        for index in inputs.indices { inputs[index].take(from: position, into: &frame, gain: gain) }
        // A program may play beyond full scale.
        for index in frame.indices { frame[index] = max(-1, min(1, frame[index])) }
        let time = clock.time(of: position)
        position = end
        return (frame, time)
    }
}
