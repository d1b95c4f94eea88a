// SPDX-License-Identifier: MIT

/// What a portal says of its `org.freedesktop.portal.ScreenCast`.
public struct PortalProperties: Equatable, Sendable {
    /// The interface's version. Up to 1.21.1 it is what the portal was built with, whatever its backend can do.
    public var version: UInt32
    /// What its picker can offer.
    public var sourceTypes: SourceTypes
    /// How it can deliver the pointer. Empty before version 2.
    public var cursorModes: CursorModes

    /// Properties with these values.
    public init(version: UInt32, sourceTypes: SourceTypes, cursorModes: CursorModes) {
        (self.version, self.sourceTypes, self.cursorModes) = (version, sourceTypes, cursorModes)
    }
}
