// SPDX-License-Identifier: MIT
import DBus
import Loop
import Testing

@testable import Portal

/// The ways on which a cast succeeds, and what is asked of the portal on them.
@Suite struct CastMachineCourseTests {
    @Test func succeedsStepByStep() {
        var rig = MachineRig()
        #expect(rig.send(.begun(nil)) == ["read properties"])
        #expect(rig.send(.propertiesRead(.success(.full))) == ["listen"])
        #expect(rig.send(.listening(nil)) == ["timer 60 s", "call CreateSession"])
        #expect(rig.reply() == [])
        #expect(rig.respond(0, ["session_handle": .string(rig.session.text)]) == ["timer 60 s", "call SelectSources"])
        #expect(rig.reply() == [])
        #expect(rig.respond(0) == ["timer 60 s", "call Start", "report pickerOpened"])
        #expect(rig.reply() == [])
        #expect(rig.respond(0, MachineRig.startResults) == ["timer off", "stop listening", "call OpenPipeWireRemote"])
        #expect(rig.reply([.descriptor(FileDescriptor(owning: -1))]) == ["report granted"])
        #expect(rig.send(.closeRequested) == ["close session", "timer off", "finish"])
    }

    @Test func knownPropertiesAreNotReadAgain() {
        var rig = MachineRig()
        #expect(rig.send(.begun(.full)) == ["listen"])
    }

    @Test func succeedsWhenEachResponseComesBeforeItsReply() {
        var rig = MachineRig(at: .creating)
        let calls = { (rig: MachineRig) in rig.call }
        let created = calls(rig)
        rig.respond(0, ["session_handle": .objectPath(rig.session)])
        #expect(rig.send(.replied(created, .success([.objectPath("/late")]))) == [])
        let selected = calls(rig)
        #expect(rig.respond(0) == ["timer 60 s", "call Start", "report pickerOpened"])
        #expect(rig.send(.replied(selected, .failure(.timedOut("SelectSources")))) == [])
        let started = calls(rig)
        rig.respond(0, MachineRig.startResults)
        #expect(rig.send(.replied(started, .success([]))) == [])
        #expect(rig.reply([.descriptor(FileDescriptor(owning: -1))]) == ["report granted"])
    }

    @Test(arguments: Stage.requests) func aSecondResponseIsIgnored(stage: Stage) {
        var rig = MachineRig(at: stage)
        let handle = rig.handle
        rig.respond(0, ["session_handle": .string(rig.session.text)].merging(MachineRig.startResults) { $1 })
        #expect(rig.respond(1, at: handle) == [])
        #expect(!rig.machine.isOver)
    }

    // Faults: B43
    @Test(arguments: [Stage.creating, .selecting, .starting]) func followsARequestThatIsPutElsewhere(stage: Stage) {
        var rig = MachineRig(at: stage)
        #expect(rig.reply([.objectPath("/elsewhere/1")]) == ["listen also"])
        #expect(rig.respond(1, at: "/elsewhere/2") == [])
        #expect(rig.respond(1, at: "/elsewhere/1").contains("report cancelled"))
    }

    @Test(arguments: [Stage.creating, .selecting, .starting]) func followsARequestElsewhereThatRespondsBeforeItsReply(stage: Stage) {
        var rig = MachineRig(at: stage)
        #expect(rig.respond(2, at: "/elsewhere/2") == [])
        #expect(rig.respond(1, at: "/elsewhere/1") == [])
        #expect(rig.reply([.string("/elsewhere/1")]).contains("report cancelled"))
    }

    @Test func earlyResponsesAreBounded() {
        var rig = MachineRig(at: .creating)
        for index in 0..<100 { rig.respond(1, at: ObjectPath("/elsewhere/\(index)")) }
        guard case .requesting(let request) = rig.machine.state else { return #expect(Bool(false)) }
        #expect(request.early.count == 8)
    }

    // MARK: What is asked

    // Faults: B43
    @Test func asksWithFreshTokens() {
        let rig = MachineRig()
        var tokens: Set<String> = []
        var full = rig
        full.send(.begun(.full))
        full.send(.listening(nil))
        full.respond(0, ["session_handle": .string(full.session.text)])
        full.respond(0)
        let steps: [CastStep] = [.createSession, .selectSources, .start]
        for step in steps { tokens.insert(full.options(of: step)["handle_token"]?.asString ?? "") }
        tokens.insert(full.options(of: .createSession)["session_handle_token"]?.asString ?? "")
        #expect(tokens.count == 4)
        for token in tokens { #expect(ObjectPath("/\(token)") != nil) }
        #expect(full.arguments(of: .start)?.count == 3)
    }

    @Test func expectsHandlesWhereTheSpecificationPutsThem() {
        let machine = CastMachine(options: CastOptions(), caller: ":1.42", makeToken: { "token" })
        #expect(machine.paths.request("token") == "/org/freedesktop/portal/desktop/request/1_42/token")
        #expect(machine.paths.session("token") == "/org/freedesktop/portal/desktop/session/1_42/token")
    }

    @Test(arguments: 1...6 as ClosedRange<UInt32>) func asksOnlyForWhatTheVersionHas(version: UInt32) {
        var options = CastOptions()
        options.restoreToken = "token"
        options.persistMode = .forever
        options.multiple = true
        options.parentWindow = "x11:1f"
        var properties = PortalProperties.full
        properties.version = version
        var rig = MachineRig(options)
        rig.send(.begun(properties))
        rig.send(.listening(nil))
        rig.respond(0, ["session_handle": .string(rig.session.text)])
        let wishes = rig.options(of: .selectSources)
        #expect(wishes["types"] == .uint32(3))
        #expect(wishes["multiple"] == .bool(true))
        #expect(wishes["cursor_mode"] == (version >= 2 ? .uint32(2) : nil))
        #expect(wishes["persist_mode"] == (version >= 4 ? .uint32(2) : nil))
        #expect(wishes["restore_token"] == (version >= 4 ? .string("token") : nil))
        rig.respond(0)
        #expect(rig.arguments(of: .start)?[1] == .string("x11:1f"))
    }

    @Test(arguments: [0, 1, 2, 3, 4, 7, 8] as [UInt32], [1, 2, 3, 4, 7] as [UInt32])
    func masksTheSourceTypes(available: UInt32, asked: UInt32) {
        var options = CastOptions()
        options.types = SourceTypes(rawValue: asked)
        var properties = PortalProperties.full
        properties.sourceTypes = SourceTypes(rawValue: available)
        var rig = MachineRig(options)
        rig.send(.begun(properties))
        if available & asked == 0 {
            #expect(rig.events.last?.error == .noSuchSource(asked: options.types, available: properties.sourceTypes))
            return
        }
        rig.send(.listening(nil))
        rig.respond(0, ["session_handle": .string(rig.session.text)])
        #expect(rig.options(of: .selectSources)["types"] == .uint32(available & asked))
    }

    @Test(arguments: 0...7 as ClosedRange<UInt32>, CursorMode.allCases)
    func settlesTheCursorMode(available: UInt32, asked: CursorMode) {
        for version in [1, 2] as [UInt32] {
            for isRequired in [false, true] {
                var options = CastOptions()
                (options.cursorMode, options.cursorModeIsRequired) = (asked, isRequired)
                let modes = CursorModes(rawValue: version >= 2 ? available : 0)
                var rig = MachineRig(options)
                rig.send(.begun(PortalProperties(version: version, sourceTypes: .monitor, cursorModes: CursorModes(rawValue: available))))
                if isRequired && asked != .hidden && !modes.contains(asked) {
                    #expect(rig.events.last?.error == .cursorModeUnavailable(asked: asked, available: modes))
                    continue
                }
                rig.send(.listening(nil))
                rig.respond(0, ["session_handle": .string(rig.session.text)])
                let settled = modes.contains(asked) ? asked : .hidden
                #expect(rig.machine.cursorMode == settled)
                // A mode that is not advertised is an error of the caller's: left out, the pointer is hidden.
                #expect(rig.options(of: .selectSources)["cursor_mode"] == (modes.contains(settled) ? .uint32(settled.rawValue) : nil))
            }
        }
    }

    @Test func oneStreamWhereOneWasAskedFor() {
        for multiple in [false, true] {
            var options = CastOptions()
            options.multiple = multiple
            var rig = MachineRig(options, at: .starting)
            rig.respond(0, ["streams": MachineRig.streams([(7, [:]), (8, [:]), (9, [:])])])
            rig.reply([.descriptor(FileDescriptor(owning: -1))])
            guard case .granted(let grant)? = rig.events.last else { return #expect(Bool(false)) }
            #expect(grant.streams.map(\.node) == (multiple ? [7, 8, 9] : [7]))
            #expect(grant.restoreToken == nil)
        }
    }

    // MARK: Restore tokens

    // Faults: B48
    @Test(arguments: ["org.freedesktop.portal.Error.InvalidArgument", "org.freedesktop.DBus.Error.InvalidArgs"])
    func aRefusedTokenIsLeftOut(error: String) {
        var options = CastOptions()
        options.restoreToken = "stale"
        var rig = MachineRig(options, at: .selecting)
        #expect(rig.fail(error) == ["timer 60 s", "call SelectSources"])
        #expect(rig.options(of: .selectSources)["restore_token"] == nil)
        #expect(rig.options(of: .selectSources)["types"] == .uint32(3))
        // Once. The second refusal is about something else.
        #expect(rig.fail(error, "no") == ["close session", "timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .refused(.selectSources, name: error, message: "no"))
    }

    // Faults: B48
    @Test func anotherErrorDoesNotCostTheToken() {
        var options = CastOptions()
        options.restoreToken = "good"
        var rig = MachineRig(options, at: .selecting)
        #expect(rig.fail("org.freedesktop.DBus.Error.AccessDenied").last == "finish")
    }

    // MARK: Limits

    @Test func thePickersTimeCountsFromStart() {
        var options = CastOptions()
        options.timeout = .seconds(5)
        var rig = MachineRig(options, at: .createAnswered)
        #expect(rig.respond(0, ["session_handle": .string(rig.session.text)]).first == "timer 60 s")
        #expect(rig.respond(0).first == "timer 5 s")
        rig.reply()
        #expect(rig.send(.timerFired) == ["close request", "close session", "timer off", "report failed", "finish"])
        #expect(rig.events.last?.error == .timedOut)
    }

    /// Who has not answered the call has asked nobody.
    @Test(arguments: [Stage.creating, .selecting, .starting])
    func aPortalThatIsSilentIsNotAPickerThatIsNotAnswered(stage: Stage) {
        var rig = MachineRig(at: stage)
        rig.send(.timerFired)
        guard case .unresponsive? = rig.events.last?.error else { return #expect(Bool(false), "\(rig.events)") }
    }

    @Test func thePickerMayStayForEver() {
        var options = CastOptions()
        options.timeout = nil
        var rig = MachineRig(options, at: .createAnswered)
        #expect(rig.respond(0, ["session_handle": .string(rig.session.text)]).first == "timer off")
        #expect(rig.respond(0).first == "timer off")
    }

    @Test func aLongTimeoutHoldsForPickersThatComeEarly() {
        var options = CastOptions()
        options.timeout = .seconds(600)
        var rig = MachineRig(options, at: .createAnswered)
        #expect(rig.respond(0, ["session_handle": .string(rig.session.text)]).first == "timer 600 s")
        rig.reply()
        rig.send(.timerFired)
        #expect(rig.events.last?.error == .timedOut)
    }
}
