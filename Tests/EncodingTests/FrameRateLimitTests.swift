// SPDX-License-Identifier: MIT
import Loop
import Testing

@testable import Encoding

@Suite struct FrameRateLimitTests {
    /// When pictures that come at these milliseconds are taken; one that has to wait is replaced by the next.
    private func taken(_ frameRate: UInt32, of arrivals: [Int]) -> [Int] {
        var limit = FrameRateLimit(frameRate: frameRate)
        var result: [Int] = []
        var pending = false
        for (index, arrival) in arrivals.enumerated() {
            let now = Instant(nanoseconds: Int64(arrival) * 1_000_000)
            if limit.due <= now {
                limit.note(now)
                result.append(arrival)
                pending = false
                continue
            }
            pending = true
            let next = index + 1 < arrivals.count ? arrivals[index + 1] : .max
            let due = Int((limit.due.nanoseconds + 999_999) / 1_000_000)
            if due < next {
                limit.note(Instant(nanoseconds: Int64(due) * 1_000_000))
                result.append(due)
                pending = false
            }
        }
        #expect(!pending)
        return result
    }

    @Test func withoutALimitEveryPictureIsTaken() {
        #expect(taken(0, of: [0, 1, 2, 3]) == [0, 1, 2, 3])
    }

    @Test func jitterHoldsNothingUp() {
        let jitter = [0, 7, -6, 3]
        let arrivals = (0..<60).map { (index: Int) -> Int in index * 100 / 3 + jitter[index % 4] + 10 }
        #expect(taken(30, of: arrivals) == arrivals)
    }

    @Test func aSourceALittleTooFastIsNotHeldUp() {
        let arrivals = (0..<600).map { $0 * 33 + 1_000 }
        #expect(taken(30, of: arrivals) == arrivals)
    }

    @Test func theAverageIsKept() {
        let times = taken(30, of: (0..<600).map { $0 * 10 })
        #expect((170...190).contains(times.count))
    }

    @Test func theLastOfABurstIsTakenLater() {
        let times = taken(10, of: [1_000, 1_010, 1_020, 1_030])
        #expect(times.first == 1_000)
        #expect(times.count <= 3)
        #expect((times.last ?? 0) <= 1_200)
    }

    @Test func anotherRateHoldsFromTheNextPictureOn() {
        var limit = FrameRateLimit(frameRate: 1)
        let now = Instant(nanoseconds: 10_000_000_000)
        limit.note(now)
        limit.setFrameRate(100)
        #expect(limit.due <= now + .milliseconds(10))
        limit.setFrameRate(0)
        #expect(limit.due <= now)
    }
}
