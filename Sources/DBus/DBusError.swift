// SPDX-License-Identifier: MIT

/// What can go wrong with a bus.
public enum DBusError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The peer, or the bus for it, answered with an error.
    case remote(name: String, message: String)
    /// The connection is gone, or went before the answer came.
    case disconnected
    /// No answer in time; the associated value is the member that was called.
    case timedOut(String)
    /// A message that cannot be sent, or an answer that is not what was to be expected; in words.
    case malformed(String)
    /// Somebody else has the name.
    case nameTaken(BusName)
    /// There is no bus at the address; in words.
    case cannotConnect(String)
    /// The library has no memory left.
    case outOfMemory

    /// One sentence for people.
    public var description: String {
        switch self {
        case .remote(let name, let message): message.isEmpty ? name : "\(message) (\(name))"
        case .disconnected: "The connection to the bus is gone."
        case .timedOut(let member): "\(member) was not answered in time."
        case .malformed(let detail): detail
        case .nameTaken(let name): "The bus name \(name) is taken."
        case .cannotConnect(let detail): "Cannot connect to the bus: \(detail)"
        case .outOfMemory: "Out of memory."
        }
    }

    /// The name of a remote error; nil for every other one.
    public var remoteName: String? {
        if case .remote(let name, _) = self { return name }
        return nil
    }
}

/// The error names that the bus protocol itself knows.
public enum StandardError {
    /// Something else.
    public static let failed = "org.freedesktop.DBus.Error.Failed"
    /// An argument has the wrong type or value.
    public static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
    /// The interface has no such method.
    public static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
    /// There is nothing at the path.
    public static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
    /// The object has no such interface.
    public static let unknownInterface = "org.freedesktop.DBus.Error.UnknownInterface"
    /// The interface has no such property.
    public static let unknownProperty = "org.freedesktop.DBus.Error.UnknownProperty"
    /// The property cannot be written.
    public static let propertyReadOnly = "org.freedesktop.DBus.Error.PropertyReadOnly"
    /// The caller may not do that.
    public static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    /// Too much was asked for.
    public static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
    /// Nobody has the name, and nothing can be started that would.
    public static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    /// Nobody has the name.
    public static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
    /// The peer left, or the bus gave up on it, before it answered.
    public static let noReply = "org.freedesktop.DBus.Error.NoReply"
}
