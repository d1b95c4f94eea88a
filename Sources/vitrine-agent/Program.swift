// SPDX-License-Identifier: MIT
import Agent
import Contract
import DBus
import Glibc
import Loop

/// The process of the agent: options, signals, the bus name, and the way out.
final class Program {
    private static let usage = """
        usage: vitrine-agent [OPTION]...

        The screen-share agent of this desktop session. It owns org.vitrine.ScreenShare1 on the session bus, listens there for programs
        that want to share the screen or to read a share, and shows nothing by itself. Usually the bus or the session starts it.

          --check-configuration
                             print what is wrong with vitrine.conf, a line each, and leave: with 0 when nothing is, else with 1
          --leave-when-idle[=SECONDS]
                             leave when nothing was shared, read or set for so long (600): for those who start it again when it is called
          --log-level LEVELS
                             least important lines on standard error: error, warning, info (unless given) or debug; and, of areas that
                             are named, other ones, as in info,portal=debug; VITRINE_LOG=LEVELS is the same
          --version          print the version
          --help             print this

        It exits with 0 when it was asked to leave or another agent runs already, 1 when the session bus cannot be reached, 2 for wrong usage.
        See busctl --user introspect org.vitrine.ScreenShare1 /org/vitrine/ScreenShare1
        """

    /// Where lines come from: what stands in front of each.
    private static let areas = [
        "agent", "capture", "choices", "dbus", "indicator", "lock", "notice", "portal", "sound", "streams", "track",
    ]

    private let arguments: [String]
    private var idleLimit: Duration?
    private let log = Log("agent")

    init(arguments: [String]) { self.arguments = arguments }

    func run() -> Int32 {
        if let code = readOptions() { return code }
        signal(SIGPIPE, SIG_IGN)
        Environment.returnFreedBlocks()
        Environment.forbidCoreDumps()
        Environment.raiseFileLimit()
        let log = self.log
        do {
            let loop = try EventLoop()
            var agent: Agent?
            try loop.onSignals([SIGTERM, SIGINT, SIGHUP]) { _ in
                if let agent { agent.leave { loop.stop() } } else { loop.stop() }
            }
            let connection = try Connection.open(.session, on: loop)
            let newAgent = try Agent(on: connection)
            agent = newAgent
            var code: Int32 = 0
            connection.onDisconnect = {
                log.info("the session bus has ended")
                loop.stop()
            }
            let name = BusName(static: "org.vitrine.ScreenShare1")
            var isLeavingIdle = false
            connection.onNameLost = { lost in
                // The mark in the panel has a name of its own.
                guard lost == name else { return }
                if isLeavingIdle {
                    // What was called before the name went has been answered by now, and may have been the beginning of something.
                    isLeavingIdle = false
                    guard newAgent.isIdle else { return connection.requestName(name) { _ in } }
                } else {
                    log.warning("another program has taken \(name)")
                }
                newAgent.leave { loop.stop() }
            }
            newAgent.onIdle = {
                log.info("nothing to do: leaving until the next call")
                isLeavingIdle = true
                connection.releaseName(name)
            }
            // Last: whoever sees the name finds all objects.
            let idleLimit = self.idleLimit
            connection.requestName(name) { result in
                switch result {
                case .success:
                    log.info("version \(Contract.packageVersion) listens on the session bus")
                    if let idleLimit { newAgent.watchIdleness(idleLimit) }
                case .failure(.nameTaken):
                    log.info("an agent runs already: nothing to do")
                    loop.stop()
                case .failure(let error):
                    log.error("cannot get the name \(name): \(error)")
                    code = 1
                    loop.stop()
                }
            }
            loop.run()
            connection.close()
            return code
        } catch {
            log.error("cannot start: \(error); is DBUS_SESSION_BUS_ADDRESS set?")
            return 1
        }
    }

    /// - Returns: the exit code when there is nothing to run.
    private func readOptions() -> Int32? {
        if let text = Environment.value(of: "VITRINE_LOG") {
            if let complaint = setLevels(text) { return misuse("VITRINE_LOG: \(complaint)") }
        }
        var left = arguments[...]
        while let argument = left.popFirst() {
            let (option, inline) = split(argument)
            switch option {
            case "--help", "-h": return say(Program.usage)
            case "--check-configuration":
                let complaints = Agent.complaintsAboutConfiguration
                for complaint in complaints { print(complaint) }
                return complaints.isEmpty ? 0 : 1
            case "--version": return say("vitrine-agent \(Contract.packageVersion)")
            case "--leave-when-idle":
                guard let seconds = UInt32(inline ?? "600"), seconds > 0 else {
                    return misuse("--leave-when-idle=\(inline ?? "") is no number of seconds")
                }
                idleLimit = .seconds(Int64(seconds))
            case "--log-level":
                guard let text = inline ?? left.popFirst() else { return misuse("--log-level lacks its level") }
                if let complaint = setLevels(text) { return misuse("--log-level: \(complaint)") }
            default: return misuse("\"\(argument)\" is not an option")
            }
        }
        return nil
    }

    /// Takes levels such as `info,portal=debug`: each in place of what was set before.
    ///
    /// - Returns: what is wrong with them.
    private func setLevels(_ text: String) -> String? {
        for area in Program.areas { Log.setLevel(nil, of: area) }
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = words.last ?? ""
            guard let level = LogLevel(name: name) else { return "\"\(name)\" is no level; there are error, warning, info, debug" }
            if words.count == 1 {
                Log.level = level
            } else if Program.areas.contains(words[0]) {
                Log.setLevel(level, of: words[0])
            } else {
                return "\"\(words[0])\" is no area; there are \(Program.areas.joined(separator: ", "))"
            }
        }
        return nil
    }

    private func split(_ argument: String) -> (option: String, value: String?) {
        guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else { return (argument, nil) }
        return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
    }

    private func say(_ text: String) -> Int32 {
        print(text)
        return 0
    }

    private func misuse(_ text: String) -> Int32 {
        Environment.complain("vitrine-agent: \(text); see vitrine-agent --help\n")
        return 2
    }
}
