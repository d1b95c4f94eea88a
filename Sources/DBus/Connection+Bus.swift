// SPDX-License-Identifier: MIT

/// What a connection asks of the bus itself.
extension Connection {
    /// Asks for a well-known name, without waiting in line for it.
    ///
    /// - Parameter completion: `nameTaken` when somebody else has it; success also when this connection has it already.
    public func requestName(_ name: BusName, _ completion: @escaping (Result<Void, DBusError>) -> Void) {
        let doNotQueue: UInt32 = 4
        callBus("RequestName", [.string(name.text), .uint32(doNotQueue)]) { result in
            completion(
                result.flatMap { values in
                    switch values.first?.asUInt32 {
                    case 1, 4: .success(())
                    case 3: .failure(.nameTaken(name))
                    default: .failure(.malformed("The bus answered RequestName with \(values)."))
                    }
                })
        }
    }

    /// Gives a name back.
    public func releaseName(_ name: BusName) { send(.bus("ReleaseName", [.string(name.text)])) }

    /// Asks who a connection belongs to.
    ///
    /// - Parameter completion: fails with `remote` when nobody has the name.
    public func credentials(of name: BusName, completion: @escaping (Result<Credentials, DBusError>) -> Void) {
        callBus("GetConnectionCredentials", [.string(name.text)]) { result in
            completion(
                result.flatMap { values in
                    guard let options = values.first?.asOptions else {
                        return .failure(.malformed("The bus answered GetConnectionCredentials with \(values)."))
                    }
                    return .success(
                        Credentials(
                            processID: options["ProcessID"]?.asUInt32, userID: options["UnixUserID"]?.asUInt32,
                            processDescriptor: options["ProcessFD"]?.asDescriptor))
                })
        }
    }

    /// Calls `changed` with the present owner of a name, nil for nobody, and then with every later one.
    ///
    /// It goes on until the subscription is cancelled, whether that is kept or not. When the bus goes, nothing more is told.
    @discardableResult
    public func watchName(_ name: BusName, _ changed: @escaping (_ owner: BusName?) -> Void) -> Subscription {
        signals.watchName(name, changed)
    }

    /// Gives `handler` every signal that matches the rule, also those sent to this connection alone.
    ///
    /// A well-known sender is followed: only signals of its present owner match.
    /// It goes on until the subscription is cancelled, whether that is kept or not.
    ///
    /// - Parameter ready: called when the bus has confirmed the rule: nothing sent later is missed. Or with the error.
    ///   What is called after `subscribe` on the same connection needs not wait for it: the bus takes requests in order.
    @discardableResult
    public func subscribe(
        _ rule: MatchRule, _ handler: @escaping (Signal) -> Void, ready: ((DBusError?) -> Void)? = nil
    ) -> Subscription {
        signals.subscribe(rule, handler, ready)
    }

    /// Calls a method of the bus, which answers as long as it is there.
    func callBus(_ member: MemberName, _ arguments: [Value], _ completion: @escaping (Result<[Value], DBusError>) -> Void) {
        call(.bus(member, arguments), timeout: nil, completion)
    }
}

extension MethodCall {
    /// A call of the bus itself.
    static func bus(_ member: MemberName, _ arguments: [Value]) -> MethodCall {
        MethodCall(destination: .bus, path: "/org/freedesktop/DBus", interface: .bus, member: member, arguments: arguments)
    }
}

/// Something that goes on until it is cancelled.
public final class Subscription {
    private var end: (() -> Void)?

    init(_ end: @escaping () -> Void) { self.end = end }

    /// Ends it: its handler is not called any more.
    public func cancel() {
        let end = end
        self.end = nil
        end?()
    }
}
