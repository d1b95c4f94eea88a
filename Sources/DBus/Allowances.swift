// SPDX-License-Identifier: MIT
import Loop

/// How many bytes of answers each client may cause that it has perhaps not read: one that calls without end and never reads must fill nobody's
/// memory. The bus stops to read from us when too much of ours lies with it, and then nobody is answered any more.
///
/// A client has so much at once, and all of it again whenever it has shown that it reads. For one that cannot show it a little comes back with time.
/// What it calls beyond that is refused, which costs little; what it calls beyond the refusals too is not answered.
struct Allowances {
    /// What becomes of a call.
    enum Verdict {
        case serve, refuse, ignore
    }

    /// Bytes at once: some dozens of descriptions of the busiest agent.
    static let burst = 16 << 20
    /// Bytes that come back in a second.
    static let rate = 64 << 10
    /// Bytes of refusals.
    static let refusals = 1 << 20
    /// Bytes that the bus may not have taken from us: half of them as answers, the other half as refusals.
    static let greatestBacklog = 32 << 20

    private struct Account {
        var left: Int
        var time: Instant
        var isAsked = false

        func balance(_ now: Instant) -> Int {
            let gained = (now - time).microseconds.multipliedReportingOverflow(by: Int64(Allowances.rate))
            return gained.overflow ? Allowances.burst : min(Allowances.burst, left + Int(gained.partialValue / 1_000_000))
        }
    }

    /// Of those whose allowance is not whole.
    private var accounts: [BusName: Account] = [:]

    /// - Parameter backlog: bytes that wait until the bus takes them.
    func verdict(on client: BusName, backlog: Int, now: Instant = .now) -> Verdict {
        let balance = accounts[client]?.balance(now) ?? Allowances.burst
        if balance <= -Allowances.refusals || backlog >= Allowances.greatestBacklog { return .ignore }
        return balance <= 0 || backlog >= Allowances.greatestBacklog / 2 ? .refuse : .serve
    }

    /// Takes an answer into account.
    ///
    /// - Returns: whether the client is to be asked now for a sign that it reads.
    mutating func charge(_ client: BusName, bytes: Int, now: Instant = .now) -> Bool {
        if accounts.count >= 128 { accounts = accounts.filter { $0.value.isAsked || $0.value.balance(now) < Allowances.burst } }
        var account = accounts[client] ?? Account(left: Allowances.burst, time: now)
        (account.left, account.time) = (account.balance(now) - bytes, now)
        let asks = !account.isAsked && account.left < Allowances.burst / 2
        account.isAsked = account.isAsked || asks
        accounts[client] = account
        return asks
    }

    /// The client has read what it was sent, or is gone.
    mutating func restore(_ client: BusName) { accounts[client] = nil }
}
