// SPDX-License-Identifier: MIT
public import Loop

/// A connection to a bus, on one event loop, which it never blocks.
///
/// Thread: the loop's. Handlers and completions run from the loop, never inside the call that was given them.
/// Ownership: whoever keeps it keeps it open; letting go of it closes it.
public final class Connection {
    /// The loop on which everything happens.
    public let loop: EventLoop
    /// The name that the bus gave to this connection.
    public let uniqueName: BusName
    /// Called once when the bus goes away, after every pending call has failed. Not called for ``close()``.
    public var onDisconnect: (() -> Void)?
    /// What the error is called with which calls are refused that cost more than a client may.
    public var limitErrorName = StandardError.limitsExceeded
    /// Called when a name that ``requestName(_:_:)`` got is taken away, or was released.
    public var onNameLost: ((BusName) -> Void)?

    /// Gets the calls that others make to this connection. Without it they are told that there are no objects.
    ///
    /// - Returns: whether the call was taken.
    var serve: ((Message) -> Bool)?

    private let transport: Transport
    private var allowances = Allowances()
    private var pending: [UInt32: PendingCall] = [:]
    private(set) lazy var signals = SignalRouter(self)

    /// Connects, which blocks until the bus has answered: for the program's start.
    ///
    /// - Throws: `cannotConnect`, with the reason in words.
    public static func open(_ address: BusAddress, on loop: EventLoop) throws(DBusError) -> Connection {
        let (transport, name) = try Transport.open(address, on: loop)
        return Connection(loop, transport, name)
    }

    private init(_ loop: EventLoop, _ transport: Transport, _ uniqueName: BusName) {
        (self.loop, self.transport, self.uniqueName) = (loop, transport, uniqueName)
        transport.receive = { [weak self] message in self?.receive(message) }
    }

    deinit { transport.close() }

    /// Whether the bus is still there, as far as is known.
    public var isConnected: Bool { transport.isConnected }

    /// Writes what is queued, waiting at most a second for a bus that does not read: for the program's end.
    public func flush() { transport.flush(within: .seconds(1)) }

    /// Ends the connection. Pending calls fail as disconnected; no other handler is called any more.
    public func close() {
        transport.close()
        let abandoned = takePending()
        loop.later { for call in abandoned { call.finish(.failure(.disconnected)) } }
    }

    /// Sends a signal, to everybody who subscribed to it or only to `destination`.
    ///
    /// One that cannot be sent is our own mistake; it is logged and dropped.
    public func emit(
        path: ObjectPath, interface: InterfaceName, member: MemberName, arguments: [Value] = [], to destination: BusName? = nil
    ) {
        do throws(DBusError) {
            try transport.send(try Message.signal(path, interface, member, arguments, to: destination))
        } catch .disconnected {
        } catch {
            log.error("The signal \(interface).\(member) cannot be sent: \(error)")
        }
    }

    /// Sends a reply or an error.
    func answer(_ client: BusName, _ message: Message) throws(DBusError) {
        try transport.send(message)
        guard allowances.charge(client, bytes: message.byteCount) else { return }
        // It lies behind all answers, and every library answers it by itself; an error will do as well.
        let ping = MethodCall(destination: client, path: "/", interface: StandardInterfaces.peerName, member: "Ping")
        call(ping, timeout: nil) { [weak self] _ in self?.allowances.restore(client) }
    }

    // MARK: Calls

    /// Calls a method.
    ///
    /// - Parameter timeout: how long the answer may take; nil is for ever.
    /// - Parameter completion: gets the arguments of the reply; `remote` for an error reply, `timedOut`, `disconnected`, or
    ///   `malformed` when the call cannot be sent.
    @discardableResult
    public func call(
        _ call: MethodCall, timeout: Duration? = .seconds(30), _ completion: @escaping (Result<[Value], DBusError>) -> Void
    ) -> PendingCall {
        let pendingCall = PendingCall(completion)
        do throws(DBusError) {
            let serial = try transport.send(try Message.methodCall(call))
            pending[serial] = pendingCall
            pendingCall.abandon = { [weak self] in _ = self?.pending.removeValue(forKey: serial) }
            pendingCall.timer = timeout.map { limit in
                loop.after(limit) { [weak self] in self?.finish(serial, .failure(.timedOut(call.member.text))) }
            }
        } catch {
            loop.later { pendingCall.finish(.failure(error)) }
        }
        return pendingCall
    }

    /// Calls a method and wants no answer, not even an error.
    public func send(_ call: MethodCall) {
        do throws(DBusError) {
            let message = try Message.methodCall(call)
            message.wantsReply = false
            try transport.send(message)
        } catch .disconnected {
        } catch {
            log.error("The call \(call.interface).\(call.member) cannot be sent: \(error)")
        }
    }

    private func finish(_ serial: UInt32, _ result: @autoclosure () -> Result<[Value], DBusError>) {
        pending.removeValue(forKey: serial)?.finish(result())
    }

    private func takePending() -> [PendingCall] {
        defer { pending = [:] }
        return pending.sorted { $0.key < $1.key }.map(\.value)
    }

    // MARK: Messages

    private func receive(_ message: Message) {
        switch message.kind {
        case .methodReturn: finish(message.replySerial, Result { () throws(DBusError) in try message.arguments() })
        case .error: finish(message.replySerial, .failure(message.error))
        case .methodCall: receiveCall(message)
        case .signal where message.interface == .local: receiveLocal(message)
        case .signal: receiveSignal(message)
        case .other: break
        }
    }

    private func receiveCall(_ message: Message) {
        guard let sender = message.sender else { return }
        switch allowances.verdict(on: sender, backlog: transport.queuedBytes) {
        case .serve:
            if let serve, serve(message) { return }
            Call.refuse(message, on: self, StandardError.unknownObject, "This connection has no objects.")
        case .refuse:
            Call.refuse(
                message, on: self, limitErrorName,
                "Too much was answered and not read: read it, and answer calls of org.freedesktop.DBus.Peer; then call again.")
        case .ignore: break
        }
    }

    /// What the library says itself; it lets nobody else use that interface.
    private func receiveLocal(_ message: Message) {
        guard message.member == "Disconnected" else { return }
        for call in takePending() { call.finish(.failure(.disconnected)) }
        let handler = onDisconnect
        onDisconnect = nil
        handler?()
    }

    private func receiveSignal(_ message: Message) {
        if message.sender == .bus, message.interface == .bus, message.member == "NameLost",
            let name = (try? message.arguments())?.first?.asString.flatMap({ BusName($0) }), !name.isUnique
        {
            onNameLost?(name)
        }
        signals.route(message)
    }
}

let log = Log("dbus")

extension InterfaceName {
    /// That of the bus itself.
    static let bus: InterfaceName = "org.freedesktop.DBus"
    /// That of the library's own messages.
    static let local: InterfaceName = "org.freedesktop.DBus.Local"
}

/// A call whose answer has not come.
public final class PendingCall {
    fileprivate var timer: Timer?
    fileprivate var abandon: (() -> Void)?
    private var completion: ((Result<[Value], DBusError>) -> Void)?

    fileprivate init(_ completion: @escaping (Result<[Value], DBusError>) -> Void) { self.completion = completion }

    /// Forgets the call: its completion is not called any more. The peer is not told; the bus has no way to.
    public func cancel() {
        completion = nil
        timer?.cancel()
        timer = nil
        abandon?()
        abandon = nil
    }

    fileprivate func finish(_ result: Result<[Value], DBusError>) {
        let completion = completion
        cancel()
        completion?(result)
    }
}
