// SPDX-License-Identifier: MIT
import DBus
import Loop

/// The programs that have called the agent, and who they are, until they leave the bus.
final class Clients {
    /// A client that had called has left the bus.
    var onLeft: ((BusName) -> Void)?

    private enum Entry {
        case asking([(Identity) -> Void])
        case known(Identity)
    }
    private let connection: Connection
    private var entries: [BusName: Entry] = [:]
    private var watches: [BusName: Subscription] = [:]

    init(_ connection: Connection) { self.connection = connection }

    /// Finds out who a client is. The answers come in the order of the questions, at once for a client that is known.
    func identify(_ name: BusName, _ completion: @escaping (Identity) -> Void) {
        switch entries[name] {
        case .known(let identity):
            completion(identity)
        case .asking(let completions):
            entries[name] = .asking(completions + [completion])
        case nil:
            entries[name] = .asking([completion])
            ask(name)
        }
    }

    /// Makes sure that ``onLeft`` comes for a client, also for one that is gone already.
    func watch(_ name: BusName) { identify(name) { _ in } }

    private func ask(_ name: BusName) {
        connection.credentials(of: name) { [weak self] result in
            let credentials = try? result.get()
            let identity = Identity.inspect(processID: credentials?.processID ?? 0, descriptor: credentials?.processDescriptor)
            self?.resolve(name, identity)
        }
        watches[name] = connection.watchName(name) { [weak self] owner in
            if owner == nil { self?.leave(name) }
        }
    }

    private func resolve(_ name: BusName, _ identity: Identity) {
        guard case .asking(let completions) = entries[name] else { return }
        entries[name] = .known(identity)
        for completion in completions { completion(identity) }
    }

    private func leave(_ name: BusName) {
        resolve(name, .unknown())
        entries[name] = nil
        watches.removeValue(forKey: name)?.cancel()
        onLeft?(name)
    }
}
