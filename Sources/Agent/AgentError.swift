// SPDX-License-Identifier: MIT
import Contract

/// An error of the contract, as a caller gets it: what was wrong, and what to do about it.
struct AgentError: Error, Equatable, Sendable {
    let name: ErrorName
    let message: String

    init(_ name: ErrorName, _ message: String) { (self.name, self.message) = (name, message) }

    /// Something that is known, but not built or not possible on this desktop.
    static func unsupported(_ what: String, _ why: String) -> AgentError {
        AgentError(.unsupported, "\(what) is not possible here: \(why)")
    }

    /// A value that no caller may pass.
    static func invalid(_ key: String, _ why: String) -> AgentError {
        AgentError(.invalidArgs, "\"\(key)\" \(why)")
    }
}
