// SPDX-License-Identifier: MIT
import Loop
import Testing

@testable import Encoding

@Suite struct CadenceTests {
    private let begin = Instant(nanoseconds: 1_000_000_000)

    private func cadence(_ milliseconds: [Int]) -> Cadence {
        var cadence = Cadence()
        for time in milliseconds { cadence.note(begin + .milliseconds(time)) }
        return cadence
    }

    /// Typing must find the encoder free: what makes the lines before sharp waits until the next letter is late.
    @Test(arguments: [100, 125, 150, 200, 250])
    func theNextPictureOfARowIsNotInTheWayOfAnother(interval: Int) {
        let quiet = cadence([0, interval, 2 * interval]).quiet
        #expect(quiet >= begin + .milliseconds(3 * interval + interval / 3))
        #expect(quiet <= begin + .milliseconds(4 * interval))
    }

    @Test func afterAPauseNothingIsExpected() {
        #expect(cadence([0]).quiet == begin + .milliseconds(100))
        #expect(cadence([0, 10_000]).quiet == begin + .milliseconds(10_100))
    }

    @Test func fastPicturesMustHaveEnded() {
        #expect(cadence([0, 16, 33]).quiet == begin + .milliseconds(133))
    }
}
