// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport
import Testing

@testable import Portal

/// The driver against a fake portal that fails: what the caller hears, that nothing stays open, and that the next start works.
@Suite(.serialized) struct PortalFailureTests {
    // Faults: B38
    @Test(arguments: FakePortal.Step.requests, [1, 2, 3] as [UInt32]) func responses(step: FakePortal.Step, code: UInt32) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].code = code
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        rig.settle()
        #expect(rig.summaries == (step == .start ? ["pickerOpened"] : []) + [code == 1 ? "cancelled" : "failed"])
        #expect(rig.isNothingOpen)
        #expect(rig.nextStartWorks())
    }

    private static let malformed: [(FakePortal.Step, [Value])] = [
        (.createSession, [.uint32(0), .options([:])]),
        (.createSession, [.uint32(0), .options(["session_handle": .string("/org/freedesktop/portal/desktop/session/1_999/theirs")])]),
        (.createSession, [.string("0")]), (.selectSources, []), (.selectSources, [.uint32(0), .string("")]),
        (.start, [.uint32(0), .options([:])]), (.start, [.uint32(0), .options(["streams": .array(of: "(ua{sv})", [])])]),
        (.start, [.uint32(0), .options(["streams": .strings(["44"])])]),
        (.start, [.uint32(0), .options(["streams": .array(of: "(ua{sv})", [.structure([.uint32(.max), .options([:])])])])]),
    ]

    @Test(arguments: malformed.indices) func malformedResults(index: Int) throws {
        let (step, arguments) = Self.malformed[index]
        let rig = try PortalRig()
        rig.fake.knobs[step].arguments = arguments
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        guard case .malformed? = rig.events.last?.error else { return #expect(Bool(false), "\(rig.events)") }
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.nextStartWorks())
    }

    @Test(arguments: FakePortal.Step.allCases) func errorsOfCalls(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].reply = .error(name: StandardError.failed, message: "Invalid session")
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        guard case .refused(let at, StandardError.failed, "Invalid session")? = rig.events.last?.error else {
            return #expect(Bool(false), "\(rig.events)")
        }
        #expect(at.rawValue == step.rawValue)
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.nextStartWorks())
    }

    // Faults: B40
    @Test(arguments: FakePortal.Step.allCases) func callsThatAreNeverAnswered(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        #expect(rig.nextStartWorks())
        rig.portal.callLimit = .milliseconds(100)
        rig.fake.knobs[step].reply = .never
        rig.fake.knobs[step].moment = .never
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        guard case .unresponsive(let at)? = rig.events.last?.error else { return #expect(Bool(false), "\(rig.events)") }
        #expect(at.rawValue == step.rawValue)
        #expect(rig.wait(until: { rig.isNothingOpen }))
        rig.portal.callLimit = .seconds(60)
        #expect(rig.nextStartWorks())
    }

    @Test func aPickerThatNobodyAnswers() throws {
        let rig = try PortalRig()
        rig.fake.knobs[.start].moment = .never
        var options = CastOptions()
        options.timeout = .milliseconds(100)
        rig.start(options)
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.events.last?.error == .timedOut)
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.nextStartWorks())
    }

    // MARK: Absence

    @Test func noPortal() throws {
        let rig = try PortalRig(isPresent: false)
        for _ in 0..<2 {
            rig.start()
            #expect(rig.wait(until: { rig.isOver }))
            guard case .noPortal? = rig.events.last?.error else { return #expect(Bool(false), "\(rig.events)") }
        }
        try rig.fake.takeName()
        #expect(rig.nextStartWorks())
    }

    @Test func aPortalThatDoesNotStart() throws {
        let rig = try PortalRig(services: [FakePortal.name: "/bin/false"], isPresent: false)
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        guard case .noPortal? = rig.events.last?.error else { return #expect(Bool(false), "\(rig.events)") }
    }

    // Faults: B40
    @Test func aPortalThatStartsTooSlowly() throws {
        let rig = try PortalRig(services: [FakePortal.name: "/bin/sleep 20"], isPresent: false)
        rig.portal.callLimit = .milliseconds(100)
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.events.last?.error == .unresponsive(.properties))
        rig.portal.callLimit = .seconds(60)
        try rig.fake.takeName()
        #expect(rig.nextStartWorks())
    }

    // Faults: B41
    @Test func aPortalWithoutAScreenCast() throws {
        let rig = try PortalRig(offersScreenCast: false)
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        guard case .noScreenCast? = rig.events.last?.error else { return #expect(Bool(false), "\(rig.events)") }
        #expect(rig.portal.properties == nil)
        // A backend comes, and the portal is started again.
        rig.fake.leave()
        try rig.restart()
        #expect(rig.nextStartWorks())
    }

    // MARK: Ends

    // Faults: B44
    @Test(arguments: FakePortal.Step.requests) func closedWhileARequestIsOpen(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].moment = .released
        rig.start()
        #expect(rig.wait(until: { rig.fake.heldCount == 1 }))
        rig.settle()
        guard let cast = rig.cast, let session = cast.machine.sessionPath else { return #expect(Bool(false)) }
        // Neither what is another's nor what another says.
        rig.fake.emitClosed("/org/freedesktop/portal/desktop/session/1_999/theirs", to: rig.client.uniqueName)
        let stranger = try FakePortal(rig.bus.address, on: rig.loop)
        stranger.emitClosed(session, to: rig.client.uniqueName)
        if let request = rig.fake.requests.keys.first {
            stranger.connection.emit(
                path: request, interface: "org.freedesktop.portal.Request", member: "Response", arguments: [.uint32(1), .options([:])],
                to: rig.client.uniqueName)
        }
        _ = try stranger.connection.callAndWait(
            MethodCall(destination: .bus, path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "GetId"))
        rig.settle()
        #expect(!rig.isOver)

        if step == .createSession {
            rig.fake.emitClosed(session, to: rig.client.uniqueName)
        } else {
            rig.fake.closeSessions(announcements: 2)
        }
        #expect(rig.wait(until: { rig.isOver }))
        rig.settle()
        #expect(rig.summaries.last == "closed")
        #expect(rig.isNothingOpen)
        #expect(rig.nextStartWorks())
    }

    // Faults: B44
    @Test func closedWhileStreaming() throws {
        let rig = try PortalRig()
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        rig.fake.closeSessions(announcements: 2)
        #expect(rig.wait(until: { rig.isOver }))
        rig.settle()
        #expect(rig.summaries == ["pickerOpened", "granted", "closed"])
        // There is nothing left to close.
        #expect(rig.fake.closed.isEmpty)
        #expect(rig.nextStartWorks())
    }

    // Faults: B42 B47
    @Test(arguments: FakePortal.Step.allCases) func thePortalLeavesAtACall(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].reply = .leave
        rig.start()
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.summaries.last == "portalLost")
        rig.settle()
        #expect(rig.summaries.filter { $0 == "portalLost" }.count == 1)
        try rig.restart()
        #expect(rig.nextStartWorks())
    }

    @Test(arguments: FakePortal.Step.requests) func thePortalLeavesWhileARequestIsOpen(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].moment = .released
        rig.start()
        #expect(rig.wait(until: { rig.fake.heldCount == 1 }))
        rig.settle()
        rig.fake.leave()
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.summaries.last == "portalLost")
        try rig.restart()
        #expect(rig.nextStartWorks())
    }

    // Faults: B45
    @Test func thePortalLeavesWhileStreaming() throws {
        let rig = try PortalRig()
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        rig.fake.leave()
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.summaries == ["pickerOpened", "granted", "portalLost"])
        try rig.restart()
        #expect(rig.nextStartWorks())
    }

    // Faults: B45
    @Test func thePortalIsReplaced() throws {
        let rig = try PortalRig()
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        let old = rig.fake
        old.connection.releaseName(FakePortal.name)
        try rig.restart()
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.summaries.last == "portalLost")
        #expect(rig.nextStartWorks())
    }

    // MARK: Closing

    @Test(arguments: FakePortal.Step.requests, [false, true])
    func closingAtEachRequest(step: FakePortal.Step, isReplyMissing: Bool) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].moment = .released
        if isReplyMissing { rig.fake.knobs[step].reply = .never }
        rig.start()
        #expect(rig.wait(until: { rig.fake.heldCount == 1 }))
        rig.settle()
        rig.cast?.close()
        let heard = rig.events.count
        #expect(rig.wait(until: { rig.isNothingOpen }))
        rig.fake.release()
        rig.settle()
        #expect(rig.events.count == heard && rig.isNothingOpen)
        #expect(rig.nextStartWorks())
    }

    @Test(arguments: [FakePortal.Moment.afterReply, .beforeReply, .released])
    func aSessionThatComesTooLate(moment: FakePortal.Moment) throws {
        let rig = try PortalRig()
        rig.fake.knobs[.createSession].moment = moment
        rig.fake.knobs.closesRequests = false
        rig.start()
        // The call is there, and nothing of it has come back yet: one turn of the loop hands it to the portal.
        #expect(rig.wait(until: { rig.count(of: .createSession) == 1 }))
        rig.cast?.close()
        if case .released = moment { rig.fake.release() }
        rig.settle()
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.events.isEmpty)
        #expect(rig.nextStartWorks())
    }

    @Test(arguments: malformed.indices) func answersThatAreNoneAndComeTooLate(index: Int) throws {
        let (step, arguments) = Self.malformed[index]
        let rig = try PortalRig()
        rig.fake.knobs[step].arguments = arguments
        rig.fake.knobs[step].moment = .released
        rig.fake.knobs.closesRequests = false
        rig.start()
        #expect(rig.wait(until: { rig.fake.heldCount == 1 }))
        rig.cast?.close()
        rig.fake.release()
        rig.settle()
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.nextStartWorks())
    }

    @Test func closingWhileTheRemoteIsOpened() throws {
        let rig = try PortalRig()
        rig.fake.knobs[.openRemote].reply = .never
        rig.start()
        #expect(rig.wait(until: { rig.count(of: .openRemote) == 1 }))
        rig.cast?.close()
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.summaries == ["pickerOpened"])
        #expect(rig.nextStartWorks())
    }

    // Faults: B47
    @Test func closesThatAreNeverAnswered() throws {
        let rig = try PortalRig()
        rig.fake.knobs.answersClose = false
        rig.fake.knobs[.start].moment = .never
        rig.start()
        #expect(rig.wait(until: { rig.summaries == ["pickerOpened"] }))
        rig.cast?.close()
        rig.fake.knobs[.start].moment = .afterReply
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        rig.cast?.close()
        #expect(rig.wait(until: { rig.isNothingOpen }))
        #expect(rig.nextStartWorks())
    }

    @Test func aBusThatGoes() throws {
        let rig = try PortalRig()
        rig.fake.knobs[.start].moment = .never
        rig.fake.knobs[.start].reply = .never
        rig.start()
        #expect(rig.wait(until: { rig.count(of: .start) == 1 }))
        rig.client.close()
        #expect(rig.wait(until: { rig.isOver }))
        #expect(rig.events.last?.error == .disconnected)
    }
}
