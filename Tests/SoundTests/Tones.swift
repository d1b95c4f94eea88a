// SPDX-License-Identifier: MIT
import Glibc

/// Interleaved samples of a tone in each channel; a channel without a frequency is silent.
func tone(left: Double, right: Double, level: Double = 0.25, count: Int, from start: Int = 0) -> [Float] {
    var samples: [Float] = []
    for index in start..<start + count {
        for frequency in [left, right] { samples.append(Float(level * sin(2 * .pi * frequency * Double(index) / 48_000))) }
    }
    return samples
}

/// The level of a frequency in one channel, 1 at full scale.
func level(of frequency: Double, in samples: [Float], channel: Int) -> Double {
    var (real, imaginary, count) = (0.0, 0.0, 0)
    for index in stride(from: channel, to: samples.count, by: 2) {
        let angle = 2 * .pi * frequency * Double(count) / 48_000
        real += Double(samples[index]) * cos(angle)
        imaginary += Double(samples[index]) * sin(angle)
        count += 1
    }
    return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(1, count))
}
