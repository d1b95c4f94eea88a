// SPDX-License-Identifier: MIT

/// The places in a recording where playing may begin: its key frames, or as many of them as seeking is served by.
///
/// However long the recording is, it takes a bounded amount of memory.
struct CueList {
    struct Cue: Equatable {
        /// Milliseconds since the recording began.
        let time: UInt64
        /// Of the cluster that begins with the key frame, in bytes since the segment's content began.
        let position: UInt64
    }

    /// A day of a key frame each ten seconds.
    static let capacity = 8_640

    private(set) var cues: [Cue] = []
    /// Milliseconds that lie between two of them at least.
    private var distance: UInt64 = 0

    /// Forgets those that stand at a position or behind it.
    mutating func removeAll(from position: UInt64) {
        while let last = cues.last, last.position >= position { cues.removeLast() }
    }

    /// Adds a key frame; times grow.
    mutating func add(_ cue: Cue) {
        if let last = cues.last, cue.time < last.time + distance { return }
        cues.append(cue)
        guard cues.count > Self.capacity, let first = cues.first else { return }
        distance = max(2 * distance, 2 * (cue.time - first.time) / UInt64(cues.count))
        var kept: [Cue] = []
        for cue in cues where kept.last.map({ cue.time >= $0.time + distance }) ?? true { kept.append(cue) }
        cues = kept
    }
}
