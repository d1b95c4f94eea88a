// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop
import TestSupport
import Testing

/// A child process whose output can be read.
struct Child {
    let id: pid_t
    let output: FileDescriptor

    init(_ arguments: [String]) throws {
        let (reading, writing) = try FileDescriptor.pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, writing.raw, 1)
        // The bus complains where it may not raise its limit of descriptors.
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // The test's thread blocks signals; the child must not inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var strings = arguments.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var id: pid_t = 0
        let code = withExtendedLifetime(writing) { posix_spawnp(&id, arguments[0], &actions, &attributes, &strings, environ) }
        guard code == 0 else { throw Errno(code) }
        (self.id, output) = (id, reading)
    }

    /// Reads everything while the loop runs, then collects the exit status.
    func finish(on loop: EventLoop) throws -> (status: Int32, text: String) {
        try output.setNonBlocking()
        var text: [UInt8] = []
        var isAtEnd = false
        let watch = loop.watch(output.raw, for: .read) { _ in
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let count = read(self.output.raw, &bytes, bytes.count)
            if count > 0 { text += bytes[..<count] } else { isAtEnd = true }
        }
        defer { watch.cancel() }
        _ = loop.run(until: { isAtEnd }, timeout: .seconds(60))
        var status: Int32 = -1
        waitpid(id, &status, 0)
        return (status, String(decoding: text, as: UTF8.self))
    }
}

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
