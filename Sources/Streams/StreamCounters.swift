// SPDX-License-Identifier: MIT
import Synchronization

/// What the writer counts of one stream and the main loop reads.
///
/// Thread: written by the writer's alone; each number is right by itself, they are not of one moment.
final class StreamCounters: Sendable {
    private let sent = Atomic<UInt64>(0)
    private let coalesced = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)
    private let queuedBytes = Atomic<UInt64>(0)
    private let keyFrames = Atomic<UInt64>(0)

    func addSent(isKeyFrame: Bool) {
        sent.wrappingAdd(1, ordering: .relaxed)
        if isKeyFrame { keyFrames.wrappingAdd(1, ordering: .relaxed) }
    }

    func addCoalesced(_ count: UInt64) { coalesced.wrappingAdd(count, ordering: .relaxed) }

    func addBytes(_ count: Int) { bytes.wrappingAdd(UInt64(count), ordering: .relaxed) }

    func setQueuedBytes(_ count: Int) { queuedBytes.store(UInt64(count), ordering: .relaxed) }

    var snapshot: StreamStatistics {
        var statistics = StreamStatistics()
        statistics.sent = sent.load(ordering: .relaxed)
        statistics.coalesced = coalesced.load(ordering: .relaxed)
        statistics.bytes = bytes.load(ordering: .relaxed)
        statistics.queuedBytes = queuedBytes.load(ordering: .relaxed)
        statistics.keyFrames = keyFrames.load(ordering: .relaxed)
        return statistics
    }
}
