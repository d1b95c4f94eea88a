// SPDX-License-Identifier: MIT
import Frames
import Loop

/// What is known of each block of 16 by 16 pixels of a canvas: whether it has changed, and how sharply it was encoded last.
///
/// Only blocks that changed are encoded. That leaves those blurred that were encoded coarsely, in the haste of a key frame or of motion;
/// they are encoded again, finer step by step, once they have stood still, and then never again.
struct BlockMap {
    /// A block is sharp when it was encoded with this quantizer or a finer one: 42 dB on small text.
    static let sharpQuantizer: UInt8 = 12
    /// The steps from blurred to sharp. Each gives about as many bytes as the one before.
    private static let steps: [UInt8] = [40, 30, 20, sharpQuantizer]
    /// A step that is nearer than this to what a block has already shows nothing.
    private static let leastGain: UInt8 = 6
    /// How long a block must have stood still before it is worth the bytes.
    static let settlingTime = Duration.milliseconds(150)

    let columns: Int
    let rows: Int
    /// One byte for each block, row after row: 1 when the next picture is to encode it.
    var selected: [UInt8]
    private var quantizers: [UInt8]
    private var changes: [Instant]
    /// Whether any block is not sharp yet.
    private(set) var hasBlurred = false

    init(size: PixelSize) {
        columns = (size.width + 15) / 16
        rows = (size.height + 15) / 16
        selected = [UInt8](repeating: 0, count: columns * rows)
        quantizers = [UInt8](repeating: 0, count: columns * rows)
        changes = [Instant](repeating: Instant(nanoseconds: 0), count: columns * rows)
    }

    var selectsNothing: Bool { !selected.contains(1) }

    mutating func selectNothing() { selected.withUnsafeMutableBufferPointer { $0.update(repeating: 0) } }

    mutating func selectAll() { selected.withUnsafeMutableBufferPointer { $0.update(repeating: 1) } }

    /// Notes that the selected blocks show something new since `time`.
    mutating func noteChanges(at time: Instant) {
        for index in selected.indices where selected[index] != 0 { changes[index] = time }
    }

    /// Notes what the selected blocks were encoded with.
    mutating func noteEncoded(quantizer: Int) {
        let quantizer = UInt8(clamping: quantizer)
        var blurred = false
        for index in selected.indices {
            if selected[index] != 0 { quantizers[index] = quantizer }
            blurred = blurred || quantizers[index] > BlockMap.sharpQuantizer
        }
        hasBlurred = blurred
    }

    /// Selects, beside what is selected already, the blurred blocks that have stood still long enough, and are the most blurred of these.
    ///
    /// - Returns: the coarsest quantizer to encode them with; nil when there are none.
    mutating func selectForRefinement(at now: Instant) -> Int? {
        var worst: UInt8 = 0
        for index in selected.indices where changes[index] + BlockMap.settlingTime <= now { worst = max(worst, quantizers[index]) }
        guard worst > BlockMap.sharpQuantizer else { return nil }
        let step = BlockMap.steps.first { $0 + BlockMap.leastGain <= worst } ?? BlockMap.sharpQuantizer
        for index in selected.indices where quantizers[index] > step && changes[index] + BlockMap.settlingTime <= now {
            selected[index] = 1
        }
        return Int(step)
    }
}
