// SPDX-License-Identifier: MIT
public import Loop

/// A connection.
public final class Connection {
    /// The loop.
    public let loop: EventLoop
    /// The name.
    public let uniqueName: BusName
    /// Called once.
    public var onDisconnect: (() -> Void)?
    /// Called when a name is lost.
    public var onNameLost: ((BusName) -> Void)?

    /// Opens.
    public static func open(_ address: BusAddress, on loop: EventLoop) throws(DBusError) -> Connection {
        throw .outOfMemory
    }
    init(loop: EventLoop, uniqueName: BusName) { (self.loop, self.uniqueName) = (loop, uniqueName) }

    /// Calls.
    @discardableResult
    public func call(
        _ call: MethodCall, timeout: Duration? = .seconds(30), _ completion: @escaping (Result<[Value], DBusError>) -> Void
    ) -> PendingCall { PendingCall() }
    /// Calls, and runs the loop.
    public func callAndWait(_ call: MethodCall, timeout: Duration? = .seconds(30)) throws(DBusError) -> [Value] { [] }
    /// Subscribes.
    @discardableResult
    public func subscribe(
        _ rule: MatchRule, _ handler: @escaping (Signal) -> Void, ready: ((DBusError?) -> Void)? = nil
    ) -> Subscription { Subscription() }
    /// Watches.
    @discardableResult
    public func watchName(_ name: BusName, _ changed: @escaping (_ owner: BusName?) -> Void) -> Subscription { Subscription() }
    /// Requests.
    public func requestName(_ name: BusName, _ completion: @escaping (Result<Void, DBusError>) -> Void) {}
    /// Gives the name back.
    public func releaseName(_ name: BusName) {}
    /// Asks.
    public func credentials(of name: BusName, completion: @escaping (Result<Credentials, DBusError>) -> Void) {}
    /// Emits.
    public func emit(
        path: ObjectPath, interface: InterfaceName, member: MemberName, arguments: [Value] = [], to destination: BusName? = nil
    ) {}
    /// Writes what is queued.
    public func flush() {}
    /// Closes.
    public func close() {}
}

/// A call that is under way.
public final class PendingCall {
    /// Forgets the call.
    public func cancel() {}
}

/// Something that goes on until cancelled.
public final class Subscription {
    /// Ends it.
    public func cancel() {}
}
