// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport
import Testing

/// A bus with a client and a service on it, all on the test's own thread.
final class Stage {
    let bus: PrivateBus
    let loop: EventLoop
    let client: Connection
    let service: Connection

    init() throws {
        bus = try PrivateBus()
        loop = try EventLoop()
        client = try Connection.open(bus.address, on: loop)
        service = try Connection.open(bus.address, on: loop)
    }

    func connect() throws -> Connection { try Connection.open(bus.address, on: loop) }

    /// Runs the loop until the condition holds.
    func wait(_ location: SourceLocation = #_sourceLocation, until condition: () -> Bool) {
        let holds = loop.run(until: condition, timeout: .seconds(60))
        #expect(holds, sourceLocation: location)
    }

    /// Lets everything that is on its way arrive: a round trip of each connection, after which the bus has nothing older.
    func settle(_ connections: Connection...) {
        for connection in connections + [client, service, client, service] {
            _ = try? connection.callAndWait(
                MethodCall(destination: .bus, path: "/", interface: "org.freedesktop.DBus.Peer", member: "Ping"))
        }
    }

    func request(_ name: BusName, _ connection: Connection) -> DBusError? {
        var result: Result<Void, DBusError>?
        connection.requestName(name) { result = $0 }
        wait { result != nil }
        if case .failure(let error) = result { return error }
        return nil
    }

    func subscribe(_ connection: Connection, _ rule: MatchRule, _ handler: @escaping (Signal) -> Void) -> Subscription {
        var outcome: DBusError??
        let subscription = connection.subscribe(rule, handler) { outcome = .some($0) }
        wait { outcome != nil }
        #expect(outcome == .some(nil))
        return subscription
    }
}

extension Array {
    /// The element, or nil: a test that goes wrong must not stop the others.
    subscript(checked index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

/// What a body throws, or nil.
func failure<Success>(_ body: () throws(DBusError) -> Success) -> DBusError? {
    do throws(DBusError) {
        _ = try body()
        return nil
    } catch {
        return error
    }
}
