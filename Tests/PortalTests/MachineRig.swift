// SPDX-License-Identifier: MIT
import DBus
import Loop

@testable import Portal

extension CastMachine.Action {
    /// The action in a word or two, without what differs from run to run.
    var summary: String {
        switch self {
        case .readProperties: "read properties"
        case .listen: "listen"
        case .listenAlso: "listen also"
        case .stopListeningForResponses: "stop listening"
        case .call(_, let step, _): "call \(step.rawValue)"
        case .closeRequest: "close request"
        case .closeSession: "close session"
        case .setTimer(let delay): delay.map { "timer \($0.nanoseconds / 1_000_000_000) s" } ?? "timer off"
        case .report(let event): "report \(event.summary)"
        case .finish: "finish"
        }
    }
}

extension CastEvent {
    /// The event's name.
    var summary: String {
        switch self {
        case .pickerOpened: "pickerOpened"
        case .granted: "granted"
        case .cancelled: "cancelled"
        case .failed: "failed"
        case .closed: "closed"
        case .portalLost: "portalLost"
        }
    }

    /// Whether nothing may follow.
    var isLast: Bool {
        switch self {
        case .pickerOpened, .granted: false
        default: true
        }
    }

    /// What failed.
    var error: PortalError? { if case .failed(let error) = self { error } else { nil } }
}

extension PortalProperties {
    /// Those of a portal that has everything.
    static let full = PortalProperties(version: 5, sourceTypes: [.monitor, .window, .virtual], cursorModes: CursorModes(rawValue: 7))
}

/// A point in a cast's course.
enum Stage: String, CaseIterable {
    case initial, reading, subscribing
    case creating, createAnswered, selecting, selectAnswered, starting, startAnswered
    case connecting, streaming
    /// The caller closed it while the session was being made.
    case closing
    case ended

    /// The step that is under way.
    var step: CastStep? {
        switch self {
        case .creating, .createAnswered: .createSession
        case .selecting, .selectAnswered: .selectSources
        case .starting, .startAnswered: .start
        default: nil
        }
    }

    /// Those where a request is open.
    static let requests = allCases.filter { $0.step != nil }

    /// Those where the portal has a session.
    var hasSession: Bool { Stage.sessions.contains(self) }
    private static let sessions: [Stage] = [.selecting, .selectAnswered, .starting, .startAnswered, .connecting, .streaming]
}

/// A machine with what a test needs to know of it.
struct MachineRig {
    static let caller: BusName = ":1.42"

    var machine: CastMachine
    /// All actions so far.
    var actions: [CastMachine.Action] = []

    init(_ options: CastOptions = CastOptions()) {
        machine = CastMachine(options: options, caller: Self.caller)
    }

    /// Brings a fresh machine to a stage, by the way on which everything succeeds.
    init(_ options: CastOptions = CastOptions(), at stage: Stage, _ properties: PortalProperties = .full) {
        self.init(options)
        let way: [(Stage, (inout MachineRig) -> Void)] = [
            (.reading, { $0.send(.begun(nil)) }),
            (.subscribing, { $0.send(.propertiesRead(.success(properties))) }),
            (.creating, { $0.send(.listening(nil)) }),
            (.createAnswered, { $0.reply() }),
            (.selecting, { $0.respond(0, ["session_handle": .string($0.session.text)]) }),
            (.selectAnswered, { $0.reply() }),
            (.starting, { $0.respond(0) }),
            (.startAnswered, { $0.reply() }),
            (.connecting, { $0.respond(0, Self.startResults) }),
            (.streaming, { $0.reply([.descriptor(FileDescriptor(owning: -1))]) }),
        ]
        switch stage {
        case .initial: return
        case .closing:
            self.init(options, at: .creating, properties)
            send(.closeRequested)
        case .ended:
            self.init(options, at: .streaming, properties)
            send(.closeRequested)
        default:
            for (reached, step) in way {
                step(&self)
                if reached == stage { break }
            }
        }
        actions = []
    }

    /// One monitor, and a token.
    static let startResults: [String: Value] = [
        "streams": streams([(44, ["source_type": .uint32(1)])]), "restore_token": .string("next"),
    ]

    /// An `a(ua{sv})`.
    static func streams(_ streams: [(UInt32, [String: Value])]) -> Value {
        .array(of: "(ua{sv})", streams.map { .structure([.uint32($0.0), .options($0.1)]) })
    }

    /// The last call's id.
    var call: CastMachine.CallID { machine.lastCall }

    /// Where the request under way should be.
    var handle: ObjectPath {
        switch machine.state {
        case .requesting(let request), .closing(let request): request.expected
        default: "/no/request"
        }
    }

    /// Where the session is, or should come to be.
    var session: ObjectPath { machine.sessionPath ?? "/no/session" }

    /// What was reported.
    var events: [CastEvent] {
        actions.compactMap { if case .report(let event) = $0 { event } else { nil } }
    }

    /// The arguments of the last call of a step.
    func arguments(of step: CastStep) -> [Value]? {
        actions.last { if case .call(_, step, _) = $0 { true } else { false } }.flatMap {
            if case .call(_, _, let arguments) = $0 { arguments } else { nil }
        }
    }

    /// The options of the last call of a step.
    func options(of step: CastStep) -> [String: Value] { arguments(of: step)?.last?.asOptions ?? [:] }

    @discardableResult
    mutating func send(_ event: CastMachine.Event) -> [String] {
        let new = machine.handle(event)
        actions += new
        return new.map(\.summary)
    }

    /// Answers the last call: with the handle that it should get, if nothing else is given.
    @discardableResult
    mutating func reply(_ values: [Value]? = nil) -> [String] {
        send(.replied(call, .success(values ?? [.objectPath(handle)])))
    }

    @discardableResult
    mutating func fail(_ name: String, _ message: String = "") -> [String] {
        send(.replied(call, .failure(.remote(name: name, message: message))))
    }

    @discardableResult
    mutating func respond(_ code: UInt32, _ results: [String: Value] = [:], at path: ObjectPath? = nil) -> [String] {
        send(.response(path ?? handle, [.uint32(code), .options(results)]))
    }
}
