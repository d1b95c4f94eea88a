// SPDX-License-Identifier: MIT

/// The pools of the sources that a pool's pictures are composed of.
///
/// What is received and lost on the way into the composed picture is counted in the input, and what becomes of it afterwards in the pool itself: a
/// frame that an input delivered is one that was composed, and counts no second time. The sum of both is what ``statistics`` says.
extension FramePool {
    struct Inputs {
        var pools: [FramePool] = []
        /// What was counted of those that have gone.
        var past = FrameStatistics()
    }

    /// From now on this pool's statistics and footprint are those of the input too.
    public func addInput(_ input: FramePool) { inputs.withLock { $0.pools.append(input) } }

    /// The input is not written to any more, and its pictures are forgotten; what was counted of it stays.
    public func removeInput(_ input: FramePool) {
        input.clear()
        inputs.withLock { inputs in
            guard inputs.pools.contains(where: { $0 === input }) else { return }
            inputs.pools.removeAll { $0 === input }
            var counts = input.statistics
            (counts.capacity, counts.footprint) = (0, 0)
            inputs.past.add(counts)
        }
    }
}
