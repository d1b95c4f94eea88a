// SPDX-License-Identifier: MIT

/// The right to read one frame of a pool. While it lives, nobody writes to the frame; its end gives the slot back.
public struct FrameLease: ~Copyable, Sendable {
    /// Which frame it is.
    public let info: FrameInfo
    private let pool: FramePool
    private let slot: Int
    private let planes: FramePool.Planes

    init(pool: FramePool, slot: Int, info: FrameInfo, planes: FramePool.Planes) {
        (self.pool, self.slot, self.info, self.planes) = (pool, slot, info, planes)
    }

    deinit { pool.release(slot) }

    /// Luma samples.
    public var size: PixelSize { planes.size }

    /// Hands the planes to `body`, to read only.
    ///
    /// Ownership: valid inside `body`; a library that keeps pointers to them may use them for as long as the lease lives.
    public borrowing func withPlanes<Result, Failure: Error>(_ body: (I420Planes) throws(Failure) -> Result) throws(Failure) -> Result {
        try body(planes.view)
    }
}
