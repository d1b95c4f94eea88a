// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop

/// `vitrinectl doctor`.
enum DoctorVerb {
    static let verb = Verb(
        name: "doctor", summary: "look for what screen sharing needs, and say what is missing",
        details: [
            "Each line is ok, missing (with the remedy) or note (worth knowing; sharing may work all the same). Exit code 0 when nothing is "
                + "missing, else 4. The desktop's portal is asked for what it can do, and the bus may start it for that. The agent is not started.",
            "With --json each line is one object: check, result, text, remedy.",
        ],
        options: [.json],
        run: { context, arguments throws(Failure) in
            let usesJSON = arguments.has("json")
            var isComplete = true
            let report = { (finding: Finding) in
                if finding.result == .missing { isComplete = false }
                context.out.lines(usesJSON ? [finding.json.text] : finding.lines(context.out))
            }
            let connection: Connection
            do throws(DBusError) {
                connection = try context.openBus()
                report(Finding("session bus", .ok, Environment.value(of: "DBUS_SESSION_BUS_ADDRESS").map(printable) ?? "reached"))
            } catch {
                report(BusDiagnosis.finding(error))
                for finding in PipeWireDiagnosis.findings() { report(finding) }
                return .unavailable
            }
            let bus = BusView(context, connection)
            try AgentDiagnosis(bus).run(report)
            for finding in ConfigurationDiagnosis.findings() { report(finding) }
            try PortalDiagnosis(bus).run(report)
            for finding in PipeWireDiagnosis.findings() { report(finding) }
            return isComplete ? .done : .unavailable
        })
}

/// One line of a diagnosis.
struct Finding: Equatable {
    enum Result: String {
        case ok, missing, note
    }
    let check: String
    let result: Result
    let text: String
    let remedy: String?

    init(_ check: String, _ result: Result, _ text: String, _ remedy: String? = nil) {
        (self.check, self.result, self.text, self.remedy) = (check, result, text, remedy)
    }

    func lines(_ out: Output) -> [String] {
        let style: Output.Style =
            switch result {
            case .ok: .green
            case .missing: .red
            case .note: .yellow
            }
        let padding = String(repeating: " ", count: max(0, 9 - result.rawValue.count))
        let margin = String(repeating: " ", count: 9)
        return ["\(out.paint(result.rawValue, style))\(padding)\(check): \(text)"] + (remedy.map { ["\(margin)-> \($0)"] } ?? [])
    }

    var json: JSON {
        .members([
            "check": .string(check), "result": .string(result.rawValue), "text": .string(text),
            "remedy": remedy.map(JSON.string) ?? .null,
        ])
    }
}

/// Why there is no session bus.
enum BusDiagnosis {
    static func finding(_ error: DBusError) -> Finding {
        let detail = if case .cannotConnect(let detail) = error { detail } else { error.description }
        let user = getuid()
        let folder = "/run/user/\(user)"
        let remedy =
            if (try? Files.probeSocket("\(folder)/bus")) != nil {
                "this user's bus is at \(folder)/bus: export XDG_RUNTIME_DIR=\(folder); unset DBUS_SESSION_BUS_ADDRESS"
            } else if user == 0 {
                "run it as the user of the desktop: root has no session bus"
            } else {
                "log in to the desktop, and run it in a terminal there"
            }
        return Finding("session bus", .missing, "there is no session bus: \(printable(detail))", remedy)
    }
}

/// What the bus itself tells of who is on it.
struct BusView {
    private let context: Context
    private let connection: Connection

    init(_ context: Context, _ connection: Connection) { (self.context, self.connection) = (context, connection) }

    /// Calls anything and waits.
    func call(
        _ destination: BusName, _ path: ObjectPath, _ interface: InterfaceName, _ member: MemberName, _ arguments: [Value] = [],
        starting: Bool = false, timeout: Duration = .seconds(30)
    ) throws(Failure) -> Result<[Value], DBusError> {
        var call = MethodCall(destination: destination, path: path, interface: interface, member: member, arguments: arguments)
        call.noAutoStart = !starting
        return try context.result(of: call, on: connection, timeout: timeout)
    }

    private func ask(_ member: MemberName, _ arguments: [Value] = []) throws(Failure) -> Value? {
        guard case .success(let values) = try call(.bus, "/org/freedesktop/DBus", "org.freedesktop.DBus", member, arguments) else {
            return nil
        }
        return values.first
    }

    func hasOwner(_ name: BusName) throws(Failure) -> Bool { try ask("NameHasOwner", [.string(name.text)])?.asBool ?? false }
    func names() throws(Failure) -> [String] { try ask("ListNames")?.asStrings ?? [] }
    func activatableNames() throws(Failure) -> [String] { try ask("ListActivatableNames")?.asStrings ?? [] }
    func process(of name: BusName) throws(Failure) -> UInt32? { try ask("GetConnectionUnixProcessID", [.string(name.text)])?.asUInt32 }
}

/// Whether the agent is there.
struct AgentDiagnosis {
    private let bus: BusView
    init(_ bus: BusView) { self.bus = bus }

    func run(_ report: (Finding) -> Void) throws(Failure) {
        if try bus.hasOwner(Agent.name) {
            let answer = try bus.call(
                Agent.name, Agent.path, Agent.properties, "Get", [.string(Agent.interface.text), .string("Version")],
                timeout: .seconds(10))
            let process = try bus.process(of: Agent.name).map { ", process \($0)" } ?? ""
            guard case .success(let values) = answer, let version = values.first?.asVariant?.asString else {
                let remedy =
                    "see its log, and restart it: journalctl --user -t vitrine-agent; systemctl --user restart app-org.vitrine.ScreenShare1"
                report(Finding("agent", .missing, "it has the name \(Agent.name)\(process), but does not answer", remedy))
                return
            }
            report(Finding("agent", .ok, "it runs, version \(printable(version))\(process)"))
        } else if try bus.activatableNames().contains(Agent.name.text) {
            report(Finding("agent", .ok, "it does not run; the bus starts it when it is needed"))
        } else {
            report(
                Finding(
                    "agent", .missing, "it does not run, and the bus does not know how to start \(Agent.name)",
                    "install Vitrine with 'make install' and log in again, or run vitrine-agent"))
        }
    }
}
