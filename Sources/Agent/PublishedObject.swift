// SPDX-License-Identifier: MIT
import DBus

/// One exported interface whose changes are found by comparing: what differs from what was last announced is announced, in one signal.
final class PublishedObject {
    let path: ObjectPath
    private let interface: InterfaceName
    private let server: ObjectServer
    private let watched: [(name: MemberName, property: Property)]
    private var announced: [MemberName: Value] = [:]

    /// Exports the object.
    init(
        _ path: ObjectPath, _ description: InterfaceDescription, on server: ObjectServer, methods: [MemberName: (Call) -> Void],
        properties: [MemberName: Property], isObjectManager: Bool = false
    ) {
        (self.path, self.interface, self.server) = (path, description.name, server)
        watched = description.properties.filter { $0.changes == .announced }.compactMap { described in
            properties[described.name].map { (described.name, $0) }
        }
        for (name, property) in watched { announced[name] = property.get() }
        server.export(
            path, [ExportedInterface(description, methods: methods, properties: properties)], isObjectManager: isObjectManager)
    }

    /// Sends one `PropertiesChanged` with all that is new, or none.
    func publish() {
        var changed: [MemberName] = []
        for (name, property) in watched {
            let value = property.get()
            guard announced[name] != value else { continue }
            announced[name] = value
            changed.append(name)
        }
        if !changed.isEmpty { server.propertiesChanged(path, interface, changed) }
    }

    func emit(_ signal: MemberName, _ arguments: [Value] = []) { server.emit(path, interface, signal, arguments) }

    /// Takes the object off the bus.
    func remove() { server.unexport(path) }
}

extension Call {
    /// Answers with an error of the contract.
    func fail(_ error: AgentError) { fail(name: error.name.dbusName, message: error.message) }

    /// The `a{sv}` at that place; empty when there is none.
    func options(at index: Int) -> [String: Value] { arguments[index].asOptions ?? [:] }
}
