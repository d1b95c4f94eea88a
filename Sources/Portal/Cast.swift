// SPDX-License-Identifier: MIT
import DBus
import Loop

/// One cast: a portal's session, from the wish to its end.
///
/// Thread: that of its ``ScreenCastPortal``.
public final class Cast {
    private static let log = Log("portal")

    private weak var portal: ScreenCastPortal?
    private let connection: Connection
    private let number: Int
    private let events: (CastEvent) -> Void
    private(set) var machine: CastMachine
    private var hasBegun = false
    /// The connection that is cast with: answers and signals of another owner of the portal's name are not meant.
    private var peer = ScreenCastPortal.name
    private var responses: [Subscription] = []
    private var closed: Subscription?
    private var timer: Timer?
    private var actions: [CastMachine.Action] = []
    private var isPerforming = false

    init(_ portal: ScreenCastPortal, number: Int, _ options: CastOptions, _ events: @escaping (CastEvent) -> Void) {
        (self.portal, connection, self.number, self.events) = (portal, portal.connection, number, events)
        machine = CastMachine(options: options, caller: connection.uniqueName)
    }

    /// Ends the cast: closes the picker where the desktop can, and the session. No event comes any more.
    ///
    /// Returns at once; the desktop's own indicator may go out a moment later. Closing again does nothing.
    public func close() { handle(.closeRequested) }

    /// Begins. The caller has its cast by now.
    func begin() {
        hasBegun = true
        if let owner = portal?.owner { peer = owner }
        handle(.begun(portal?.currentProperties))
    }

    /// The portal's name has lost the owner that is cast with.
    func portalLost() {
        if hasBegun { handle(.portalLost) }
    }

    // MARK: Doing what the machine says

    private func handle(_ event: CastMachine.Event) {
        let before = machine.stateName
        actions += machine.handle(event)
        if machine.stateName != before { Self.log.info("", fields()) }
        // An event's receiver may close the cast: that follows what is being done already.
        if isPerforming { return }
        isPerforming = true
        defer { isPerforming = false }
        while !actions.isEmpty { perform(actions.removeFirst()) }
    }

    /// A transition, without any handle or token.
    private func fields() -> LogFields {
        var fields: LogFields = ["cast": "\(number)", "state": machine.stateName]
        for case .report(let event) in actions {
            switch event {
            case .pickerOpened: break
            case .granted(let grant): fields.add(["streams": "\(grant.streams.count)", "cursor": "\(grant.cursorMode)"])
            case .cancelled: fields.add(["reason": "cancelled"])
            case .failed(let error): fields.add(["reason": "failed", "detail": "\(error)"])
            case .closed: fields.add(["reason": "closed-by-desktop"])
            case .portalLost: fields.add(["reason": "portal-lost"])
            }
        }
        return fields
    }

    private func perform(_ action: CastMachine.Action) {
        switch action {
        case .readProperties:
            readProperties()
        case .listen:
            listen()
        case .listenAlso(let path):
            responses.append(subscribe(MatchRule(sender: peer, path: path, interface: CastInterfaces.request, member: "Response")))
        case .stopListeningForResponses:
            stopListeningForResponses()
        case .call(let id, let step, let arguments):
            call(step, arguments) { [weak self] in self?.handle(.replied(id, $0)) }
        // Their answers matter to nobody: a portal that hangs cannot hold up an end.
        case .closeRequest(let path):
            connection.send(MethodCall(destination: peer, path: path, interface: CastInterfaces.request, member: "Close"))
        case .closeSession(let path):
            connection.send(MethodCall(destination: peer, path: path, interface: CastInterfaces.session, member: "Close"))
        case .setTimer(let delay):
            timer?.cancel()
            timer = delay.map { connection.loop.after($0) { [weak self] in self?.handle(.timerFired) } }
        case .report(let event):
            events(event)
        case .finish:
            stopListeningForResponses()
            closed?.cancel()
            portal?.forget(number)
        }
    }

    private func readProperties() {
        portal?.readProperties { [weak self] result in
            guard let self else { return }
            // Only the owner's unique name is spoken to from here on: a portal that starts anew knows nothing of this cast.
            if case .success(let answer) = result { peer = answer.owner }
            handle(.propertiesRead(result.map(\.properties)))
        }
    }

    private func call(_ step: CastStep, _ arguments: [Value], _ completion: @escaping (Result<[Value], DBusError>) -> Void) {
        let member: MemberName =
            switch step {
            case .properties: "GetAll"
            case .createSession: "CreateSession"
            case .selectSources: "SelectSources"
            case .start: "Start"
            case .openRemote: "OpenPipeWireRemote"
            }
        let call = MethodCall(
            destination: peer, path: PortalPaths.desktop, interface: CastInterfaces.screenCast, member: member, arguments: arguments)
        connection.call(call, timeout: portal?.callLimit ?? CastMachine.answerLimit, completion)
    }

    // MARK: Signals

    private func listen() {
        var missing = 2
        let ready: (DBusError?) -> Void = { [weak self] error in
            missing -= 1
            if error != nil || missing == 0 { self?.handle(.listening(error)) }
        }
        // All paths of the portal, because a request may be put where nobody expects it, and respond before its call is
        // answered. Other programs' responses are addressed to them and do not come here.
        let rule = MatchRule(sender: peer, pathNamespace: PortalPaths.desktop, interface: CastInterfaces.request, member: "Response")
        responses.append(subscribe(rule, ready: ready))
        let closedRule = MatchRule(
            sender: peer, pathNamespace: machine.paths.sessions, interface: CastInterfaces.session, member: "Closed")
        closed = connection.subscribe(closedRule, { [weak self] in self?.handle(.sessionClosed($0.path)) }, ready: ready)
    }

    private func subscribe(_ rule: MatchRule, ready: ((DBusError?) -> Void)? = nil) -> Subscription {
        connection.subscribe(rule, { [weak self] in self?.handle(.response($0.path, $0.arguments)) }, ready: ready)
    }

    private func stopListeningForResponses() {
        for subscription in responses { subscription.cancel() }
        responses = []
    }
}
