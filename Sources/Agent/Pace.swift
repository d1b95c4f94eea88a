// SPDX-License-Identifier: MIT
import Frames
import Loop

/// Watches how a broadcast keeps up: at most every ten seconds, while frames come, one line with the counters, and the advice to take a
/// lower preset when coalescing keeps growing.
///
/// On a screen that stands still it sleeps: the pool rings it once for the next frame, and only then does a timer run.
final class Pace {
    private static let window = Duration.seconds(10)

    private unowned let track: Track
    private let pool: FramePool
    private let bell: FileDescriptor
    private let reader: FramePool.ReaderID
    private var watch: Watch?
    private var timer: Timer?
    private var rule: PaceRule

    /// nil when there is no descriptor left for it, which only costs the line.
    init?(_ track: Track) {
        guard let bell = try? FileDescriptor.makeBell() else { return nil }
        (self.track, pool, self.bell) = (track, track.pool, bell)
        rule = PaceRule(track.pool.statistics)
        reader = track.pool.addReader(bell: bell)
        // It wants no picture, so that none counts as coalesced or read on its account.
        track.pool.setNextDue(reader, Instant(nanoseconds: .max))
        watch = track.agent.loop.watch(bell.raw, for: .read) { [weak self] _ in self?.framesCome() }
    }

    deinit {
        timer?.cancel()
        watch?.cancel()
        pool.removeReader(reader)
    }

    private func framesCome() {
        bell.silence()
        guard timer == nil else { return }
        timer = track.agent.loop.after(Pace.window) { [weak self] in self?.windowEnded() }
    }

    private func windowEnded() {
        timer = nil
        let now = pool.statistics
        track.log.info("", of: track.path.text, now.logFields)
        let isTooHigh = rule.windowEnded(now, encoderIsRunning: track.streams.encoderIsRunning)
        if isTooHigh, let lower = track.options.preset.lower(than: track.sentSize, track.options.effectiveFrameRate) {
            track.log.warning("the encoder does not keep up; try preset \(lower.name)", of: track.path.text)
            track.object.emit("PresetTooHigh", [.string(lower.name)])
        }
        pool.skip(reader)
    }
}
