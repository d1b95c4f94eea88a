// SPDX-License-Identifier: MIT

/// Serves.
public final class ObjectServer {
    /// Serves on a connection.
    public init(_ connection: Connection) {}
    /// Exports.
    public func export(_ path: ObjectPath, _ interfaces: [ExportedInterface], isObjectManager: Bool = false) {}
    /// Takes it back.
    public func unexport(_ path: ObjectPath) {}
    /// Announces.
    public func propertiesChanged(_ path: ObjectPath, _ interface: InterfaceName, _ names: [MemberName]) {}
    /// Emits.
    public func emit(
        _ path: ObjectPath, _ interface: InterfaceName, _ signal: MemberName, _ arguments: [Value] = [], to destination: BusName? = nil
    ) {}
}

/// An interface.
public final class ExportedInterface {
    /// Makes it.
    public init(_ description: InterfaceDescription, methods: [MemberName: (Call) -> Void], properties: [MemberName: Property]) {}
}

/// A property.
public struct Property {
    /// Its present value.
    public let get: () -> Value
    /// Writes.
    public let set: ((Value, Call) -> Void)?
    /// Makes it.
    public init(get: @escaping () -> Value, set: ((Value, Call) -> Void)? = nil) { (self.get, self.set) = (get, set) }
}

/// A call.
public final class Call {
    /// Who.
    public let sender: BusName
    /// The object.
    public let path: ObjectPath
    /// The interface.
    public let interface: InterfaceName
    /// The method.
    public let member: MemberName
    /// The arguments.
    public let arguments: [Value]
    init(sender: BusName, path: ObjectPath, interface: InterfaceName, member: MemberName, arguments: [Value]) {
        (self.sender, self.path, self.interface, self.member, self.arguments) = (sender, path, interface, member, arguments)
    }
    /// Answers.
    public func reply(_ values: [Value] = []) {}
    /// Answers with an error.
    public func fail(name: String, message: String) {}
}
