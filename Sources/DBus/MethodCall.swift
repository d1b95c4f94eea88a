// SPDX-License-Identifier: MIT
public import Loop

/// What is called, where, and with what.
public struct MethodCall: Sendable {
    /// Who is called.
    public var destination: BusName
    /// The object.
    public var path: ObjectPath
    /// The interface.
    public var interface: InterfaceName
    /// The method.
    public var member: MemberName
    /// The arguments.
    public var arguments: [Value]
    /// Whether a call to a name that nobody has fails, instead of starting the service.
    public var noAutoStart = false

    /// A call that starts the service if need be.
    public init(destination: BusName, path: ObjectPath, interface: InterfaceName, member: MemberName, arguments: [Value] = []) {
        (self.destination, self.path, self.interface) = (destination, path, interface)
        (self.member, self.arguments) = (member, arguments)
    }
}

/// A signal that came.
public struct Signal: Sendable {
    /// The unique name of who sent it, as the bus vouches for it; the bus itself is ``BusName/bus``.
    public let sender: BusName?
    /// The object that it is about.
    public let path: ObjectPath
    /// The interface.
    public let interface: InterfaceName
    /// The signal's name.
    public let member: MemberName
    /// Its arguments.
    public let arguments: [Value]
}

/// Who a connection belongs to, as the bus knows it.
public struct Credentials: Sendable {
    /// The process, in the bus's own namespace. The number may be another process's by now, unless ``processDescriptor`` says otherwise.
    public let processID: UInt32?
    /// The user.
    public let userID: UInt32?
    /// A descriptor of the process, where bus and kernel can give one.
    public let processDescriptor: FileDescriptor?

    /// Puts together what a bus said.
    public init(processID: UInt32?, userID: UInt32?, processDescriptor: FileDescriptor?) {
        (self.processID, self.userID, self.processDescriptor) = (processID, userID, processDescriptor)
    }
}
