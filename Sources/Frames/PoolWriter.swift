// SPDX-License-Identifier: MIT

/// What writes into a pool until something else does: a captured source, or several of them composed.
///
/// Thread: capture.
public protocol PoolWriter: AnyObject {
    /// Whether another one's pictures go into the pool in place of this one's.
    var isReplaced: Bool { get set }
}
