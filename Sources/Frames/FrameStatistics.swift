// SPDX-License-Identifier: MIT
public import Loop

/// What became of a frame that was never offered to the readers.
public enum FrameLoss: Sendable {
    /// The producer marked it as broken.
    case corrupted
    /// It had no picture: only the pointer had moved.
    case cursorOnly
    /// It could not be used: bounds that do not fit its memory, or no slot free.
    case dropped
    /// A newer one was waiting already when it was looked at.
    case superseded
}

/// What a pool counted since it was made, and how it stands now.
///
/// `received` = `delivered` + `coalesced` + `unread` + `corrupted` + `cursorOnly` + `dropped` + `inFlight`, at every moment.
public struct FrameStatistics: Equatable, Sendable {
    /// Buffers that came from the producer.
    public var received: UInt64 = 0
    /// Frames that at least one reader took.
    public var delivered: UInt64 = 0
    /// Frames that a newer one replaced before a reader that wanted them could take them.
    public var coalesced: UInt64 = 0
    /// Frames that no reader wanted.
    public var unread: UInt64 = 0
    /// Frames that the producer marked as broken.
    public var corrupted: UInt64 = 0
    /// Buffers that only said where the pointer is.
    public var cursorOnly: UInt64 = 0
    /// Frames that could not be used.
    public var dropped: UInt64 = 0
    /// Frames of which it is not decided yet: at most one being written and one waiting.
    public var inFlight: UInt64 = 0
    /// Readers at present: whether an encoder runs.
    public var readers = 0
    /// Slots of the pool.
    public var capacity = 0
    /// Bytes of the slots that hold, or held, a picture.
    public var footprint = 0
    /// When the last picture was published.
    public var lastFrameAt: Instant?
    /// Half of the last packets took less, from the buffer's arrival to the packet; nil before the first.
    public var latencyMedian: Duration?
    /// 99 of 100 of the last packets took less.
    public var latencyP99: Duration?

    /// Nothing counted.
    public init() {}

    /// Adds what was counted of an input. What that delivered was composed, and counts where it went from there.
    mutating func add(_ input: FrameStatistics) {
        received += input.received
        coalesced += input.coalesced
        unread += input.unread
        corrupted += input.corrupted
        cursorOnly += input.cursorOnly
        dropped += input.dropped
        inFlight += input.inFlight
        capacity += input.capacity
        footprint += input.footprint
    }
}

/// How often a duration fell into each of a fixed number of ranges, eight to a doubling: within 9 % of the truth.
struct LatencyHistogram {
    /// From 1 µs to 33 s.
    private var counts = [UInt32](repeating: 0, count: 184)
    private var total: UInt32 = 0
    /// Beyond this many everything is halved: the figures are of the last few thousand.
    private static let memory: UInt32 = 8_192

    mutating func add(_ duration: Duration) {
        counts[LatencyHistogram.index(of: max(0, duration.microseconds), limit: counts.count)] += 1
        total += 1
        guard total >= LatencyHistogram.memory else { return }
        total = 0
        for index in counts.indices {
            counts[index] /= 2
            total += counts[index]
        }
    }

    /// The least duration that `share` of all stay within; nil when there is none.
    func quantile(_ share: Double) -> Duration? {
        guard total > 0 else { return nil }
        let rank = max(1, UInt32((Double(total) * share).rounded(.up)))
        var sum: UInt32 = 0
        for (index, count) in counts.enumerated() {
            sum += count
            if sum >= rank { return .microseconds(LatencyHistogram.upperEnd(of: index)) }
        }
        return nil
    }

    private static func index(of microseconds: Int64, limit: Int) -> Int {
        guard microseconds >= 8 else { return Int(microseconds) }
        let exponent = 63 - microseconds.leadingZeroBitCount
        let mantissa = Int(microseconds >> (exponent - 3)) & 7
        return min((exponent - 2) * 8 + mantissa, limit - 1)
    }

    private static func upperEnd(of index: Int) -> Int64 {
        guard index >= 8 else { return Int64(index) }
        let exponent = index / 8 + 2
        return (Int64(index % 8 + 9) << (exponent - 3)) - 1
    }
}
