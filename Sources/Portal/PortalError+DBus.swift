// SPDX-License-Identifier: MIT
import DBus

extension DBusError {
    private static let prefix = "org.freedesktop.DBus.Error."

    /// The part of a standard error's name that varies. Nil when it is another's error, or none of a peer.
    private var standardName: String? {
        guard case .remote(let name, _) = self, name.hasPrefix(Self.prefix) else { return nil }
        return String(name.dropFirst(Self.prefix.count))
    }

    /// Whether the peer found fault with an argument: of a restore token, that it is no good.
    var isAboutArguments: Bool {
        if case .remote("org.freedesktop.portal.Error.InvalidArgument", _) = self { return true }
        return standardName == "InvalidArgs"
    }

    /// Whether a call to a portal that was there means that it left. For calls to its unique name.
    var meansLostPortal: Bool {
        switch standardName {
        case "ServiceUnknown", "NameHasNoOwner", "NoReply", "Disconnected": true
        default: false
        }
    }

    /// The whole error in words.
    fileprivate var words: String {
        switch self {
        case .remote(let name, let message): message.isEmpty ? name : message
        default: "\(self)"
        }
    }
}

extension PortalError {
    /// Why a step failed, from the error of its call.
    init(_ error: DBusError, at step: CastStep) {
        switch error {
        case .disconnected:
            self = .disconnected
        case .timedOut:
            self = .unresponsive(step)
        case .remote(let name, let message):
            self = PortalError(name: name, message: message, words: error.words, at: step)
        case .malformed(let detail):
            self = .malformed(step, detail)
        default:
            self = .refused(step, name: "org.freedesktop.DBus.Error.Failed", message: error.words)
        }
    }

    private init(name: String, message: String, words: String, at step: CastStep) {
        let prefix = "org.freedesktop.DBus.Error."
        switch name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : name {
        case "ServiceUnknown", "NameHasNoOwner":
            self = .noPortal(words)
        case let standard where standard.hasPrefix("Spawn."):
            self = .noPortal(words)
        case "NoReply", "Timeout", "TimedOut":
            self = .unresponsive(step)
        case "UnknownInterface", "UnknownMethod", "UnknownObject", "UnknownProperty":
            self = .noScreenCast(words)
        case "InvalidArgs" where step == .properties:
            // GLib's word for an interface that an object does not have, when it is asked for its properties.
            self = .noScreenCast(words)
        default:
            self = .refused(step, name: name, message: message)
        }
    }
}
