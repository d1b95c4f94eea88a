// SPDX-License-Identifier: MIT
import Contract
import DBus

/// What the program tells its caller when it ends.
enum ExitCode: Int32, Sendable {
    case done = 0
    case failed = 1
    case usage = 2
    /// The person said no: in the picker, or by Ctrl-C before anything began.
    case cancelled = 3
    /// Something that is needed is not there: the bus, the agent, the portal, PipeWire, or the ability itself.
    case unavailable = 4
    case timedOut = 5

    /// Errors of the bus itself, as far as they are no plain failure. The agent's own are in ``ErrorName``.
    private static let busErrors: [String: ExitCode] = [
        "org.freedesktop.DBus.Error.ServiceUnknown": .unavailable,
        "org.freedesktop.DBus.Error.NameHasNoOwner": .unavailable,
        "org.freedesktop.DBus.Error.NoServer": .unavailable,
        "org.freedesktop.DBus.Error.NoReply": .timedOut,
        "org.freedesktop.DBus.Error.Timeout": .timedOut,
        "org.freedesktop.DBus.Error.TimedOut": .timedOut,
    ]

    /// The exit code of an error's name.
    init(errorName: String) {
        if let error = ErrorName(dbusName: errorName) {
            self = ExitCode(rawValue: error.exitCode) ?? .failed
        } else if errorName.hasPrefix("org.freedesktop.DBus.Error.Spawn.") {
            self = .unavailable
        } else {
            self = ExitCode.busErrors[errorName] ?? .failed
        }
    }

    /// The exit code of what a call came to.
    init(_ error: DBusError) {
        switch error {
        case .remote(let name, _): self.init(errorName: name)
        case .timedOut: self = .timedOut
        case .cannotConnect: self = .unavailable
        default: self = .failed
        }
    }
}
