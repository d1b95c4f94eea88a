// SPDX-License-Identifier: MIT

/// One source, as the portal describes it. What the portal did not say, or said with a wrong type, is nil.
public struct CastStream: Equatable, Sendable {
    /// A position in the compositor's logical space, which is not that of the stream's pixels.
    public struct Position: Equatable, Sendable {
        /// To the right.
        public var x: Int32
        /// Downwards.
        public var y: Int32
    }
    /// A size in the compositor's logical space, which is not that of the stream's pixels.
    public struct LogicalSize: Equatable, Sendable {
        /// Greater than 0.
        public var width: Int32
        /// Greater than 0.
        public var height: Int32
    }

    /// The id of the PipeWire node. Ids are used again after a node is gone.
    public var node: UInt32
    /// The `object.serial` of the node, which is never used again (portal version 6).
    public var serial: UInt64?
    /// Names the source across restored casts. Opaque (version 4).
    public var id: String?
    /// Where the monitor is.
    public var position: Position?
    /// How large the source is, on the screen.
    public var logicalSize: LogicalSize?
    /// What the source is (version 3). Some desktops say `window` of a monitor: good for showing, not for deciding.
    public var sourceType: SourceTypes?
    /// Ties the stream to input regions of other protocols. Opaque (version 5).
    public var mappingID: String?

    /// A stream of which only the node is known.
    public init(node: UInt32) { self.node = node }
}
