// SPDX-License-Identifier: MIT

/// For how long the desktop may remember what the person chose.
public enum PersistMode: UInt32, CaseIterable, Sendable {
    /// Not at all.
    case none = 0
    /// While the agent runs.
    case session = 1
    /// Until the person takes it back.
    case forever = 2
}

/// What one cast asks of the portal.
public struct CastOptions: Equatable, Sendable {
    /// What the picker may offer. Masked by what the portal has; nothing left is ``PortalError/noSuchSource(asked:available:)``.
    public var types: SourceTypes = [.monitor, .window]
    /// Whether the person may pick several sources. When not, only the first stream is reported, whatever the desktop sends.
    public var multiple = false
    /// How the pointer should come with the picture.
    public var cursorMode = CursorMode.embedded
    /// Whether a portal that lacks the cursor mode is an error. Otherwise the pointer is hidden.
    public var cursorModeIsRequired = false
    /// For how long the choice may be remembered. Left out before version 4 of the portal.
    public var persistMode = PersistMode.none
    /// The token of an earlier ``CastGrant``, to skip the picker. A token that the portal refuses is as good as none.
    public var restoreToken: String?
    /// The window that the picker belongs to: `x11:XID`, `wayland:HANDLE` or nothing. Not looked into.
    public var parentWindow = ""
    /// How long the picker may stay open, counted from the portal's Start. Nil is for ever.
    public var timeout: Duration? = .seconds(60)

    /// The defaults.
    public init() {}
}
