// SPDX-License-Identifier: MIT
import Glibc

/// A point in time on `CLOCK_MONOTONIC`, the clock of PipeWire's buffers.
public struct Instant: Comparable, Hashable, Sendable {
    /// Nanoseconds since an arbitrary start, usually the boot.
    public var nanoseconds: Int64

    /// An instant from a time stamp that another program took of the same clock.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The present.
    public static var now: Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Microseconds since the clock's start, rounded down.
    public var microseconds: Int64 { nanoseconds / 1_000 }

    /// Compares two instants.
    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that lies `duration` later; the end of time when the sum is out of range.
    public static func + (instant: Instant, duration: Duration) -> Instant {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(duration.nanoseconds)
        return Instant(nanoseconds: overflow ? .max : sum)
    }

    /// The time from `right` to `left`.
    public static func - (left: Instant, right: Instant) -> Duration {
        .nanoseconds(left.nanoseconds - right.nanoseconds)
    }
}

extension Duration {
    /// The whole duration in nanoseconds, cut to what fits.
    public var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? (seconds < 0 ? .min : .max) : product + attoseconds / 1_000_000_000
    }

    /// The whole duration in microseconds.
    public var microseconds: Int64 { nanoseconds / 1_000 }
}

/// Microseconds since the epoch, on the wall clock.
public func wallClockMicroseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
}
