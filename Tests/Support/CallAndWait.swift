// SPDX-License-Identifier: MIT
public import DBus

extension Connection {
    /// Calls a method and runs the loop until the answer is there.
    ///
    /// - Throws: what ``call(_:timeout:_:)`` fails with; `timedOut` also when somebody stops the loop.
    public func callAndWait(_ call: MethodCall, timeout: Duration? = .seconds(30)) throws(DBusError) -> [Value] {
        var result: Result<[Value], DBusError>?
        let pendingCall = self.call(call, timeout: timeout) { result = $0 }
        _ = loop.run(until: { result != nil })
        pendingCall.cancel()
        guard let result else { throw .timedOut(call.member.text) }
        return try result.get()
    }
}
