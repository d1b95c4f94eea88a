// SPDX-License-Identifier: MIT
import Loop

/// How fast pictures that show something new come, and so when the next one may be expected.
///
/// What only makes still blocks sharper must not be in the encoder when a picture comes: that would wait for it, and for its turn within the frame rate.
struct Cadence {
    /// After so long a pause nothing is known of the next one.
    private static let greatestInterval = Duration.milliseconds(250)
    /// How long no picture may have come, however fast they come.
    private static let leastQuiet = Duration.milliseconds(100)

    /// When the last one came.
    private(set) var last = Instant(nanoseconds: 0)
    private var interval = Duration.zero

    /// Notes a picture that shows something new.
    mutating func note(_ now: Instant) { (interval, last) = (now - last, now) }

    /// When the picture that might have been expected has not come: half an interval late.
    var quiet: Instant {
        let expected = interval <= Cadence.greatestInterval ? interval + interval / 2 : .zero
        return last + max(Cadence.leastQuiet, expected)
    }
}
