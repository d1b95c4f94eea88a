// SPDX-License-Identifier: MIT

/// When a recording asks for a key frame, so that it can be sought in: while pictures come, about every ten seconds.
struct KeyFrameWish {
    /// Milliseconds.
    private static let interval: UInt64 = 10_000

    /// Milliseconds since the recording began: the last key frame, or the last wish for one.
    private var last: UInt64 = 0
    /// Whether one is to be asked for.
    private(set) var isOpen = false

    /// Sees a picture that was recorded, at so many milliseconds since the recording began.
    mutating func see(isKeyFrame: Bool, at time: UInt64) {
        guard isKeyFrame || time >= last + Self.interval else { return }
        last = time
        isOpen = !isKeyFrame
    }

    /// It was asked for.
    mutating func close() { isOpen = false }
}
