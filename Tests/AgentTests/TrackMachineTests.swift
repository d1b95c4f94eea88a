// SPDX-License-Identifier: MIT
import Contract
import Testing

@testable import Agent

@Suite struct TrackMachineTests {
    private static let gone = End(cause: .sourceRemoved, detail: "gone")
    private static let stopped = End(cause: .stopped, detail: "stopped by a test")

    private func choosing() throws -> TrackMachine {
        var machine = TrackMachine()
        _ = machine.startCapture()
        _ = try machine.startBroadcast()
        return machine
    }

    private func active() throws -> TrackMachine {
        var machine = try choosing()
        _ = machine.granted(machine.generation)
        _ = machine.firstFrame(machine.generation)
        return machine
    }

    @Test func listensOnceItIsTold() {
        var machine = TrackMachine()
        #expect(machine.name == "idle")
        #expect(machine.startCapture() == [.announce(.changed)])
        #expect(machine.name == "listening")
        #expect(machine.startCapture() == [])
        #expect(machine.isCapturing && !machine.isActive)
    }

    @Test func refusesABroadcastInIdleWithTheRemedy() {
        var machine = TrackMachine()
        let error = failure { try machine.startBroadcast() }
        #expect(error?.name == .notListening)
        #expect(error?.message.contains("StartCapture") == true)
    }

    @Test func isActiveFromTheFirstFrameOnAndNotBefore() throws {
        var machine = try choosing()
        #expect(machine.name == "choosing")
        #expect(machine.firstFrame(1) == [])
        #expect(machine.granted(1) == [.capture(1)])
        #expect(machine.name == "choosing" && !machine.isActive)
        #expect(machine.firstFrame(1) == [.announce(.started)])
        #expect(machine.name == "active")
        #expect(machine.firstFrame(1) == [])
        #expect(machine.granted(1) == [])
    }

    @Test func isBusyWhileItChoosesOrIsActive() throws {
        for var machine in [try choosing(), try active()] {
            let error = failure { try machine.startBroadcast() }
            #expect(error?.name == .busy)
        }
    }

    @Test func goesBackToListeningWhenAStartComesToNothing() throws {
        var machine = try choosing()
        let cancelled = AgentError(.cancelled, "no")
        #expect(machine.startFailed(1, cancelled) == [.release, .announce(.startFailed(cancelled))])
        #expect(machine.name == "listening")
        #expect(try machine.startBroadcast() == [.announce(.changed), .openPicker(2)])
    }

    @Test func failsAStartWhoseFirstFrameIsLate() throws {
        var machine = try choosing()
        _ = machine.granted(1)
        let actions = machine.firstFrameIsLate(1)
        guard case .announce(.startFailed(let error)) = actions.last else {
            Issue.record("\(actions)")
            return
        }
        #expect(error.name == .timedOut)
        var running = try active()
        #expect(running.firstFrameIsLate(1) == [])
    }

    @Test func ignoresEventsOfAnEarlierStart() throws {
        var machine = try choosing()
        _ = machine.stopBroadcast(Self.stopped)
        _ = try machine.startBroadcast()
        #expect(machine.generation == 2)
        #expect(machine.granted(1) == [])
        #expect(machine.startFailed(1, AgentError(.failed, "")) == [])
        #expect(machine.ended(1, Self.gone) == [])
        #expect(machine.settled(1) == [])
        #expect(machine.name == "choosing")
    }

    @Test(arguments: EndCause.allCases) func announcesOneEndWithItsReason(cause: EndCause) throws {
        var machine = try active()
        let end = End(cause: cause, detail: "why")
        var actions = machine.ended(1, end)
        if let wait = cause.settleMilliseconds {
            // The desktop's word ends the capture at once; in other cases it has ended by itself.
            #expect(actions == (cause == .endedByDesktop ? [.stopCapturing] : []) + [.settle(1, milliseconds: wait)])
            #expect(machine.name == "active")
            actions = machine.settled(1)
        }
        #expect(actions == [.release, .announce(.finished(end))])
        #expect(machine.name == "listening")
        #expect(machine.ended(1, end) == [])
        #expect(machine.settled(1) == [])
    }

    /// Whatever two causes meet, in whatever order: the stronger one is the reason, and it is announced once.
    @Test(arguments: EndCause.allCases, EndCause.allCases) func takesTheStrongerOfTwoCauses(first: EndCause, second: EndCause) throws {
        var machine = try active()
        var actions = machine.ended(1, End(cause: first, detail: ""))
        actions += machine.ended(1, End(cause: second, detail: ""))
        actions += machine.settled(1)
        actions += machine.settled(1)
        let finished = actions.compactMap { action -> EndCause? in
            if case .announce(.finished(let end)) = action { end.cause } else { nil }
        }
        let expected = first.settleMilliseconds == nil ? first : min(first, second)
        #expect(finished == [expected])
        #expect(actions.count { $0 == .release } == 1)
    }

    @Test(arguments: EndCause.allCases) func failsAStartThatIsEndedBeforeItsFirstFrame(cause: EndCause) throws {
        for isGranted in [false, true] {
            var machine = try choosing()
            if isGranted { _ = machine.granted(1) }
            var actions = machine.ended(1, End(cause: cause, detail: "why"))
            if cause == .sourceRemoved {
                #expect(actions == [.settle(1, milliseconds: 500)] && machine.name == "choosing")
                actions = machine.settled(1)
            }
            #expect(actions == [.release, .announce(.startFailed(End(cause: cause, detail: "why").asError))])
            #expect(machine.name == "listening")
        }
    }

    @Test func tellsTheSessionsEndWhenTheSourceWentJustBefore() throws {
        var machine = try choosing()
        _ = machine.granted(1)
        #expect(machine.ended(1, Self.gone) == [.settle(1, milliseconds: 500)])
        #expect(machine.ended(1, Self.gone) == [])
        let closed = End(cause: .endedByDesktop, detail: "closed")
        #expect(machine.ended(1, closed) == [.release, .announce(.startFailed(closed.asError))])
        #expect(machine.settled(1) == [])
        #expect(try machine.startBroadcast() == [.announce(.changed), .openPicker(2)])
        #expect(machine.settled(1) == [] && machine.settled(2) == [])
    }

    // MARK: - Another source

    private func switching(isGranted: Bool = false) throws -> TrackMachine {
        var machine = try active()
        _ = try machine.switchSource()
        if isGranted { _ = machine.granted(2) }
        return machine
    }

    @Test func showsTheOldSourceUntilTheNewOneDelivers() throws {
        var machine = try active()
        #expect(try machine.switchSource() == [.announce(.changed), .openPicker(2)])
        #expect(machine.name == "active" && machine.isSwitching && machine.generation == 1)
        #expect(machine.firstFrame(2) == [])
        #expect(machine.granted(2) == [.capture(2)])
        #expect(machine.granted(2) == [])
        #expect(machine.firstFrame(2) == [.replace, .announce(.switched)])
        #expect(machine.name == "active" && !machine.isSwitching && machine.generation == 2)
        // The old source's end, or anything late of it, is nobody's.
        #expect(machine.ended(1, Self.gone) == [])
        #expect(machine.firstFrameIsLate(2) == [])
        #expect(machine.ended(2, Self.stopped) == [.release, .announce(.finished(Self.stopped))])
    }

    @Test func switchesOnlyWhatIsBroadcastAndOnceAtATime() throws {
        for (var machine, name) in [
            (TrackMachine(), ErrorName.notActive), (try choosing(), .notActive), (try switching(), .busy),
            (try switching(isGranted: true), .busy),
        ] { #expect(failure { try machine.switchSource() }?.name == name) }
        var ending = try active()
        _ = ending.ended(1, Self.gone)
        #expect(failure { try ending.switchSource() }?.name == .notActive)
        var machine = try switching()
        #expect(failure { try machine.startBroadcast() }?.name == .busy)
    }

    @Test(arguments: [false, true]) func keepsTheOldSourceWhenASwitchComesToNothing(isGranted: Bool) throws {
        let error = AgentError(.cancelled, "no")
        var machine = try switching(isGranted: isGranted)
        #expect(machine.startFailed(2, error) == [.releaseSwitch, .announce(.switchFailed(error))])
        #expect(machine.name == "active" && !machine.isSwitching)
        #expect(machine.granted(2) == [] && machine.firstFrame(2) == [] && machine.startFailed(2, error) == [])
        #expect(try machine.switchSource() == [.announce(.changed), .openPicker(3)])
        #expect(machine.ended(3, Self.gone) == [.releaseSwitch, .announce(.switchFailed(Self.gone.asError))])
        #expect(machine.name == "active")
        _ = machine.stopBroadcast(Self.stopped)
        // Numbers are never used again.
        #expect(try machine.startBroadcast() == [.announce(.changed), .openPicker(4)])
    }

    @Test(arguments: EndCause.allCases, [false, true]) func endsASwitchWithTheBroadcast(cause: EndCause, isGranted: Bool) throws {
        var machine = try switching(isGranted: isGranted)
        let end = End(cause: cause, detail: "why")
        var actions = machine.ended(1, end)
        guard case .announce(.switchFailed(let error)) = actions.dropFirst().first else {
            Issue.record("\(actions)")
            return
        }
        #expect(error.name == .cancelled && error.message.contains("why"))
        #expect(machine.firstFrame(2) == [])
        if cause.settleMilliseconds != nil { actions += machine.settled(1) }
        #expect(actions.first == .releaseSwitch && actions.suffix(2) == [.release, .announce(.finished(end))])
        #expect(machine.name == "listening")
    }

    @Test func stopsCapturingOnlyFromListening() throws {
        var machine = try active()
        #expect(machine.stopCapture() == [])
        _ = machine.stopBroadcast(Self.stopped)
        #expect(machine.stopCapture() == [.announce(.changed)])
        #expect(machine.name == "idle")
        #expect(machine.stopCapture() == [])
    }

    /// Any events in any order: a start is announced at most once, an end at most once after it, and what was opened is released.
    @Test func keepsItsPromisesUnderAnyEvents() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            var machine = TrackMachine()
            var isOpen = false
            var isSwitching = false
            var isBroadcasting = false
            for _ in 0..<40 {
                let start = UInt64.random(in: 0...machine.generation + 2, using: &random)
                let cause = EndCause.allCases.randomElement(using: &random) ?? .failed
                var actions: [TrackMachine.Action] = []
                switch Int.random(in: 0..<10, using: &random) {
                case 0: actions = machine.startCapture()
                case 1: actions = (try? machine.startBroadcast()) ?? []
                case 2: actions = machine.granted(start)
                case 3: actions = machine.firstFrame(start)
                case 4: actions = machine.startFailed(start, AgentError(.failed, ""))
                case 5: actions = machine.firstFrameIsLate(start)
                case 6: actions = machine.ended(start, End(cause: cause, detail: ""))
                case 7: actions = machine.settled(start)
                case 8: actions = (try? machine.switchSource()) ?? []
                default: actions = machine.stopCapture()
                }
                for action in actions {
                    switch action {
                    case .openPicker:
                        #expect(isBroadcasting ? isOpen && !isSwitching : !isOpen)
                        if isBroadcasting { isSwitching = true } else { isOpen = true }
                    case .capture: #expect(isBroadcasting ? isSwitching : isOpen)
                    case .stopCapturing: #expect(isOpen && !isSwitching)
                    case .replace, .releaseSwitch:
                        #expect(isBroadcasting && isSwitching && isOpen)
                        isSwitching = false
                    case .release:
                        #expect(isOpen && !isSwitching)
                        isOpen = false
                    case .settle: #expect(isOpen)
                    case .announce(.started):
                        #expect(!isBroadcasting && isOpen)
                        isBroadcasting = true
                    case .announce(.finished):
                        #expect(isBroadcasting && !isOpen)
                        isBroadcasting = false
                    case .announce(.startFailed): #expect(!isBroadcasting && !isOpen)
                    case .announce(.switched), .announce(.switchFailed): #expect(isBroadcasting && isOpen && !isSwitching)
                    case .announce(.changed): break
                    }
                }
                #expect(isBroadcasting == machine.isActive && isSwitching == machine.isSwitching)
            }
        }
    }
}
