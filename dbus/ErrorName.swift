// SPDX-License-Identifier: MIT

/// Every error of the contract: its D-Bus name, and what `vitrinectl` exits with when it gets it.
public enum ErrorName: String, CaseIterable, Sendable {
    /// A broadcast was asked for on a track that does not capture.
    case notListening = "NotListening"
    /// Another picker is open, or the track is past the state in which this makes sense.
    case busy = "Busy"
    /// Nothing is being broadcast.
    case notActive = "NotActive"
    /// The user closed the picker, or the start was stopped meanwhile.
    case cancelled = "Cancelled"
    /// The picker or the first frame did not come in time.
    case timedOut = "TimedOut"
    /// The caller may not do that.
    case notAllowed = "NotAllowed"
    /// Known, but not possible here.
    case unsupported = "Unsupported"
    /// There is no portal, or it has no ScreenCast.
    case portalUnavailable = "PortalUnavailable"
    /// PipeWire cannot be reached.
    case pipewireUnavailable = "PipeWireUnavailable"
    /// The client has too many of them already.
    case limitExceeded = "LimitExceeded"
    /// None of the others.
    case failed = "Failed"
    /// The bus's own: an argument, option or property value is wrong.
    case invalidArgs = "InvalidArgs"
    /// The bus's own: there is no such object, or no longer.
    case unknownObject = "UnknownObject"

    /// The name of the error on the bus.
    public var dbusName: String {
        switch self {
        case .invalidArgs, .unknownObject: "org.freedesktop.DBus.Error." + rawValue
        default: Contract.errorPrefix + rawValue
        }
    }

    /// The error of that D-Bus name.
    public init?(dbusName: String) {
        guard let name = ErrorName.allCases.first(where: { $0.dbusName == dbusName }) else { return nil }
        self = name
    }

    /// 1 failed, 2 usage, 3 cancelled, 4 unavailable, 5 timed out.
    public var exitCode: Int32 {
        switch self {
        case .invalidArgs: 2
        case .cancelled: 3
        case .portalUnavailable, .pipewireUnavailable: 4
        case .timedOut: 5
        default: 1
        }
    }
}
