// SPDX-License-Identifier: MIT
import Loop

/// Decides when the next picture may be encoded, so that no more than so many a second are, on average.
///
/// A picture may come half an interval early, so that a source of just that rate is never held up by the jitter of its frames.
struct FrameRateLimit {
    /// The time from one picture to the next; zero without a limit.
    private(set) var interval: Duration
    /// When the next picture is due, were they all spaced evenly.
    private var schedule = Instant(nanoseconds: 0)

    /// - Parameter frameRate: pictures a second; 0 is no limit.
    init(frameRate: UInt32) { interval = FrameRateLimit.interval(frameRate) }

    /// Changes the rate from the next picture on.
    mutating func setFrameRate(_ frameRate: UInt32) {
        let changed = FrameRateLimit.interval(frameRate)
        schedule = min(schedule, schedule + (changed - interval))
        interval = changed
    }

    /// The earliest time for the next picture.
    var due: Instant { schedule + (.zero - interval / 2) }

    /// Lets the next picture come at once.
    mutating func lift() { schedule = min(schedule, .now) }

    /// Notes that a picture is encoded now.
    mutating func note(_ now: Instant) { schedule = max(schedule, now) + interval }

    private static func interval(_ frameRate: UInt32) -> Duration {
        // A thirty-second less: a source whose clock says 60.05 Hz is one of 60, and must not fall behind until every frame waits.
        frameRate == 0 ? .zero : .nanoseconds(1_000_000_000 / Int64(frameRate) * 31 / 32)
    }
}
