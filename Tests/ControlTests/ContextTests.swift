// SPDX-License-Identifier: MIT
import Testing

@testable import vitrinectl

@Suite struct ContextTests {
    /// A terminal may be closed while nothing is waited for: it is noticed when the next line is written.
    @Test func aWishToEndThatComesBetweenTwoWaitsEndsTheNext() throws {
        let context = try Context()
        context.out.onFailure?()
        #expect(context.interrupts == 1)
        #expect(context.wait(until: { false }, timeout: .seconds(60)) == .interrupted)
        // It is one wish, and ends one wait.
        #expect(context.wait(until: { false }, timeout: .milliseconds(1)) == .timedOut)
    }
}
