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

    @Test(
        arguments: [
            ("\"max-size\" is more than 16383 pixels", "--max-size is more than 16383 pixels"),
            ("\"masks\" holds 300 parts", "--mask holds 300 parts"),
            ("\"Layout\" is \"x\"; there are grid", "--layout is \"x\"; there are grid"),
            ("persist \"forever\" is not possible here", "--remember \"forever\" is not possible here"),
            (
                "audio, persist cannot change while the share is under way: x",
                "--audio, --remember cannot change while the share is under way: x"
            ),
            ("the picker of /a is open", "the picker of /a is open"), ("\"", "\""), ("", ""),
        ] as [(String, String)])
    func refusalsNameOptions(theirs: String, ours: String) { #expect(Remedy.namingOptions(theirs) == ours) }

    @Test(arguments: ["stopped", "ended-by-desktop", "owner-left"])
    func wishedEndsAreNoFailures(reason: String) { #expect(Reason(name: reason, detail: "").exitCode == .done) }

    @Test(
        arguments: [
            ("portal-lost", 4), ("pipewire-lost", 4), ("agent-exit", 4), ("source-removed", 1), ("failed", 1), ("of-a-newer-agent", 1),
        ] as [(String, Int32)])
    func otherEndsAre(reason: String, code: Int32) {
        #expect(Reason(name: reason, detail: "").exitCode.rawValue == code)
        #expect(Reason(name: reason, detail: "why").sentence.contains("(\(reason)): why"))
    }
}
