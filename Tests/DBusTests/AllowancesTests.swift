// SPDX-License-Identifier: MIT
import Loop
import Testing

@testable import DBus

@Suite struct AllowancesTests {
    private let client: BusName = ":1.7"
    private let start = Instant(nanoseconds: 1_000_000_000)

    @Test func aClientThatHasHadItsShareIsRefusedAndThenIgnored() {
        var allowances = Allowances()
        #expect(allowances.verdict(on: client, backlog: 0, now: start) == .serve)
        // It is asked once for a sign that it reads.
        let asks = [Allowances.burst / 2, Allowances.burst / 2 - 1, 1].map { allowances.charge(client, bytes: $0, now: start) }
        #expect(asks == [false, true, false])
        #expect(allowances.verdict(on: client, backlog: 0, now: start) == .refuse)
        _ = allowances.charge(client, bytes: Allowances.refusals, now: start)
        #expect(allowances.verdict(on: client, backlog: 0, now: start) == .ignore)
        // Nobody else pays for it.
        #expect(allowances.verdict(on: ":1.8", backlog: 0, now: start) == .serve)
        allowances.restore(client)
        #expect(allowances.verdict(on: client, backlog: 0, now: start) == .serve)
        let asksAgain = allowances.charge(client, bytes: Allowances.burst, now: start)
        #expect(asksAgain)
    }

    @Test func timeGivesItBackButNoMoreThanThat() {
        var allowances = Allowances()
        _ = allowances.charge(client, bytes: Allowances.burst + Allowances.refusals, now: start)
        #expect(allowances.verdict(on: client, backlog: 0, now: start + .milliseconds(1)) == .refuse)
        #expect(allowances.verdict(on: client, backlog: 0, now: start + .seconds(17)) == .serve)
        let later = start + .seconds(1_000_000_000)
        _ = allowances.charge(client, bytes: Allowances.burst, now: later)
        #expect(allowances.verdict(on: client, backlog: 0, now: later) == .refuse)
    }

    @Test func aBusThatTakesNothingIsGivenNoMore() {
        let allowances = Allowances()
        #expect(allowances.verdict(on: client, backlog: Allowances.greatestBacklog / 2 - 1, now: start) == .serve)
        #expect(allowances.verdict(on: client, backlog: Allowances.greatestBacklog / 2, now: start) == .refuse)
        #expect(allowances.verdict(on: client, backlog: Allowances.greatestBacklog, now: start) == .ignore)
    }

    @Test func manyClientsThatComeAndGoAreKeptAccountOf() {
        var allowances = Allowances()
        for index in 0..<10_000 {
            guard let name = BusName(":1.\(index)") else { continue }
            _ = allowances.charge(name, bytes: 1_000, now: start + .milliseconds(Int64(index)))
        }
        _ = allowances.charge(client, bytes: Allowances.burst, now: start + .seconds(10))
        #expect(allowances.verdict(on: client, backlog: 0, now: start + .seconds(10)) == .refuse)
    }
}
