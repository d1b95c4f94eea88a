// SPDX-License-Identifier: MIT
import DBus

/// The course of one cast: what happened goes in, what is to be done comes out. It does no I/O and knows no clock.
///
///     reading ── subscribing ── creating ── selecting ── starting ── connecting ── streaming
///        └────────────┴────────────┴──────┬─────┴────────────┴────────────┴────────────┘
///                                         └── (closing, while a late answer may leave something open) ── ended
///
/// Every event is legal in every state. What does not belong to the present state is ignored: answers to calls that are
/// over, signals of other requests and sessions, everything after the end. However it ends, what is open is closed first,
/// and one last event is reported, unless the caller itself closed the cast.
///
/// Spec: https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.portal.ScreenCast.html
struct CastMachine {
    /// Names a call, so that its reply can be told from that of an earlier one.
    typealias CallID = Int

    /// What happened.
    enum Event {
        /// The cast begins. The properties are nil when this portal's are not known yet.
        case begun(PortalProperties?)
        /// The answer to ``Action/readProperties``.
        case propertiesRead(Result<PortalProperties, PortalError>)
        /// The answer to ``Action/listen``: from now on no signal is missed. Or the error.
        case listening(DBusError?)
        /// The answer to ``Action/call(_:_:_:)``.
        case replied(CallID, Result<[Value], DBusError>)
        /// `Response` of a request, from the portal that is cast with.
        case response(ObjectPath, [Value])
        /// `Closed` of a session, from the portal that is cast with.
        case sessionClosed(ObjectPath)
        /// That portal is not on the bus any more, or does not own its name any more.
        case portalLost
        /// The timer that was set last has run out.
        case timerFired
        /// The caller wants no more of it.
        case closeRequested
    }

    /// What is to be done, in this order.
    enum Action {
        case readProperties
        /// Listen for `Response` of this connection's requests and `Closed` of its sessions.
        case listen
        /// Listen for `Response` at this path too: the portal chose another than it should.
        case listenAlso(ObjectPath)
        /// No `Response` matters any more.
        case stopListeningForResponses
        /// A call whose reply is wanted.
        case call(CallID, CastStep, [Value])
        /// `Close` of a request. No answer is wanted.
        case closeRequest(ObjectPath)
        /// `Close` of a session. No answer is wanted.
        case closeSession(ObjectPath)
        /// Replaces the timer. Nil stops it.
        case setTimer(Duration?)
        case report(CastEvent)
        /// Nothing follows: forget this cast.
        case finish
    }

    /// A call that leads to a `Response`, and what is known of it.
    struct Request {
        let step: CastStep
        let call: CallID
        /// Where the portal should put it.
        let expected: ObjectPath
        /// Where it did put it. Nil until the reply.
        var handle: ObjectPath?
        /// No reply will come any more.
        var isAnswered = false
        /// Responses at other paths that came before the reply, which may yet say that one of them is meant.
        var early: [(path: ObjectPath, arguments: [Value])] = []

        /// Where to send `Close`.
        var closingPath: ObjectPath { handle ?? expected }

        func isAt(_ path: ObjectPath) -> Bool { path == expected || path == handle }
    }

    /// Each case says what it waits for.
    enum State {
        /// ``Event/begun(_:)``.
        case initial
        /// The portal's properties.
        case reading
        /// The bus's word that the match rules are in place.
        case subscribing
        /// The reply and the response of CreateSession, SelectSources or Start, in either order.
        case requesting(Request)
        /// The reply of OpenPipeWireRemote.
        case connecting(CallID, [CastStream], restoreToken: String?)
        /// An end: the streams are granted.
        case streaming
        /// A late answer that may leave a request or a session open. For the caller the cast is over.
        case closing(Request)
        /// Nothing.
        case ended
    }

    /// The portal's session, as far as this side knows.
    enum Session {
        case none
        /// CreateSession was sent: it may come into being here.
        case expected(ObjectPath)
        case open(ObjectPath)
        case gone
    }

    /// How long the portal may take for what needs no person.
    static let answerLimit = Duration.seconds(60)

    let options: CastOptions
    let paths: PortalPaths
    let makeToken: () -> String
    var state = State.initial
    var session = Session.none
    var properties = PortalProperties(version: 0, sourceTypes: [], cursorModes: [])
    var cursorMode = CursorMode.hidden
    var restoreToken: String?
    var lastCall: CallID = 0

    /// A cast that has not begun.
    ///
    /// - Parameters:
    ///   - caller: the unique name of the connection that makes all calls. The portal builds its paths from it.
    ///   - makeToken: makes a fresh handle token at each call.
    init(options: CastOptions, caller: BusName, makeToken: @escaping () -> String = { HandleToken().text }) {
        (self.options, self.makeToken) = (options, makeToken)
        paths = PortalPaths(caller: caller)
        restoreToken = options.restoreToken
    }

    /// Whether the cast is over for its caller.
    var isOver: Bool {
        switch state {
        case .closing, .ended: true
        default: false
        }
    }

    /// The state's name in the log.
    var stateName: String {
        switch state {
        case .initial: "initial"
        case .reading: "reading"
        case .subscribing: "subscribing"
        case .requesting(let request):
            switch request.step {
            case .createSession: "creating"
            case .selectSources: "selecting"
            default: "starting"
            }
        case .connecting: "connecting"
        case .streaming: "streaming"
        case .closing: "closing"
        case .ended: "ended"
        }
    }

    /// Takes an event in.
    ///
    /// - Returns: what is to be done, in order. Nothing for an event that does not belong here.
    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.ended, _): return []
        case (.closing(let request), _): return close(request, event)
        case (_, .portalLost): return lose()
        case (_, .closeRequested): return end(nil)
        case (_, .sessionClosed(let path)): return sessionClosed(path)

        case (.initial, .begun(nil)):
            state = .reading
            return [.readProperties]
        case (.initial, .begun(let known?)): return plan(known)
        case (.reading, .propertiesRead(.success(let read))): return plan(read)
        case (.reading, .propertiesRead(.failure(let error))): return end(.failed(error))

        case (.subscribing, .listening(nil)): return createSession()
        case (.subscribing, .listening(let error?)): return end(.failed(PortalError(error, at: .createSession)))

        case (.requesting(let request), .replied(let id, let result)) where id == request.call: return replied(request, result)
        case (.requesting(let request), .response(let path, let arguments)): return responded(request, path, arguments)
        case (.requesting(let request), .timerFired):
            // Only who has a request has been asked; and nobody is asked for a session.
            let hasPicker = request.isAnswered && request.step != .createSession
            return end(.failed(hasPicker ? .timedOut : .unresponsive(request.step)))

        case (.connecting(let call, let streams, let token), .replied(let id, let result)) where id == call:
            return connected(streams, token, result)

        default: return []
        }
    }

    // MARK: Before the session

    /// Settles what is asked of a portal with these properties, or that it cannot be had.
    private mutating func plan(_ properties: PortalProperties) -> [Action] {
        self.properties = properties
        if options.types.isDisjoint(with: properties.sourceTypes) {
            return end(.failed(.noSuchSource(asked: options.types, available: properties.sourceTypes)))
        }
        // Before version 2 there is no choice, and the pointer is hidden.
        let modes = properties.version >= 2 ? properties.cursorModes : []
        if modes.contains(options.cursorMode) {
            cursorMode = options.cursorMode
        } else if options.cursorModeIsRequired && options.cursorMode != .hidden {
            return end(.failed(.cursorModeUnavailable(asked: options.cursorMode, available: modes)))
        }
        state = .subscribing
        return [.listen]
    }

    // MARK: Requests

    private mutating func createSession() -> [Action] {
        let token = makeToken()
        session = .expected(paths.session(token))
        return ask(.createSession, limit: Self.answerLimit) { [.options(["handle_token": $0, "session_handle_token": .string(token)])] }
    }

    private mutating func selectSources(of session: ObjectPath) -> [Action] {
        // Some desktops show their picker here already: it has at least the time that it would have at Start.
        let limit = options.timeout.map { max($0, Self.answerLimit) }
        let (options, properties, cursorMode, token) = (options, properties, cursorMode, restoreToken)
        return ask(.selectSources, limit: limit) { handleToken in
            var wishes: [String: Value] = [
                "handle_token": handleToken,
                "types": .uint32(options.types.intersection(properties.sourceTypes).rawValue),
                "multiple": .bool(options.multiple),
            ]
            if properties.version >= 2, properties.cursorModes.contains(cursorMode) {
                wishes["cursor_mode"] = .uint32(cursorMode.rawValue)
            }
            if properties.version >= 4 {
                wishes["persist_mode"] = .uint32(options.persistMode.rawValue)
                if let token { wishes["restore_token"] = .string(token) }
            }
            return [.objectPath(session), .options(wishes)]
        }
    }

    private mutating func start(_ session: ObjectPath) -> [Action] {
        let parent = options.parentWindow
        return ask(.start, limit: options.timeout) { [.objectPath(session), .string(parent), .options(["handle_token": $0])] }
            + [.report(.pickerOpened)]
    }

    private mutating func ask(_ step: CastStep, limit: Duration?, _ arguments: (_ handleToken: Value) -> [Value]) -> [Action] {
        let token = makeToken()
        lastCall += 1
        state = .requesting(Request(step: step, call: lastCall, expected: paths.request(token)))
        return [.setTimer(limit), .call(lastCall, step, arguments(.string(token)))]
    }

    private mutating func replied(_ request: Request, _ result: Result<[Value], DBusError>) -> [Action] {
        var request = request
        request.isAnswered = true
        state = .requesting(request)
        switch result {
        case .failure(let error):
            if request.step == .selectSources, restoreToken != nil, error.isAboutArguments, case .open(let path) = session {
                // The session may be told once more: a token that is no good is as good as none.
                restoreToken = nil
                return selectSources(of: path)
            }
            return fail(request, error)
        case .success(let values):
            guard let handle = values.first?.pathValue else {
                return end(.failed(.malformed(request.step, "no request handle")))
            }
            request.handle = handle
            let early = request.early.first { $0.path == handle }
            request.early = []
            state = .requesting(request)
            let listen: [Action] = handle == request.expected ? [] : [.listenAlso(handle)]
            return listen + (early.map { responded(request, $0.path, $0.arguments) } ?? [])
        }
    }

    /// A call for a request failed, so that there is no request.
    private mutating func fail(_ request: Request, _ error: DBusError) -> [Action] {
        switch error {
        case .disconnected:
            session = .gone
            return finish(reporting: .failed(.disconnected))
        case .timedOut:
            // The portal may still be at it.
            return end(.failed(.unresponsive(request.step)))
        default:
            if error.meansLostPortal { return lose() }
            if request.step == .createSession { session = .gone }
            return endWithoutRequest(.failed(PortalError(error, at: request.step)))
        }
    }

    private mutating func responded(_ request: Request, _ path: ObjectPath, _ arguments: [Value]) -> [Action] {
        guard request.isAt(path) else {
            // A few are kept: more than one comes from a portal that is not right in the head.
            if !request.isAnswered, request.early.count < 8 {
                var request = request
                request.early.append((path, arguments))
                state = .requesting(request)
            }
            return []
        }
        switch PortalResponse(arguments) {
        case nil:
            // For all that is known, it may mean that there is a session.
            if request.step == .createSession, case .expected(let path) = session { session = .open(path) }
            return endWithoutRequest(.failed(.malformed(request.step, "a response of another form than (ua{sv})")))
        case .cancelled:
            if request.step == .createSession { session = .gone }
            return endWithoutRequest(.cancelled)
        case .ended:
            if request.step == .createSession { session = .gone }
            return endWithoutRequest(.failed(.ended(request.step)))
        case .success(let results):
            return succeeded(request.step, results)
        }
    }

    private mutating func succeeded(_ step: CastStep, _ results: [String: Value]) -> [Action] {
        guard let expected = sessionPath else { return endWithoutRequest(.failed(.malformed(step, "no session"))) }
        if step == .createSession {
            // Whatever it says of the handle, there is a session now.
            session = .open(expected)
            // The handle is a string by an old mistake of the portal, which its documentation keeps.
            guard let handle = results["session_handle"]?.pathValue else {
                return endWithoutRequest(.failed(.malformed(step, "no session_handle")))
            }
            guard paths.isOwnSession(handle) else {
                return endWithoutRequest(.failed(.malformed(step, "a session_handle of another program")))
            }
            session = .open(handle)
            return selectSources(of: handle)
        }
        if step == .selectSources { return start(expected) }
        switch CastStream.list(from: results["streams"]) {
        case .failure(let error):
            return endWithoutRequest(.failed(error))
        case .success(let streams):
            lastCall += 1
            // KWin has sent more than it was allowed to.
            state = .connecting(
                lastCall, options.multiple ? streams : Array(streams.prefix(1)), restoreToken: results["restore_token"]?.asNonEmptyString)
            return [.setTimer(nil), .stopListeningForResponses, .call(lastCall, .openRemote, [.objectPath(expected), .options([:])])]
        }
    }

    // MARK: The streams

    private mutating func connected(_ streams: [CastStream], _ token: String?, _ result: Result<[Value], DBusError>) -> [Action] {
        switch result {
        case .success(let values):
            guard let remote = values.first?.asDescriptor else {
                return end(.failed(.malformed(.openRemote, "no descriptor")))
            }
            state = .streaming
            return [.report(.granted(CastGrant(streams: streams, remote: remote, restoreToken: token, cursorMode: cursorMode)))]
        case .failure(.disconnected):
            session = .gone
            return finish(reporting: .failed(.disconnected))
        case .failure(let error):
            return error.meansLostPortal ? lose() : end(.failed(PortalError(error, at: .openRemote)))
        }
    }
}
