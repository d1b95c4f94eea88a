// SPDX-License-Identifier: MIT
public import Loop

/// Counts samples on the common clock, `CLOCK_MONOTONIC`: at the nominal rate, whatever a device's own clock does.
///
/// Units: a sample is one for each channel.
public struct SampleClock: Sendable {
    /// Samples a second.
    public static let rate: Int64 = 48_000
    /// Left and right.
    public static let channelCount = 2

    /// When sample 0 was taken.
    public let epoch: Instant

    /// A clock with its sample 0 at that time.
    public init(epoch: Instant) { self.epoch = epoch }

    /// The sample that was taken at a time, with its fraction.
    func position(at time: Instant) -> Double {
        let nanoseconds = (time - epoch).nanoseconds
        return Double(nanoseconds) * Double(SampleClock.rate) / 1e9
    }

    /// When a sample was taken.
    func time(of position: Int64) -> Instant {
        // 48 samples are a millisecond: exact, and far from any overflow.
        epoch + .nanoseconds(position * 1_000_000 / 48)
    }
}
