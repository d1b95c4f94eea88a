// SPDX-License-Identifier: MIT

/// The objects that a connection has, each with interfaces that are driven by their XML.
///
/// It serves Properties, Introspectable, Peer and, where asked for, ObjectManager by itself; paths between objects are
/// introspectable. Calls that the XML does not allow never reach a handler.
///
/// Ownership: one server a connection, which it keeps open; the owner keeps the server.
public final class ObjectServer {
    struct Object {
        /// Those that were exported.
        let own: [ExportedInterface]
        /// Those that every object has.
        let standard: [ExportedInterface]
        let isObjectManager: Bool
        var all: [ExportedInterface] { own + standard }
    }

    let connection: Connection
    private(set) var objects: [ObjectPath: Object] = [:]
    private(set) lazy var standard = StandardInterfaces(self)

    /// Serves the calls that are made to a connection.
    public init(_ connection: Connection) {
        self.connection = connection
        connection.serve = { [weak self] message in
            self?.serve(message)
            return self != nil
        }
    }

    /// Makes an object, in place of one that has the path already, and announces it to the nearest object manager above.
    ///
    /// - Parameter isObjectManager: whether it also lists the objects below it.
    public func export(_ path: ObjectPath, _ interfaces: [ExportedInterface], isObjectManager: Bool = false) {
        unexport(path)
        let standard = standard.ofObjects + (isObjectManager ? [standard.objectManager] : [])
        let object = Object(own: interfaces, standard: standard, isObjectManager: isObjectManager)
        objects[path] = object
        if let manager = manager(of: path) {
            emitFromManager(manager, "InterfacesAdded", [.objectPath(path), ObjectServer.describe(object)])
        }
    }

    /// Removes an object, if there is one, and announces it to the nearest object manager above. Objects below it stay.
    public func unexport(_ path: ObjectPath) {
        guard let object = objects.removeValue(forKey: path), let manager = manager(of: path) else { return }
        emitFromManager(manager, "InterfacesRemoved", [.objectPath(path), .strings(object.own.map(\.name.text))])
    }

    /// Announces in one signal that properties changed, with their present values as far as the XML wants that.
    public func propertiesChanged(_ path: ObjectPath, _ interface: InterfaceName, _ names: [MemberName]) {
        guard let exported = objects[path]?.own.first(where: { $0.name == interface }) else {
            return log.error("There is no \(interface) at \(path) whose properties could change.")
        }
        var values: [String: Value] = [:]
        var invalidated: [String] = []
        for name in names {
            guard let property = exported.description.property(name) else {
                log.error("\(interface) has no property \(name) that could change.")
                continue
            }
            switch property.changes {
            case .announced: values[name.text] = exported.value(of: property)
            case .invalidated: invalidated.append(name.text)
            case .constant, .silent: break
            }
        }
        guard !values.isEmpty || !invalidated.isEmpty else { return }
        connection.emit(
            path: path, interface: StandardInterfaces.propertiesName, member: "PropertiesChanged",
            arguments: [.string(interface.text), .options(values), .strings(invalidated)])
    }

    /// Sends a signal of an object, to everybody who subscribed to it or only to `destination`.
    ///
    /// One that the XML does not describe is our own mistake; it is logged and dropped.
    public func emit(
        _ path: ObjectPath, _ interface: InterfaceName, _ signal: MemberName, _ arguments: [Value] = [], to destination: BusName? = nil
    ) {
        guard let exported = objects[path]?.own.first(where: { $0.name == interface }),
            let described = exported.description.signal(signal)
        else { return log.error("There is no \(interface) at \(path) with a signal \(signal).") }
        let signature = arguments.map(\.signature.text).joined()
        guard signature == described.signature.text else {
            return log.error("The signal \(interface).\(signal) has the types \"\(described.signature)\", not \"\(signature)\".")
        }
        connection.emit(path: path, interface: interface, member: signal, arguments: arguments, to: destination)
    }

    // MARK: The tree

    /// The names of the elements right below a path that lead to objects.
    func children(of path: ObjectPath) -> [String] {
        let prefix = path.prefixOfDescendants
        let names = objects.keys.lazy.filter { $0 != path && $0.text.hasPrefix(prefix) }
            .map { String($0.text.dropFirst(prefix.count).prefix { $0 != "/" }) }
        return Set(names).sorted()
    }

    /// The objects that an object manager answers for: all below it, except those of a nearer one. `a{oa{sa{sv}}}`.
    func managedObjects(of path: ObjectPath) -> Value {
        let managed = objects.filter { manager(of: $0.key) == path }.sorted { $0.key < $1.key }
        return .dictionary(
            key: "o", value: "a{sa{sv}}", managed.map { Value.Entry(key: .objectPath($0.key), value: ObjectServer.describe($0.value)) })
    }

    private func manager(of path: ObjectPath) -> ObjectPath? {
        var candidate = path.parent
        while let path = candidate {
            if objects[path]?.isObjectManager == true { return path }
            candidate = path.parent
        }
        return nil
    }

    private func emitFromManager(_ path: ObjectPath, _ signal: MemberName, _ arguments: [Value]) {
        connection.emit(path: path, interface: StandardInterfaces.objectManagerName, member: signal, arguments: arguments)
    }

    /// `a{sa{sv}}`: the properties by interface.
    private static func describe(_ object: Object) -> Value {
        .dictionary(
            key: "s", value: "a{sv}",
            object.own.map { Value.Entry(key: .string($0.name.text), value: .options($0.values)) })
    }
}

// MARK: - Calls

extension ObjectServer {
    private func serve(_ message: Message) {
        guard let path = message.path, let member = message.member else { return }
        func refuse(_ name: String, _ text: String) { Call.refuse(message, on: connection, name, text) }
        let interfaces = objects[path]?.all ?? (children(of: path).isEmpty ? [] : standard.ofPaths)
        // Any path answers a Ping: it asks for the connection, not for an object.
        let candidates = interfaces.isEmpty && message.interface == standard.peer.name ? [standard.peer] : interfaces
        guard !candidates.isEmpty else { return refuse(StandardError.unknownObject, "There is no object at \(path).") }
        guard let name = message.interface else {
            guard let exported = candidates.first(where: { $0.methods[member] != nil }) else {
                return refuse(StandardError.unknownMethod, "No interface of \(path) has a method \(member).")
            }
            return perform(message, exported, member)
        }
        guard let exported = candidates.first(where: { $0.name == name }) else {
            let names = candidates.map(\.name)
            return refuse(StandardError.unknownInterface, "The object \(path) has no interface \(name). \(list("It has", names))")
        }
        guard exported.methods[member] != nil else {
            let methods = exported.description.methods.map(\.name)
            return refuse(StandardError.unknownMethod, "The interface \(name) has no method \(member). \(list("It has", methods))")
        }
        perform(message, exported, member)
    }

    private func perform(_ message: Message, _ exported: ExportedInterface, _ member: MemberName) {
        guard let method = exported.description.method(member), let handler = exported.methods[member],
            let call = Call.accept(message, on: connection, exported.name, method)
        else { return }
        handler(call)
    }
}

/// A sentence that lists names.
func list(_ start: String, _ names: [some ValidatedName]) -> String {
    "\(start) \(names.isEmpty ? "none" : names.map(\.text).joined(separator: ", "))."
}
