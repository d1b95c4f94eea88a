// SPDX-License-Identifier: MIT
import Loop
import Synchronization

/// The blocks of samples between PipeWire's data thread and the sound thread. It allocates nothing and locks nothing; a block for which there is
/// no room is lost.
///
/// Thread: ``push(_:count:at:)`` the data thread's, ``drain(_:)`` the sound thread's.
final class SampleRing {
    /// Samples that have room: 0.68 s.
    private static let capacity = 32_768
    private static let blockCapacity = 1_024
    /// So many silent samples are passed on after others, 200 ms: then silence is not worth waking anybody for.
    private static let greatestSilence = 9_600

    private struct Block {
        var time: Int64
        var count: Int
    }

    private let samples = UnsafeMutablePointer<Float>.allocate(capacity: capacity * SampleClock.channelCount)
    private let blocks = UnsafeMutablePointer<Block>.allocate(capacity: blockCapacity)
    /// Samples and blocks since the beginning.
    private let samplesWritten = Atomic<Int>(0)
    private let samplesRead = Atomic<Int>(0)
    private let blocksWritten = Atomic<Int>(0)
    private let blocksRead = Atomic<Int>(0)
    /// The data thread's own.
    private var silentSamples = SampleRing.greatestSilence

    init() {
        samples.initialize(repeating: 0, count: SampleRing.capacity * SampleClock.channelCount)
        blocks.initialize(repeating: Block(time: 0, count: 0), count: SampleRing.blockCapacity)
    }

    deinit {
        samples.deallocate()
        blocks.deallocate()
    }

    /// Takes a block of interleaved samples.
    ///
    /// - Parameter time: when the first was taken, nanoseconds.
    /// - Returns: whether there is something to drain.
    func push(_ source: UnsafePointer<Float>, count: Int, at time: Int64) -> Bool {
        let values = count * SampleClock.channelCount
        var isSilent = true
        for index in 0..<values where source[index] != 0 {
            isSilent = false
            break
        }
        if isSilent && silentSamples >= SampleRing.greatestSilence { return false }
        silentSamples = isSilent ? silentSamples + count : 0
        let (written, block) = (samplesWritten.load(ordering: .relaxed), blocksWritten.load(ordering: .relaxed))
        guard written + count - samplesRead.load(ordering: .acquiring) <= SampleRing.capacity,
            block - blocksRead.load(ordering: .acquiring) < SampleRing.blockCapacity
        else { return true }
        let place = written % SampleRing.capacity
        let first = min(count, SampleRing.capacity - place)
        (samples + place * SampleClock.channelCount).update(from: source, count: first * SampleClock.channelCount)
        samples.update(from: source + first * SampleClock.channelCount, count: (count - first) * SampleClock.channelCount)
        blocks[block % SampleRing.blockCapacity] = Block(time: time, count: count)
        samplesWritten.store(written + count, ordering: .releasing)
        blocksWritten.store(block + 1, ordering: .releasing)
        return true
    }

    /// Hands over all blocks, oldest first, some of them in two parts.
    func drain(_ body: (UnsafeBufferPointer<Float>, Instant) -> Void) {
        let end = blocksWritten.load(ordering: .acquiring)
        var (block, read) = (blocksRead.load(ordering: .relaxed), samplesRead.load(ordering: .relaxed))
        while block < end {
            let entry = blocks[block % SampleRing.blockCapacity]
            let place = read % SampleRing.capacity
            let first = min(entry.count, SampleRing.capacity - place)
            let start = Instant(nanoseconds: entry.time)
            body(part(place, first), start)
            if first < entry.count { body(part(0, entry.count - first), start + .nanoseconds(Int64(first) * 1_000_000 / 48)) }
            read += entry.count
            block += 1
        }
        samplesRead.store(read, ordering: .releasing)
        blocksRead.store(end, ordering: .releasing)
    }

    private func part(_ place: Int, _ count: Int) -> UnsafeBufferPointer<Float> {
        UnsafeBufferPointer(start: samples + place * SampleClock.channelCount, count: count * SampleClock.channelCount)
    }
}
