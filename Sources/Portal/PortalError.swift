// SPDX-License-Identifier: MIT

/// A step of a cast, named after what is asked of the portal.
public enum CastStep: String, CaseIterable, Sendable {
    /// The properties are read.
    case properties = "GetAll"
    /// The session is made.
    case createSession = "CreateSession"
    /// The wishes are told. Some desktops show their picker here.
    case selectSources = "SelectSources"
    /// The picker, usually.
    case start = "Start"
    /// The way to PipeWire.
    case openRemote = "OpenPipeWireRemote"
}

/// Why there is no cast. The description says what was wrong and what to do about it.
public enum PortalError: Error, Equatable, Sendable {
    /// Nobody owns the portal's name and nobody could be started. The argument is the bus's word on it.
    case noPortal(String)
    /// A portal runs, but without a screen cast: it found no backend when it started.
    case noScreenCast(String)
    /// The portal does not answer.
    case unresponsive(CastStep)
    /// The portal has none of the asked source types.
    case noSuchSource(asked: SourceTypes, available: SourceTypes)
    /// The portal lacks the asked cursor mode, and nothing else would do.
    case cursorModeUnavailable(asked: CursorMode, available: CursorModes)
    /// The portal answered a call with an error.
    case refused(CastStep, name: String, message: String)
    /// The portal gave up, and not because of the person (response 2).
    case ended(CastStep)
    /// The portal answered something that cannot be used.
    case malformed(CastStep, String)
    /// The picker was open for too long.
    case timedOut
    /// The bus is gone.
    case disconnected
}

extension PortalError: CustomStringConvertible {
    private static let restart = "try `systemctl --user restart xdg-desktop-portal`"

    /// What was wrong, and what to do about it.
    public var description: String {
        switch self {
        case .noPortal(let detail):
            "no desktop portal can be reached (\(detail)): install xdg-desktop-portal and the backend of this desktop, then log in again"
        case .noScreenCast(let detail):
            "the desktop portal offers no screen cast (\(detail)): install the backend of this desktop; if it is there, \(Self.restart)"
        case .unresponsive(let step):
            "the desktop portal does not answer \(step.rawValue): \(Self.restart)"
        case .noSuchSource(let asked, let available):
            "the desktop portal offers \(available), but \(asked) was asked for: ask for something that it has"
                + (available.isEmpty ? ", or \(Self.restart)" : "")
        case .cursorModeUnavailable(let asked, let available):
            "the desktop portal has no cursor mode \(asked), only: \(available)"
        case .refused(let step, let name, let message):
            "the desktop portal refused \(step.rawValue): \(message) (\(name))"
        case .ended(let step):
            "the desktop portal gave up at \(step.rawValue): see the journal of its backend, or \(Self.restart)"
        case .malformed(let step, let detail):
            "the desktop portal's answer to \(step.rawValue) cannot be used: \(detail)"
        case .timedOut:
            "the picker was not answered in time: start again, or allow more time"
        case .disconnected:
            "the session bus is gone"
        }
    }
}
