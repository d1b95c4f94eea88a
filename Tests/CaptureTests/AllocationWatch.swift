// SPDX-License-Identifier: MIT
import CAllocations
import Synchronization

@testable import Capture

/// Counts what the process callback allocates, on the thread on which it runs: takes its place in the table of callbacks.
enum AllocationWatch {
    private static let calls = Atomic<Int>(0)
    private static let sum = Atomic<UInt64>(0)

    private static let original = StreamEvents.table.pointee.process

    static func start() {
        _ = original
        calls.store(0, ordering: .relaxed)
        sum.store(0, ordering: .relaxed)
        StreamEvents.table.pointee.process = { context in
            let before = allocations_of_this_thread()
            AllocationWatch.original?(context)
            AllocationWatch.sum.add(allocations_of_this_thread() - before, ordering: .relaxed)
            AllocationWatch.calls.add(1, ordering: .relaxed)
        }
    }

    static func stop() -> (calls: Int, allocations: UInt64) {
        StreamEvents.table.pointee.process = original
        return (calls.load(ordering: .relaxed), sum.load(ordering: .relaxed))
    }
}
