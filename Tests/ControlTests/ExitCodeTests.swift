// SPDX-License-Identifier: MIT
import DBus
import Testing

@testable import vitrinectl

@Suite struct ExitCodeTests {
    @Test(
        arguments: [
            ("NotListening", 1), ("Busy", 1), ("NotActive", 1), ("Cancelled", 3), ("TimedOut", 5), ("NotAllowed", 1),
            ("PortalUnavailable", 4),
            ("PipeWireUnavailable", 4), ("LimitExceeded", 1), ("Failed", 1), ("SomethingNew", 1),
        ] as [(String, Int32)])
    func errorsOfTheAgent(name: String, code: Int32) {
        #expect(ExitCode(errorName: "org.vitrine.ScreenShare1.Error.\(name)").rawValue == code)
    }

    @Test(
        arguments: [
            ("InvalidArgs", 2), ("ServiceUnknown", 4), ("NameHasNoOwner", 4), ("Spawn.ChildExited", 4), ("Spawn.ServiceNotFound", 4),
            ("NoReply", 5),
            ("UnknownObject", 1), ("AccessDenied", 1),
        ] as [(String, Int32)])
    func errorsOfTheBus(name: String, code: Int32) {
        #expect(ExitCode(errorName: "org.freedesktop.DBus.Error.\(name)").rawValue == code)
    }

    @Test func errorsOfTheConnection() {
        #expect(ExitCode(.timedOut("SetScreenShare")) == .timedOut)
        #expect(ExitCode(.cannotConnect("")) == .unavailable)
        #expect(ExitCode(.disconnected) == .failed)
    }

    @Test func anAbsentAgentIsExplained() {
        let failure = Failure(.remote(name: "org.freedesktop.DBus.Error.ServiceUnknown", message: "The name is not activatable"))
        #expect(failure.code == .unavailable)
        #expect(failure.message.contains("vitrine-agent"))
        #expect(failure.message.contains("doctor"))
    }

    @Test func theAgentsOwnWordsAreShown() {
        let failure = Failure(.remote(name: "org.vitrine.ScreenShare1.Error.Busy", message: "Another picker is open.\u{7}"))
        #expect(failure == .ended(.failed, "Another picker is open.\\u{7}"))
    }

    @Test(arguments: ["stopped", "ended-by-desktop", "source-removed", "owner-left"])
    func wishedEndsAreNoFailures(reason: String) { #expect(Reason(name: reason, detail: "").exitCode == .done) }

    @Test(arguments: ["portal-lost", "pipewire-lost", "agent-exit", "failed", "of-a-newer-agent"])
    func otherEndsAre(reason: String) {
        #expect(Reason(name: reason, detail: "").exitCode == .failed)
        #expect(Reason(name: reason, detail: "why").sentence.contains("(\(reason)): why"))
    }
}
