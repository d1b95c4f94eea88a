// SPDX-License-Identifier: MIT
public import Loop

/// What a person has granted: the streams, and the way to them.
public struct CastGrant: Sendable {
    /// At least one.
    public let streams: [CastStream]
    /// A connection to PipeWire that sees these streams only. It serves one consumer.
    public let remote: FileDescriptor
    /// What skips the picker next time. A secret, good for one use. Nil where the desktop remembers nothing:
    /// the token that the options carried is used up then.
    public let restoreToken: String?
    /// The mode that the portal was asked for, after any falling back.
    public let cursorMode: CursorMode

    /// A grant of these parts.
    public init(streams: [CastStream], remote: FileDescriptor, restoreToken: String?, cursorMode: CursorMode) {
        (self.streams, self.remote, self.restoreToken, self.cursorMode) = (streams, remote, restoreToken, cursorMode)
    }
}

/// What becomes of a cast.
///
/// At most one ``pickerOpened``, then at most one ``granted(_:)``, then exactly one of the others, which is the last:
/// by then the portal's session is closed. After ``Cast/close()`` nothing comes any more.
public enum CastEvent: Sendable {
    /// The portal was asked to start: its picker is on its way to the screen. From here the timeout counts.
    case pickerOpened
    /// The streams may be consumed.
    case granted(CastGrant)
    /// The person dismissed the picker. Normal.
    case cancelled
    /// There will be no cast.
    case failed(PortalError)
    /// The desktop ended the session, before or after it was granted: usually the person, in the desktop's indicator.
    case closed
    /// The portal left the bus, or another took its place. Whatever it granted is out of anybody's control.
    case portalLost
}
