// SPDX-License-Identifier: MIT

@testable import Agent

/// What `body` fails of; nil when it does not. The newer `#expect(throws:)` that returns it is not in Swift 6.0.
func failure<Success>(_ body: () throws -> Success) -> AgentError? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? AgentError
    }
}
