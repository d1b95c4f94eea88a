// SPDX-License-Identifier: MIT
public import Loop

/// Which frame of a pool a picture is.
public struct FrameInfo: Sendable {
    /// Counts the pool's frames from 1 on, without gaps.
    public let sequence: UInt64
    /// When the producer says that it showed the picture; strictly later than the frame before.
    public let time: Instant
    /// When the producer's buffer came.
    public let arrival: Instant
    /// What differs from the frame that the same reader took before, in pixels of this picture. Empty: the same picture again.
    public internal(set) var damage: Damage
}
