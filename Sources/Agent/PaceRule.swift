// SPDX-License-Identifier: MIT
import Frames

/// Decides from a broadcast's counters, one window after the other, whether its encoder keeps up.
///
/// Whoever calls it keeps the time: it has no clock.
struct PaceRule {
    /// Windows in a row, with more than a tenth of their frames coalesced, before a lower preset is suggested.
    static let patience = 3

    private var before: FrameStatistics
    private var slowWindows = 0

    /// - Parameter statistics: the counters when the first window begins.
    init(_ statistics: FrameStatistics) { before = statistics }

    /// Notes the end of a window; the next one begins.
    ///
    /// - Parameters:
    ///   - now: the counters at present.
    ///   - encoderIsRunning: frames that nobody encodes are nobody's loss.
    /// - Returns: whether the encoder has not kept up for long enough to say so. It is said again only after as many windows more.
    mutating func windowEnded(_ now: FrameStatistics, encoderIsRunning: Bool) -> Bool {
        let received = now.received - before.received
        let coalesced = now.coalesced - before.coalesced
        before = now
        slowWindows = encoderIsRunning && coalesced * 10 > received ? slowWindows + 1 : 0
        guard slowWindows == PaceRule.patience else { return false }
        slowWindows = 0
        return true
    }
}
