// SPDX-License-Identifier: MIT
public import DBus
public import Loop

/// A screen-cast portal that does what a test tells it, also what no portal should.
///
/// It is a connection of its own on the test's loop. What it does on purpose is in ``Knobs``; what it was asked, and what it
/// holds open, can be read.
public final class FakePortal {
    /// What a client asks of it.
    public enum Step: String, CaseIterable, Sendable {
        /// The methods of the interface.
        case createSession = "CreateSession", selectSources = "SelectSources", start = "Start", openRemote = "OpenPipeWireRemote"
        /// Those that lead to a response.
        public static let requests: [Step] = [.createSession, .selectSources, .start]
    }

    /// How a call is answered.
    public enum Reply: Sendable {
        /// With the handle, or the descriptor.
        case regular
        /// With a handle that the client cannot foresee.
        case handle(ObjectPath)
        /// With an error.
        case error(name: String, message: String)
        /// Not at all.
        case never
        /// The portal leaves the bus instead.
        case leave
    }

    /// When a request responds.
    public enum Moment: Sendable {
        /// Where it belongs.
        case afterReply
        /// Before the client knows the handle.
        case beforeReply
        /// At ``FakePortal/release()``.
        case released
        /// Never.
        case never
    }

    /// What happens at one step.
    public struct Answer: Sendable {
        /// How the call is answered.
        public var reply = Reply.regular
        /// When the request responds.
        public var moment = Moment.afterReply
        /// How often.
        public var count = 1
        /// With which response.
        public var code: UInt32 = 0
        /// With which results, instead of the right ones.
        public var results: [String: Value]?
        /// With which arguments, instead of a response and results.
        public var arguments: [Value]?
        /// As it should be.
        public init() {}
    }

    /// What the portal does.
    public struct Knobs: Sendable {
        /// The properties. Nil leaves one out.
        public var version: UInt32? = 4
        /// See ``version``.
        public var sourceTypes: UInt32? = 3
        /// See ``version``.
        public var cursorModes: UInt32? = 7
        /// What happens at each step; where nothing is said, what should.
        public var answers: [Step: Answer] = [:]
        /// The streams of Start.
        public var streams: [(node: UInt32, details: [String: Value])] = [(44, ["source_type": .uint32(1)])]
        /// The next token of Start.
        public var restoreToken: String? = "token-1"
        /// The only restore token that is not refused. Nil takes all.
        public var knownToken: String?
        /// Whether a handle token of other characters than letters, digits and `_` ends the portal, as up to version 1.20.
        public var diesOfBadTokens = true
        /// Whether `Close` is answered.
        public var answersClose = true
        /// Whether `Close` of a request has an effect. Where a request's work is done by another thread, it may come too early.
        public var closesRequests = true
        /// What OpenPipeWireRemote gives.
        public var remote: FileDescriptor?
        /// A portal that works.
        public init() {}

        /// Changes one step's answer.
        public subscript(_ step: Step) -> Answer {
            get { answers[step] ?? Answer() }
            set { answers[step] = newValue }
        }
    }

    /// One call, as it came.
    public struct Request {
        /// The method.
        public let step: Step
        /// All arguments.
        public let arguments: [Value]
        /// The last of them.
        public var options: [String: Value] { arguments.last?.asOptions ?? [:] }
    }

    /// The portal's name.
    public static let name: BusName = "org.freedesktop.portal.Desktop"
    static let path: ObjectPath = "/org/freedesktop/portal/desktop"

    /// What it does from now on.
    public var knobs = Knobs()
    /// What it was asked.
    public private(set) var calls: [Request] = []
    /// What its clients said that they are, and how much they had asked before that.
    public private(set) var registrations: [(application: String, earlierCalls: Int)] = []
    /// How often its properties were read.
    public private(set) var propertyReads = 0
    /// The sessions that are open, with those whose client they are.
    public private(set) var sessions: [ObjectPath: BusName] = [:]
    /// The requests that are open.
    public private(set) var requests: [ObjectPath: BusName] = [:]
    /// What was closed by a client.
    public private(set) var closed: [ObjectPath] = []
    /// Its connection.
    public let connection: Connection

    private let server: ObjectServer
    private var tokens: Set<String> = []
    private var held: [() -> Void] = []
    /// Calls that are never answered are kept: dropping them would answer.
    private var unanswered: [Call] = []
    private var requestSessions: [ObjectPath: ObjectPath] = [:]

    /// Connects, without a name yet.
    ///
    /// - Parameter offersScreenCast: whether it found a backend.
    public init(_ address: BusAddress, on loop: EventLoop, offersScreenCast: Bool = true) throws(DBusError) {
        connection = try Connection.open(address, on: loop)
        server = ObjectServer(connection)
        server.export(Self.path, offersScreenCast ? [screenCast(), registry()] : [])
    }

    deinit {
        // Now it can make no difference any more, and a call that is dropped is logged as a mistake.
        for call in unanswered { call.fail(name: StandardError.failed, message: "The portal ends.") }
    }

    /// Takes the portal's name.
    public func takeName() throws {
        var result: Result<Void, DBusError>?
        connection.requestName(Self.name) { result = $0 }
        _ = connection.loop.run(until: { result != nil }, timeout: .seconds(20))
        try result?.get()
    }

    /// Leaves the bus, as a portal that crashes.
    public func leave() { connection.close() }

    /// Sends the responses that wait for it.
    public func release() {
        let bodies = held
        held = []
        for body in bodies { body() }
    }

    /// How many responses wait.
    public var heldCount: Int { held.count }

    /// The desktop ends all sessions.
    public func closeSessions(announcements: Int = 1) {
        for (session, client) in sessions {
            for _ in 0..<announcements { emitClosed(session, to: client) }
            remove(session: session)
        }
    }

    /// Says that a session is closed, whether there is one or not.
    public func emitClosed(_ session: ObjectPath, to client: BusName) {
        connection.emit(path: session, interface: Interfaces.session.name, member: "Closed", arguments: [.options([:])], to: client)
    }

    // MARK: The interface

    private func screenCast() -> ExportedInterface {
        let methods: [MemberName: (Call) -> Void] = [
            "CreateSession": { [weak self] in self?.answer(.createSession, $0) },
            "SelectSources": { [weak self] in self?.answer(.selectSources, $0) },
            "Start": { [weak self] in self?.answer(.start, $0) },
            "OpenPipeWireRemote": { [weak self] in self?.openRemote($0) },
        ]
        return ExportedInterface(
            Interfaces.screenCast, methods: methods,
            properties: [
                "version": Property(get: { [weak self] in
                    self?.propertyReads += 1
                    return self?.knobs.version.map { .uint32($0) } ?? .string("")
                }),
                "AvailableSourceTypes": Property(get: { [weak self] in self?.knobs.sourceTypes.map { .uint32($0) } ?? .string("") }),
                "AvailableCursorModes": Property(get: { [weak self] in self?.knobs.cursorModes.map { .uint32($0) } ?? .string("") }),
            ])
    }

    /// As from version 1.19 on.
    private func registry() -> ExportedInterface {
        ExportedInterface(
            Interfaces.registry,
            methods: [
                "Register": { [weak self] call in
                    guard let self else { return }
                    registrations.append((call.arguments[0].asString ?? "", calls.count + propertyReads))
                    call.reply()
                }
            ])
    }

    private func answer(_ step: Step, _ call: Call) {
        let request = Request(step: step, arguments: call.arguments)
        calls.append(request)
        let answer = knobs[step]
        switch answer.reply {
        case .leave:
            unanswered.append(call)
            return leave()
        case .never: unanswered.append(call)
        case .error(let name, let message): return call.fail(name: name, message: message)
        case .regular, .handle: break
        }
        guard let handleToken = take(request.options["handle_token"], call) else { return }
        if let refusal = refusal(of: request, call.sender) {
            return call.fail(name: refusal.name, message: refusal.message)
        }
        let sender = String(call.sender.text.dropFirst().map { $0 == "." ? "_" : $0 })
        var session = call.arguments[0].asObjectPath ?? Self.path
        if step == .createSession {
            guard let token = take(request.options["session_handle_token"], call) else { return }
            session = ObjectPath("\(Self.path)/session/\(sender)/\(token)") ?? Self.path
        }
        var handle = ObjectPath("\(Self.path)/request/\(sender)/\(handleToken)") ?? Self.path
        if case .handle(let other) = answer.reply { handle = other }

        open(request: handle, of: session, for: call.sender)
        let respond = { [weak self] in
            guard let self, requests[handle] != nil else { return }
            remove(request: handle)
            let results = answer.results ?? results(of: step, session)
            let arguments = answer.arguments ?? [.uint32(answer.code), .options(answer.code == 0 ? results : [:])]
            if step == .createSession, answer.code == 0 { open(session: session, for: call.sender) }
            for _ in 0..<answer.count {
                connection.emit(path: handle, interface: Interfaces.request.name, member: "Response", arguments: arguments, to: call.sender)
            }
            // The frontend closes the session by itself then, and says so.
            if answer.code != 0, sessions[session] != nil {
                emitClosed(session, to: call.sender)
                remove(session: session)
            }
        }
        if case .beforeReply = answer.moment { respond() }
        switch answer.reply {
        case .regular, .handle: call.reply([.objectPath(handle)])
        case .error, .never, .leave: break
        }
        switch answer.moment {
        case .afterReply: respond()
        case .released: held.append(respond)
        case .beforeReply, .never: break
        }
    }

    private func openRemote(_ call: Call) {
        calls.append(Request(step: .openRemote, arguments: call.arguments))
        switch knobs[.openRemote].reply {
        case .leave:
            unanswered.append(call)
            leave()
        case .never: unanswered.append(call)
        case .error(let name, let message): call.fail(name: name, message: message)
        case .regular, .handle:
            guard let remote = knobs.remote, call.arguments[0].asObjectPath.flatMap({ sessions[$0] }) == call.sender else {
                return call.fail(name: StandardError.failed, message: "No streams available")
            }
            call.reply([.descriptor(remote)])
        }
    }

    private func results(of step: Step, _ session: ObjectPath) -> [String: Value] {
        switch step {
        case .createSession: return ["session_handle": .string(session.text)]
        case .selectSources, .openRemote: return [:]
        case .start:
            let streams = knobs.streams.map { Value.structure([.uint32($0.node), .options($0.details)]) }
            var results: [String: Value] = ["streams": .array(of: "(ua{sv})", streams)]
            results["restore_token"] = knobs.restoreToken.map { .string($0) }
            return results
        }
    }

    /// Checks a token as portals do. Nil ends the matter.
    private func take(_ value: Value?, _ call: Call) -> String? {
        let token = value?.asString ?? ""
        let isValid = !token.isEmpty && ObjectPath("/\(token)") != nil && !token.contains("/")
        if !isValid, knobs.diesOfBadTokens {
            leave()
            return nil
        }
        guard isValid, tokens.insert(token).inserted else {
            call.fail(name: "org.freedesktop.portal.Error.InvalidArgument", message: "Invalid or used token")
            return nil
        }
        return token
    }

    private func refusal(of request: Request, _ client: BusName) -> (name: String, message: String)? {
        if request.step != .createSession, request.arguments[0].asObjectPath.flatMap({ sessions[$0] }) != client {
            return (StandardError.accessDenied, "Invalid session")
        }
        guard request.step == .selectSources else { return nil }
        if let known = knobs.knownToken, let token = request.options["restore_token"]?.asString, token != known {
            return ("org.freedesktop.portal.Error.InvalidArgument", "Restore token is not a valid UUID string")
        }
        if let mode = request.options["cursor_mode"]?.asUInt32, mode.nonzeroBitCount != 1 || mode & (knobs.cursorModes ?? 0) == 0 {
            return ("org.freedesktop.portal.Error.InvalidArgument", "Unavailable cursor mode \(mode)")
        }
        return nil
    }

    // MARK: What is open

    private func open(request: ObjectPath, of session: ObjectPath, for client: BusName) {
        requests[request] = client
        requestSessions[request] = session
        let methods: [MemberName: (Call) -> Void] = ["Close": { [weak self] in self?.close(request: request, $0) }]
        server.export(request, [ExportedInterface(Interfaces.request, methods: methods)])
    }

    private func open(session: ObjectPath, for client: BusName) {
        sessions[session] = client
        server.export(
            session,
            [
                ExportedInterface(
                    Interfaces.session, methods: ["Close": { [weak self] in self?.close(session: session, $0) }],
                    properties: ["version": Property(get: { .uint32(1) })])
            ])
    }

    private func close(request: ObjectPath, _ call: Call) {
        closed.append(request)
        if knobs.closesRequests { remove(request: request) }
        answerClose(call)
    }

    private func close(session: ObjectPath, _ call: Call) {
        closed.append(session)
        remove(session: session)
        answerClose(call)
    }

    private func answerClose(_ call: Call) {
        if knobs.answersClose { call.reply() } else { unanswered.append(call) }
    }

    private func remove(request: ObjectPath) {
        requests[request] = nil
        requestSessions[request] = nil
        server.unexport(request)
    }

    private func remove(session: ObjectPath) {
        sessions[session] = nil
        server.unexport(session)
        for (request, owner) in requestSessions where owner == session { remove(request: request) }
    }
}
