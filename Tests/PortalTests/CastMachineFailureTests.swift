// SPDX-License-Identifier: MIT
import DBus
import Loop
import Testing

@testable import Portal

/// Every failure at every step: what the caller hears, and what is closed.
@Suite struct CastMachineFailureTests {
    private let step = { (stage: Stage) in stage.step ?? .properties }

    private func closings(_ stage: Stage) -> [String] { stage.hasSession ? ["close session"] : [] }

    // MARK: Responses

    @Test(arguments: Stage.requests) func response1IsThePersonsNo(stage: Stage) {
        var rig = MachineRig(at: stage)
        #expect(rig.respond(1) == closings(stage) + ["timer off", "report cancelled", "finish"])
    }

    @Test(arguments: Stage.requests, [2, 3, 4_294_967_295] as [UInt32]) func otherResponsesAreFailures(stage: Stage, code: UInt32) {
        var rig = MachineRig(at: stage)
        #expect(rig.respond(code) == closings(stage) + ["timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .ended(step(stage)))
    }

    private static let unreadable: [[Value]] = [
        [], [.uint32(0)], [.string("0"), .options([:])], [.uint32(0), .string("results")], [.int32(1), .options([:])],
        [.uint32(0), .array(of: "s", [])],
    ]

    @Test(arguments: Stage.requests, unreadable) func unreadableResponses(stage: Stage, arguments: [Value]) {
        var rig = MachineRig(at: stage)
        // Also at CreateSession: it may have been a success.
        #expect(rig.send(.response(rig.handle, arguments)) == ["close session", "timer off", "report failed", "finish"])
        guard case .malformed(step(stage), _)? = rig.events.last?.error else { return #expect(Bool(false)) }
    }

    private static let badHandles: [Value?] = [
        nil, .string(""), .string("no path"), .uint32(7), .objectPath("/"), .objectPath("/org/freedesktop/portal/desktop/session/1_42"),
        .string("/org/freedesktop/portal/desktop/session/1_421/token"), .objectPath("/org/freedesktop/portal/desktop/session/1_7/token"),
        .objectPath("/org/example/token"),
    ]

    @Test(arguments: badHandles) func sessionHandlesThatCannotBeUsed(handle: Value?) {
        var rig = MachineRig(at: .createAnswered)
        let expected = rig.session
        #expect(rig.respond(0, handle.map { ["session_handle": $0] } ?? [:]) == ["close session", "timer off", "report failed", "finish"])
        guard case .malformed(.createSession, _)? = rig.events.last?.error else { return #expect(Bool(false)) }
        // Never somebody else's session.
        for case .closeSession(let path) in rig.actions { #expect(path == expected) }
    }

    @Test func anotherSessionOfOurOwnIsTaken() {
        let other: ObjectPath = "/org/freedesktop/portal/desktop/session/1_42/other"
        for handle in [Value.objectPath(other), .string(other.text)] {
            var rig = MachineRig(at: .createAnswered)
            rig.respond(0, ["session_handle": handle])
            #expect(rig.arguments(of: .selectSources)?.first == .objectPath(other))
            #expect(rig.send(.sessionClosed(other)).contains("report closed"))
        }
    }

    private static let badStreams: [Value?] = [
        nil, .string("streams"), .array(of: "(ua{sv})", []), .options([:]), .array(of: "u", [.uint32(4)]),
        .array(of: "(u)", [.structure([.uint32(4)])]), .array(of: "(sa{sv})", [.structure([.string("4"), .options([:])])]),
        .array(of: "(us)", [.structure([.uint32(4), .string("")])]),
        MachineRig.streams([(.max, [:])]), MachineRig.streams([(4, [:]), (.max, [:])]),
    ]

    @Test(arguments: badStreams) func streamsThatCannotBeUsed(streams: Value?) {
        var rig = MachineRig(at: .startAnswered)
        #expect(rig.respond(0, streams.map { ["streams": $0] } ?? [:]) == ["close session", "timer off", "report failed", "finish"])
        guard case .malformed(.start, _)? = rig.events.last?.error else { return #expect(Bool(false)) }
    }

    // MARK: Replies

    @Test(arguments: [Stage.creating, .selecting, .starting]) func errorsOfCalls(stage: Stage) {
        var rig = MachineRig(at: stage)
        #expect(rig.fail("org.example.No", "no") == closings(stage) + ["timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .refused(step(stage), name: "org.example.No", message: "no"))
    }

    @Test(arguments: [Stage.creating, .selecting, .starting], ["UnknownMethod", "UnknownInterface", "UnknownObject"])
    func callsThatThePortalLacks(stage: Stage, error: String) {
        var rig = MachineRig(at: stage)
        rig.fail("org.freedesktop.DBus.Error.\(error)", "no")
        #expect(rig.events.last?.error == .noScreenCast("no"))
    }

    @Test(arguments: [Stage.creating, .selecting, .starting, .connecting], ["ServiceUnknown", "NameHasNoOwner", "NoReply"])
    func thePortalLeftBeforeItsAnswer(stage: Stage, error: String) {
        var rig = MachineRig(at: stage)
        #expect(rig.fail("org.freedesktop.DBus.Error.\(error)") == ["timer off", "report portalLost", "finish"])
    }

    @Test(arguments: [Stage.creating, .selecting, .starting, .connecting]) func theBusIsGone(stage: Stage) {
        var rig = MachineRig(at: stage)
        #expect(rig.send(.replied(rig.call, .failure(.disconnected))) == ["timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .disconnected)
    }

    @Test func callsWithoutAnswer() {
        var rig = MachineRig(at: .creating)
        // A session may still come of it.
        let timedOut = CastMachine.Event.replied(rig.call, .failure(.timedOut("CreateSession")))
        #expect(rig.send(timedOut) == ["close request", "timer 60 s", "report failed"])
        #expect(rig.events.last?.error == .unresponsive(.createSession))
        #expect(rig.respond(0, ["session_handle": .string(rig.session.text)]) == ["close session", "timer off", "finish"])

        for stage in [Stage.selecting, .starting] {
            var rig = MachineRig(at: stage)
            let timedOut = CastMachine.Event.replied(rig.call, .failure(.timedOut("member")))
            #expect(rig.send(timedOut) == ["close request", "close session", "timer off", "report failed", "finish"])
            #expect(rig.events.last?.error == .unresponsive(step(stage)))
        }
        rig = MachineRig(at: .connecting)
        let remoteTimedOut = CastMachine.Event.replied(rig.call, .failure(.timedOut("OpenPipeWireRemote")))
        #expect(rig.send(remoteTimedOut) == ["close session", "timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .unresponsive(.openRemote))
    }

    @Test func aSessionThatNeverComes() {
        var rig = MachineRig(at: .createAnswered)
        #expect(rig.send(.timerFired) == ["close request", "timer 60 s", "report failed"])
        #expect(rig.events.last?.error == .unresponsive(.createSession))
        #expect(rig.send(.timerFired) == ["timer off", "finish"])
    }

    @Test(arguments: [Stage.creating, .selecting, .starting], [[], [.string("no path")], [.uint32(1)]] as [[Value]])
    func repliesWithoutAHandle(stage: Stage, values: [Value]) {
        var rig = MachineRig(at: stage)
        rig.reply(values)
        #expect(rig.events.last?.error == .malformed(step(stage), "no request handle"))
        #expect(rig.actions.contains { $0.summary == "close request" })
        #expect(rig.actions.contains { $0.summary == "close session" } == stage.hasSession)
    }

    @Test(arguments: [[], [.uint32(3)], [.string("fd")]] as [[Value]]) func remotesThatAreNone(values: [Value]) {
        var rig = MachineRig(at: .connecting)
        #expect(rig.reply(values) == ["close session", "timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .malformed(.openRemote, "no descriptor"))
    }

    @Test func errorsOfTheProperties() {
        let errors: [(String, PortalError)] = [
            ("org.freedesktop.DBus.Error.ServiceUnknown", .noPortal("no")), ("org.freedesktop.DBus.Error.NameHasNoOwner", .noPortal("no")),
            ("org.freedesktop.DBus.Error.Spawn.ChildExited", .noPortal("no")),
            ("org.freedesktop.DBus.Error.UnknownInterface", .noScreenCast("no")),
            ("org.freedesktop.DBus.Error.UnknownMethod", .noScreenCast("no")),
            ("org.freedesktop.DBus.Error.UnknownObject", .noScreenCast("no")),
            ("org.freedesktop.DBus.Error.InvalidArgs", .noScreenCast("no")),
            ("org.freedesktop.DBus.Error.NoReply", .unresponsive(.properties)),
            ("org.example.No", .refused(.properties, name: "org.example.No", message: "no")),
        ]
        for (name, expected) in errors {
            let error = PortalError(.remote(name: name, message: "no"), at: .properties)
            #expect(error == expected)
            var rig = MachineRig(at: .reading)
            #expect(rig.send(.propertiesRead(.failure(error))) == ["timer off", "report failed", "finish"])
        }
        #expect(PortalError(.timedOut("GetAll"), at: .properties) == .unresponsive(.properties))
        #expect(PortalError(.disconnected, at: .properties) == .disconnected)
    }

    @Test func noMatchRule() {
        var rig = MachineRig(at: .subscribing)
        #expect(rig.send(.listening(.disconnected)) == ["timer off", "report failed", "finish"])
    }

    // MARK: The portal ends it

    @Test(arguments: Stage.allCases) func thePortalIsLost(stage: Stage) {
        var rig = MachineRig(at: stage)
        switch stage {
        case .ended: #expect(rig.send(.portalLost) == [])
        case .closing: #expect(rig.send(.portalLost) == ["timer off", "finish"])
        default: #expect(rig.send(.portalLost) == ["timer off", "report portalLost", "finish"])
        }
        #expect(rig.send(.portalLost) == [])
    }

    @Test(arguments: Stage.allCases) func theSessionIsClosed(stage: Stage) {
        var rig = MachineRig(at: stage)
        let session = rig.session
        #expect(rig.send(.sessionClosed("/org/freedesktop/portal/desktop/session/1_42/other")) == [])
        let actions = rig.send(.sessionClosed(session))
        switch stage {
        case .creating, .createAnswered: #expect(actions == ["close request", "timer 60 s", "report closed"])
        // Nobody knows where the request is.
        case .selecting, .starting: #expect(actions == ["close request", "timer 60 s", "report closed"])
        case .selectAnswered, .startAnswered: #expect(actions == ["close request", "timer off", "report closed", "finish"])
        case .connecting, .streaming: #expect(actions == ["timer off", "report closed", "finish"])
        case .initial, .reading, .subscribing, .closing, .ended: #expect(actions == [])
        }
        #expect(rig.send(.sessionClosed(session)) == [])
    }

    // MARK: The caller ends it

    @Test(arguments: Stage.allCases) func theCallerCloses(stage: Stage) {
        var rig = MachineRig(at: stage)
        let actions = rig.send(.closeRequested)
        switch stage {
        case .initial, .reading, .subscribing: #expect(actions == ["timer off", "finish"])
        case .creating, .createAnswered: #expect(actions == ["close request", "timer 60 s"])
        case .selecting, .starting: #expect(actions == ["close request", "close session", "timer 60 s"])
        case .selectAnswered, .startAnswered: #expect(actions == ["close request", "close session", "timer off", "finish"])
        case .connecting, .streaming: #expect(actions == ["close session", "timer off", "finish"])
        case .closing, .ended: #expect(actions == [])
        }
        #expect(rig.machine.isOver)
        #expect(rig.send(.closeRequested) == [])
        #expect(rig.events.isEmpty)
    }

    @Test func aSessionThatComesTooLateIsClosed() {
        var rig = MachineRig(at: .createAnswered)
        let session = rig.session
        rig.send(.closeRequested)
        #expect(rig.respond(0, ["session_handle": .string(session.text)]) == ["close session", "timer off", "finish"])

        // The reply comes after the end, too, and says that the request is elsewhere.
        rig = MachineRig(at: .creating)
        rig.send(.closeRequested)
        #expect(rig.reply([.objectPath("/elsewhere")]) == ["close request", "listen also"])
        #expect(rig.respond(0, at: "/elsewhere") == ["close session", "timer off", "finish"])

        // And after its response.
        rig = MachineRig(at: .creating)
        rig.send(.closeRequested)
        #expect(rig.respond(0, at: "/elsewhere") == [])
        #expect(rig.reply([.objectPath("/elsewhere")]) == ["close request", "close session", "timer off", "finish"])
    }

    @Test func aRequestThatOpensTooLateIsClosed() {
        for stage in [Stage.selecting, .starting] {
            var rig = MachineRig(at: stage)
            rig.send(.closeRequested)
            #expect(rig.reply() == ["close request", "timer off", "finish"])
        }
        for stage in [Stage.creating, .selecting, .starting] {
            var rig = MachineRig(at: stage)
            rig.send(.closeRequested)
            #expect(rig.fail("org.example.No") == ["timer off", "finish"])
        }
    }

    @Test func aRemoteThatComesTooLateIsDropped() {
        var rig = MachineRig(at: .connecting)
        let call = rig.call
        rig.send(.closeRequested)
        #expect(rig.send(.replied(call, .success([.descriptor(FileDescriptor(owning: -1))]))) == [])
    }

    @Test func everyErrorSaysARemedy() {
        let errors: [PortalError] = [
            .noPortal("x"), .noScreenCast("x"), .unresponsive(.start), .noSuchSource(asked: .monitor, available: []),
            .noSuchSource(asked: .monitor, available: .window),
            .cursorModeUnavailable(asked: .metadata, available: CursorModes(rawValue: 3)),
            .refused(.start, name: "a.b", message: "x"), .ended(.start), .malformed(.start, "x"), .timedOut, .disconnected,
        ]
        let texts = errors.map(\.description)
        #expect(Set(texts).count == errors.count)
        #expect(texts[3].contains("offers nothing, but monitor was asked for"))
        #expect(texts[5].contains("only: hidden, embedded"))
    }
}
