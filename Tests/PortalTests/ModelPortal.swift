// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport

@testable import Portal

/// A portal in memory that handles its calls in any order, as one with threads does, and fails as portals do.
///
/// It knows the truth about what is open, against which a machine is judged.
struct ModelPortal {
    enum Incoming {
        case call(CastMachine.CallID, CastStep, [Value])
        case closeRequest(ObjectPath)
        case closeSession(ObjectPath)
    }

    var random: SeededGenerator
    /// Calls that were sent and not looked at yet.
    private(set) var inbox: [Incoming] = []
    /// What was sent to the machine and has not arrived yet.
    private(set) var outbox: [CastMachine.Event] = []
    private(set) var sessions: Set<ObjectPath> = []
    /// Open requests, with what their response will lead to.
    private(set) var requests: [ObjectPath: (step: CastStep, session: ObjectPath)] = [:]

    init(random: SeededGenerator) { self.random = random }

    var isQuiet: Bool { inbox.isEmpty && outbox.isEmpty }

    mutating func take(_ action: CastMachine.Action) {
        switch action {
        case .readProperties:
            outbox.append(.propertiesRead(random.chance(97) ? .success(.full) : .failure(.noPortal("gone"))))
        case .listen:
            outbox.append(.listening(random.chance(98) ? nil : .outOfMemory))
        case .call(let id, let step, let arguments): inbox.append(.call(id, step, arguments))
        case .closeRequest(let path): inbox.append(.closeRequest(path))
        case .closeSession(let path): inbox.append(.closeSession(path))
        case .listenAlso, .stopListeningForResponses, .setTimer, .report, .finish: break
        }
    }

    /// Does one thing. Nil when it has nothing to tell the machine.
    mutating func step() -> CastMachine.Event? {
        if !outbox.isEmpty, random.chance(50) || (inbox.isEmpty && requests.isEmpty) {
            return outbox.remove(at: Int.random(in: outbox.indices, using: &random))
        }
        if !inbox.isEmpty, random.chance(60) || requests.isEmpty {
            handle(inbox.remove(at: Int.random(in: inbox.indices, using: &random)))
            return nil
        }
        if let path = requests.keys.sorted().randomElement(using: &random) { respond(path) }
        return nil
    }

    /// The desktop closes a session by itself.
    mutating func closeAnySession() {
        guard let session = sessions.sorted().first else { return }
        sessions.remove(session)
        outbox.append(.sessionClosed(session))
        if random.chance(20) { outbox.append(.sessionClosed(session)) }
    }

    private mutating func handle(_ incoming: Incoming) {
        switch incoming {
        case .closeRequest(let path): requests[path] = nil
        case .closeSession(let path):
            sessions.remove(path)
            for (request, entry) in requests where entry.session == path { requests[request] = nil }
        case .call(let id, let step, let arguments):
            let sender = "/org/freedesktop/portal/desktop/%/1_42/"
            let path = { (kind: String, token: String) in
                ObjectPath(sender.split(separator: "%").joined(separator: kind) + token) ?? .root
            }
            let options = arguments.last?.asOptions ?? [:]
            let session = arguments.first?.asObjectPath ?? path("session", options["session_handle_token"]?.asString ?? "")
            if step != .createSession, !sessions.contains(session) || random.chance(4) {
                let errors = ["org.freedesktop.DBus.Error.Failed", "org.freedesktop.portal.Error.InvalidArgument"]
                let name = errors.randomElement(using: &random) ?? ""
                outbox.append(.replied(id, .failure(.remote(name: name, message: "Invalid session"))))
                return
            }
            if step == .openRemote {
                outbox.append(.replied(id, .success(random.chance(90) ? [.descriptor(FileDescriptor(owning: -1))] : [])))
                return
            }
            var handle = path("request", options["handle_token"]?.asString ?? "")
            if random.chance(15), let other = handle.appending("1") { handle = other }
            requests[handle] = (step, session)
            outbox.append(.replied(id, .success([.objectPath(handle)])))
        }
    }

    private mutating func respond(_ path: ObjectPath) {
        guard let (step, session) = requests.removeValue(forKey: path) else { return }
        let code = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2].randomElement(using: &random) ?? 0
        var results: [String: Value] = [:]
        if code == 0 {
            if step == .createSession {
                sessions.insert(session)
                if random.chance(95) { results["session_handle"] = random.chance(50) ? .string(session.text) : .objectPath(session) }
            }
            if step == .start, random.chance(95) { results = MachineRig.startResults }
        }
        let response = CastMachine.Event.response(path, [.uint32(UInt32(code)), .options(results)])
        outbox.append(response)
        if random.chance(10) { outbox.append(response) }
        if code != 0, sessions.remove(session) != nil { outbox.append(.sessionClosed(session)) }
    }
}
