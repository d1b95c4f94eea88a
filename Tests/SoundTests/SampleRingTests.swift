// SPDX-License-Identifier: MIT
import CAllocations
import Loop
import Testing

@testable import Sound

@Suite struct SampleRingTests {
    private static func drained(_ ring: SampleRing) -> [(samples: [Float], time: Int64)] {
        var parts: [(samples: [Float], time: Int64)] = []
        ring.drain { block, time in parts.append((samples: Array(block), time: time.nanoseconds)) }
        return parts
    }

    @Test func blocksComeOutAsTheyWentInAlsoAcrossTheEnd() {
        let ring = SampleRing()
        for round in 0..<100 {
            let block = (0..<2 * 1_000).map { Float(round * 2_000 + $0 + 1) }
            #expect(ring.push(block, count: 1_000, at: Int64(round) * 1_000_000_000))
            let parts = Self.drained(ring)
            #expect(parts.flatMap(\.samples) == block)
            #expect(parts.first?.time == Int64(round) * 1_000_000_000)
            if parts.count == 2 {
                let expected = Int64(round) * 1_000_000_000 + Int64(parts[0].samples.count / 2) * 1_000_000 / 48
                #expect(parts[1].time == expected)
            }
        }
    }

    @Test func aReaderThatSleepsLosesWholeBlocks() {
        let ring = SampleRing()
        let block = [Float](repeating: 0.5, count: 2_048)
        for number in 0..<100 { _ = ring.push(block, count: 1_024, at: Int64(number)) }
        let parts = Self.drained(ring)
        #expect(parts.count == 32)
        #expect(parts.map(\.time) == Array(0..<32))
        #expect(ring.push(block, count: 1_024, at: 7))
        #expect(Self.drained(ring).map(\.time) == [7])
    }

    @Test func silenceWakesNobody() {
        let ring = SampleRing()
        let silence = [Float](repeating: 0, count: 2_048), sound = [Float](repeating: 0.1, count: 2_048)
        #expect(!ring.push(silence, count: 1_024, at: 0))
        #expect(ring.push(sound, count: 1_024, at: 1))
        let woken = (0..<1_000).count { _ in ring.push(silence, count: 1_024, at: 2) }
        #expect(woken > 0 && woken <= 11)
        #expect(ring.push(sound, count: 1_024, at: 3))
    }

    @Test func takingABlockAllocatesNothing() {
        let ring = SampleRing()
        let block = [Float](repeating: 0.5, count: 2_048)
        _ = ring.push(block, count: 1_024, at: 0)
        let before = allocations_of_this_thread()
        for number in 0..<20 { _ = ring.push(block, count: 1_024, at: Int64(number)) }
        #expect(allocations_of_this_thread() == before)
    }
}
