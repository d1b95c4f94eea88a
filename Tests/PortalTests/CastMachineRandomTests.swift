// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport
import Testing

@testable import Portal

/// Keeps a machine to its promises, whatever comes.
struct Referee {
    var rig: MachineRig
    private(set) var last = 0
    private(set) var isFinished = false
    private var isOver = false
    private var tokens: Set<String> = []
    private var closedSessions: [ObjectPath] = []
    private var steps: [CastStep] = []
    /// The first broken promise.
    private(set) var objection: String?

    init(_ options: CastOptions = CastOptions()) { rig = MachineRig(options) }

    /// Hands an event over, and judges what the machine makes of it.
    mutating func send(_ event: CastMachine.Event) -> [CastMachine.Action] {
        let wasFinished = isFinished
        if case .closeRequested = event { isOver = true }
        let count = rig.actions.count
        rig.send(event)
        let actions = Array(rig.actions[count...])
        if wasFinished && !actions.isEmpty { object("acts after the end") }
        for action in actions { judge(action) }
        if isOver != rig.machine.isOver { object("thinks otherwise about whether it is over") }
        return actions
    }

    private mutating func judge(_ action: CastMachine.Action) {
        switch action {
        case .readProperties, .listen:
            if isOver { object("goes on after the end") }
        case .call(_, let step, let arguments):
            if isOver { object("calls after the end") }
            steps.append(step)
            if steps.filter({ $0 == step }).count > (step == .selectSources ? 2 : 1) { object("repeats \(step)") }
            for key in ["handle_token", "session_handle_token"] {
                if let token = arguments.last?.asOptions?[key]?.asString, !tokens.insert(token).inserted { object("uses a token twice") }
            }
        case .closeSession(let path):
            if closedSessions.contains(path) { object("closes a session twice") }
            closedSessions.append(path)
        case .report(let event):
            if isOver { object("reports after the end") }
            if event.isLast {
                isOver = true
                last += 1
            }
        case .finish:
            if isFinished { object("finishes twice") }
            isFinished = true
        case .listenAlso, .stopListeningForResponses, .closeRequest, .setTimer: break
        }
    }

    private mutating func object(_ text: String) { objection = objection ?? text }
}

@Suite struct CastMachineRandomTests {
    @Test func nothingStaysOpenWhateverAPortalDoes() {
        var outcomes: [String: Int] = [:]
        for seed in 0..<5_000 as Range<UInt64> {
            var options = CastOptions()
            if seed % 2 == 0 { options.restoreToken = "token" }
            var referee = Referee(options)
            var portal = ModelPortal(random: SeededGenerator(seed: seed))
            let closesAfter = portal.random.chance(50) ? Int.random(in: 0..<40, using: &portal.random) : nil
            let isLostAfter = portal.random.chance(10) ? Int.random(in: 0..<40, using: &portal.random) : nil
            let isClosedAfter = portal.random.chance(20) ? Int.random(in: 0..<40, using: &portal.random) : nil

            var events: [CastMachine.Event] = [.begun(nil)]
            var turns = 0
            while turns < 1_000 {
                for event in events { for action in referee.send(event) { portal.take(action) } }
                turns += 1
                events = []
                if turns == closesAfter { events.append(.closeRequested) }
                if turns == isLostAfter { break }
                if turns == isClosedAfter { portal.closeAnySession() }
                if let event = portal.step() { events.append(event) }
                if events.isEmpty && portal.isQuiet && portal.requests.isEmpty {
                    if case .streaming = referee.rig.machine.state {
                        events = [.closeRequested]
                    } else if referee.isFinished {
                        break
                    } else {
                        events = [.timerFired]
                    }
                }
            }
            let wasLost = turns == isLostAfter
            if wasLost { _ = referee.send(.portalLost) }

            let outcome = referee.rig.events.last?.summary ?? "nothing"
            outcomes[outcome, default: 0] += 1
            let wasClosedByCaller = closesAfter.map { turns >= $0 } ?? false || outcome == "granted"
            #expect(referee.objection == nil, "seed \(seed)")
            #expect(referee.isFinished, "seed \(seed)")
            #expect(referee.last == 1 || (referee.last == 0 && wasClosedByCaller), "seed \(seed): \(referee.last) ends")
            if !wasLost {
                #expect(portal.sessions.isEmpty, "seed \(seed): a session stays open")
                #expect(portal.requests.isEmpty, "seed \(seed): a request stays open")
            }
            if referee.objection != nil { return }
        }
        // The model is worth something only if it gets everywhere.
        for outcome in ["nothing", "pickerOpened", "granted", "cancelled", "failed", "closed", "portalLost"] {
            #expect(outcomes[outcome, default: 0] > 50, "\(outcome): \(outcomes)")
        }
    }

    @Test func everyEventInEveryStage() {
        for stage in Stage.allCases {
            for index in 0..<Self.kinds {
                var random = SeededGenerator(seed: UInt64(index))
                var rig = MachineRig(at: stage)
                let isEnded = stage == .ended
                let actions = rig.send(Self.event(index, rig, &random))
                #expect(!isEnded || actions.isEmpty)
                // It still ends as it should.
                rig.send(.closeRequested)
                rig.send(.timerFired)
                #expect(rig.machine.stateName == "ended")
            }
        }
    }

    @Test func anySequenceOfEvents() {
        for seed in 0..<5_000 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            var referee = Referee()
            for _ in 0..<60 {
                let kind = Int.random(in: 0..<Self.kinds, using: &random)
                _ = referee.send(Self.event(kind, referee.rig, &random))
            }
            _ = referee.send(.portalLost)
            #expect(referee.objection == nil && referee.last <= 1 && referee.isFinished, "seed \(seed): \(referee.objection ?? "")")
            if referee.objection != nil { return }
        }
    }

    private static let kinds = 24

    /// An event of a kind: fitting, stale, foreign or senseless.
    private static func event(_ kind: Int, _ rig: MachineRig, _ random: inout SeededGenerator) -> CastMachine.Event {
        let session: [String: Value] = ["session_handle": .string(rig.session.text)]
        let results = session.merging(MachineRig.startResults) { $1 }
        switch kind {
        case 0: return .begun(nil)
        case 1: return .begun(.full)
        case 2: return .propertiesRead(.success(.full))
        case 3: return .propertiesRead(.failure(.noPortal("")))
        case 4: return .listening(nil)
        case 5: return .listening(.outOfMemory)
        case 6: return .replied(rig.call, .success([.objectPath(rig.handle)]))
        case 7: return .replied(rig.call, .success([.objectPath("/elsewhere")]))
        case 8: return .replied(rig.call, .success([.descriptor(FileDescriptor(owning: -1))]))
        case 9: return .replied(rig.call, .success([]))
        case 10: return .replied(rig.call, .failure(.timedOut("member")))
        case 11: return .replied(rig.call, .failure(.remote(name: "org.freedesktop.DBus.Error.InvalidArgs", message: "")))
        case 12: return .replied(rig.call - 1, .failure(.remote(name: "org.freedesktop.DBus.Error.NoReply", message: "")))
        case 13: return .replied(.random(in: -3..<10, using: &random), .success([.string("x")]))
        case 14, 15, 16: return .response(rig.handle, [.uint32(0), .options(results)])
        case 17: return .response(rig.handle, [.uint32(.random(in: 0..<4, using: &random)), .options([:])])
        case 18: return .response("/elsewhere", [.uint32(.random(in: 0..<4, using: &random)), .options(results)])
        case 19: return .response(rig.handle, [.string("x")])
        case 20: return .sessionClosed(random.chance(30) ? rig.session : "/elsewhere")
        case 21: return .timerFired
        case 22: return random.chance(20) ? .portalLost : .timerFired
        default: return random.chance(20) ? .closeRequested : .listening(nil)
        }
    }
}
