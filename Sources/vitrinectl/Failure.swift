// SPDX-License-Identifier: MIT
import Contract
import DBus

/// Why a verb ends before its work is done.
enum Failure: Error, Equatable, Sendable {
    /// The command line is wrong.
    case usage(UsageError)
    /// In words for the person; "" when there is nothing to add.
    case ended(ExitCode, String)

    /// The exit code that goes with it.
    var code: ExitCode {
        switch self {
        case .usage: .usage
        case .ended(let code, _): code
        }
    }

    /// One sentence or two; what to do about it stands at the end.
    var message: String {
        switch self {
        case .usage(let error): error.message
        case .ended(_, let message): message
        }
    }

    /// What a call to one of the agent's tracks came to.
    init(_ error: DBusError, track path: ObjectPath) {
        guard case .remote(ErrorName.unknownObject.dbusName, _) = error, path.text.contains("/track/") else {
            self = .ended(ExitCode(error), Failure.words(for: error, about: path))
            return
        }
        let name = path.text.split(separator: "/").last ?? ""
        self = .ended(ExitCode(error), "there is no track \(name): 'vitrinectl list' shows those that are there")
    }

    /// What a call to the agent came to.
    init(_ error: DBusError) { self = .ended(ExitCode(error), Failure.words(for: error)) }

    /// What waiting came to that did not come to what was waited for.
    init(_ outcome: Context.Outcome, waitingFor thing: String = "the agent") {
        switch outcome {
        case .disconnected: self.init(.disconnected)
        case .timedOut: self = .ended(.timedOut, "\(thing) did not answer in time")
        case .held, .interrupted: self = .ended(.cancelled, "interrupted")
        }
    }

    private static func words(for error: DBusError, about track: ObjectPath = Agent.desktopTrack) -> String {
        switch error {
        case .remote(let name, let message):
            if isAbsence(name) {
                return
                    "the agent is not running, and the bus cannot start it. Start vitrine-agent, or install Vitrine with "
                    + "'make install'; 'vitrinectl doctor' says what is missing"
            }
            if name == StandardError.noReply { return "the agent went away, or did not answer in time: \(printable(message))" }
            return message.isEmpty ? printable(name) : printable(Remedy.namingOptions(Remedy.inOurWords(message, about: track)))
        case .timedOut(let member):
            return "the agent did not answer \(printable(member)) in time. See its log: journalctl --user -t vitrine-agent"
        case .cannotConnect(let detail):
            return
                "there is no session bus: \(printable(detail)). Run vitrinectl inside the desktop session "
                + "(DBUS_SESSION_BUS_ADDRESS names its bus)"
        case .disconnected:
            return "the session bus is gone"
        default:
            return printable(error.description)
        }
    }

    /// Whether an error's name says that nobody has the agent's name.
    static func isAbsence(_ name: String) -> Bool {
        name == StandardError.serviceUnknown || name == StandardError.nameHasNoOwner || name.hasPrefix("org.freedesktop.DBus.Error.Spawn.")
    }
}
