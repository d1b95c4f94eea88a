// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport
import Testing

@testable import Portal

/// The driver against a fake portal on a bus of its own: the ways on which it succeeds, and what it shows.
@Suite(.serialized) struct ScreenCastPortalTests {
    @Test func grantsAndCloses() throws {
        let rig = try PortalRig()
        rig.fake.knobs.streams = [(44, ["id": .string("a"), "size": .structure([.int32(640), .int32(480)])])]
        rig.start()
        #expect(rig.events.isEmpty)
        #expect(rig.wait(until: { rig.isGranted }))
        #expect(rig.summaries == ["pickerOpened", "granted"])
        #expect(rig.fake.calls.map(\.step) == [.createSession, .selectSources, .start, .openRemote])
        #expect(rig.grant?.streams.first?.id == "a")
        #expect(rig.grant?.streams.first?.logicalSize == CastStream.LogicalSize(width: 640, height: 480))
        #expect(rig.grant?.restoreToken == "token-1")
        #expect(rig.grant?.cursorMode == .embedded)
        #expect((rig.grant?.remote.raw ?? -1) >= 0)
        #expect(rig.fake.sessions.count == 1 && rig.fake.requests.isEmpty)
        rig.cast?.close()
        rig.cast?.close()
        #expect(rig.wait(until: { rig.isNothingOpen }))
        rig.settle()
        #expect(rig.fake.closed.count == 1)
        #expect(rig.summaries == ["pickerOpened", "granted"])
        #expect(rig.nextStartWorks())
    }

    @Test func asksNothingOfThePortalBeforeAStart() throws {
        let rig = try PortalRig(isPresent: false)
        var shown: [PortalProperties] = []
        rig.portal.onPropertiesChanged = { shown.append($0) }
        rig.settle()
        #expect(!rig.portal.isRunning)
        try rig.fake.takeName()
        #expect(rig.wait(until: { rig.portal.isRunning }))
        rig.settle()
        #expect(rig.fake.propertyReads == 0 && rig.portal.properties == nil)

        #expect(rig.nextStartWorks())
        let properties = PortalProperties(version: 4, sourceTypes: [.monitor, .window], cursorModes: CursorModes(rawValue: 7))
        #expect(rig.portal.properties == properties && shown == [properties])
        #expect(rig.nextStartWorks())
        #expect(rig.fake.propertyReads == 1)
    }

    /// The first that a portal hears, once; a portal that starts anew knows nothing of it.
    @Test func saysWhichApplicationItIs() throws {
        let rig = try PortalRig()
        rig.settle()
        #expect(rig.fake.registrations.isEmpty)
        #expect(rig.nextStartWorks() && rig.nextStartWorks())
        #expect(rig.fake.registrations.map(\.application) == ["org.vitrine.ScreenShare1"])
        #expect(rig.fake.registrations.first?.earlierCalls == 0)
        rig.fake.leave()
        #expect(rig.wait(until: { !rig.portal.isRunning }))
        try rig.restart()
        #expect(rig.nextStartWorks())
        #expect(rig.fake.registrations.count == 1)
    }

    @Test func readsThePropertiesOfANewPortal() throws {
        let rig = try PortalRig()
        #expect(rig.nextStartWorks())
        var shown: [PortalProperties] = []
        rig.portal.onPropertiesChanged = { shown.append($0) }
        rig.fake.leave()
        #expect(rig.wait(until: { !rig.portal.isRunning }))
        // As last known.
        #expect(rig.portal.properties?.version == 4)
        try rig.restart()
        rig.fake.knobs.version = 6
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        #expect(shown.map(\.version) == [6] && rig.portal.properties?.version == 6)
    }

    @Test func waitsForAPortalThatTheBusStarts() throws {
        let rig = try PortalRig(services: [FakePortal.name: "/bin/sleep 20"], isPresent: false)
        rig.start()
        rig.settle()
        #expect(rig.events.isEmpty)
        try rig.fake.takeName()
        #expect(rig.wait(until: { rig.isGranted }))
    }

    @Test func severalCastsAtOnce() throws {
        let rig = try PortalRig()
        rig.fake.knobs[.start].moment = .released
        var ends: [String] = []
        let casts = (0..<3).map { index in
            rig.portal.start(CastOptions()) { event in ends.append("\(index) \(event.summary)") }
        }
        #expect(rig.wait(until: { rig.fake.heldCount == 3 }))
        #expect(rig.fake.sessions.count == 3)
        rig.fake.release()
        #expect(rig.wait(until: { ends.count == 6 }))
        casts[1].close()
        #expect(rig.wait(until: { rig.fake.sessions.count == 2 }))
        rig.portal.closeAll()
        rig.client.flush()
        #expect(rig.wait(until: { rig.isNothingOpen }))
        rig.settle()
        #expect(ends.sorted() == (0..<3).flatMap { ["\($0) granted", "\($0) pickerOpened"] })
    }

    @Test func aReceiverMayStartAndCloseInsideOfAnEvent() throws {
        let rig = try PortalRig()
        var casts: [Cast] = []
        var heard: [String] = []
        func begin() {
            casts.append(
                rig.portal.start(CastOptions()) { event in
                    heard.append(event.summary)
                    casts.last?.close()
                    if casts.count < 3 { begin() }
                })
        }
        begin()
        #expect(rig.wait(until: { heard.count == 3 && rig.isNothingOpen }))
        rig.settle()
        #expect(heard == ["pickerOpened", "pickerOpened", "pickerOpened"] && rig.isNothingOpen)
        // Each holds the others by its receiver.
        casts = []
    }

    @Test func aCastThatIsClosedBeforeItBeginsAsksNothing() throws {
        let rig = try PortalRig()
        rig.start().close()
        rig.settle()
        #expect(rig.fake.propertyReads == 0 && rig.events.isEmpty)
        #expect(rig.nextStartWorks())
    }

    // MARK: Versions and masks

    @Test(arguments: 1...6 as ClosedRange<UInt32>) func everyVersion(version: UInt32) throws {
        let rig = try PortalRig()
        rig.fake.knobs.version = version
        if version == 1 { rig.fake.knobs.cursorModes = nil }
        var options = CastOptions()
        options.persistMode = .forever
        options.restoreToken = "token-0"
        options.multiple = true
        rig.fake.knobs.streams = [(44, [:]), (45, ["pipewire-serial": .uint64(1_000)])]
        rig.start(options)
        #expect(rig.wait(until: { rig.isGranted }))
        let wishes = rig.fake.calls[1].options
        #expect((wishes["cursor_mode"] != nil) == (version >= 2))
        #expect((wishes["persist_mode"] != nil) == (version >= 4))
        #expect((wishes["restore_token"] != nil) == (version >= 4))
        #expect(rig.grant?.streams.map(\.serial) == [nil, 1_000])
        #expect(rig.grant?.cursorMode == (version == 1 ? .hidden : .embedded))
    }

    @Test(arguments: [0, 1, 3, 7] as [UInt32]) func everyMask(mask: UInt32) throws {
        let rig = try PortalRig()
        (rig.fake.knobs.cursorModes, rig.fake.knobs.sourceTypes) = (mask, mask)
        rig.start()
        #expect(rig.wait(until: { rig.isGranted || rig.isOver }))
        if mask == 0 {
            #expect(rig.events.last?.error == .noSuchSource(asked: [.monitor, .window], available: []))
            #expect(rig.fake.calls.isEmpty)
        } else {
            #expect(rig.fake.calls[1].options["types"] == .uint32(mask & 3))
            #expect(rig.grant?.cursorMode == (mask == 1 ? .hidden : .embedded))
        }
        var options = CastOptions()
        options.cursorMode = .metadata
        options.cursorModeIsRequired = true
        rig.start(options)
        #expect(rig.wait(until: { rig.isGranted || rig.isOver }))
        if mask == 1 || mask == 3 {
            #expect(rig.events.last?.error == .cursorModeUnavailable(asked: .metadata, available: CursorModes(rawValue: mask)))
        } else {
            #expect(rig.isGranted == (mask == 7))
        }
    }

    @Test(arguments: [true, false]) func severalStreams(multiple: Bool) throws {
        let rig = try PortalRig()
        rig.fake.knobs.streams = [(44, ["source_type": .uint32(2)]), (45, [:]), (46, [:])]
        var options = CastOptions()
        options.multiple = multiple
        rig.start(options)
        #expect(rig.wait(until: { rig.isGranted }))
        #expect(rig.grant?.streams.map(\.node) == (multiple ? [44, 45, 46] : [44]))
    }

    // MARK: Orders of messages

    @Test(arguments: FakePortal.Step.requests) func responsesBeforeReplies(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].moment = .beforeReply
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        rig.fake.knobs[step].code = 1
        rig.start()
        #expect(rig.wait(until: { rig.summaries.last == "cancelled" }))
        rig.fake.knobs[step].reply = .never
        rig.fake.knobs[step].code = 0
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
    }

    @Test(arguments: FakePortal.Step.requests) func responsesThatComeTwice(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].count = 2
        rig.start()
        #expect(rig.wait(until: { rig.isGranted }))
        rig.settle()
        #expect(rig.summaries == ["pickerOpened", "granted"])
        #expect(rig.fake.calls.count == 4)
    }

    @Test(arguments: FakePortal.Step.requests, [FakePortal.Moment.beforeReply, .afterReply, .released])
    func requestsAtOtherPaths(step: FakePortal.Step, moment: FakePortal.Moment) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].reply = .handle("/org/freedesktop/portal/desktop/request/1/elsewhere")
        rig.fake.knobs[step].moment = moment
        rig.start()
        if case .released = moment {
            #expect(rig.wait(until: { rig.fake.heldCount == 1 }))
            rig.fake.release()
        }
        #expect(rig.wait(until: { rig.isGranted }))
        #expect(rig.nextStartWorks())
    }

    @Test(arguments: FakePortal.Step.requests) func requestsOutsideOfThePortal(step: FakePortal.Step) throws {
        let rig = try PortalRig()
        rig.fake.knobs[step].reply = .handle("/somewhere/1")
        rig.fake.knobs[step].moment = .released
        rig.start()
        #expect(rig.wait(until: { rig.fake.heldCount == 1 }))
        // The reply has to be there, and the match rule that follows it.
        rig.settle()
        rig.fake.release()
        #expect(rig.wait(until: { rig.isGranted }))
    }

    // MARK: Restore tokens

    @Test func aRefusedTokenCostsOneMoreCall() throws {
        let rig = try PortalRig()
        rig.fake.knobs.knownToken = "token-1"
        var options = CastOptions()
        options.restoreToken = "stale"
        rig.start(options)
        #expect(rig.wait(until: { rig.isGranted }))
        #expect(rig.count(of: .selectSources) == 2 && rig.count(of: .createSession) == 1)
        #expect(rig.grant?.restoreToken == "token-1")

        options.restoreToken = rig.grant?.restoreToken
        rig.fake.knobs.restoreToken = nil
        rig.start(options)
        #expect(rig.wait(until: { rig.isGranted }))
        #expect(rig.count(of: .selectSources) == 3)
        #expect(rig.grant?.restoreToken == nil)
    }
}
