// SPDX-License-Identifier: MIT
import Composition
import Frames
import Glibc
import Loop

/// Sources of one colour each, their pools, the composer, and the track's pool with one reader.
final class Rig {
    let pool = FramePool()
    let inputs: [FramePool]
    let composer: Composer
    let reader: FramePool.ReaderID
    let bell: FileDescriptor
    /// Rung when there is something to compose although nothing came.
    let composing: FileDescriptor
    private var time = Instant.now

    init(
        _ count: Int, expected: PixelSize? = nil, layout: Layout = .grid, view: CaptureView = CaptureView(), hasCursor: Bool = false
    ) throws {
        inputs = (0..<count).map { _ in FramePool(capacity: Composer.slotsOfInput) }
        bell = try FileDescriptor.makeBell()
        composing = try FileDescriptor.makeBell()
        composer = Composer(
            into: pool, inputs.map { (pool: $0, expected: expected) }, view: view, layout: layout, hasCursor: hasCursor,
            bell: composing)
        reader = pool.addReader(bell: bell, followsCursor: hasCursor)
    }

    /// A source sends a picture of one luma; with a rectangle, only that has changed.
    func send(_ index: Int, _ size: PixelSize, _ luma: UInt8, only rect: PixelRect? = nil) {
        time = time + .milliseconds(1)
        inputs[index].write(size: size, time: time, arrival: .now, damage: rect.map { Damage($0) } ?? .everything) { planes, stale in
            if let rect {
                // What is out of date besides comes from the picture before.
                if let last = inputs[index].latest() { last.withPlanes { Conversion.copy($0, into: planes, stale) } }
                if let part = planes.part(rect) { Conversion.fill(part, luma: luma, blue: 128, red: 128) }
            } else {
                Conversion.fill(planes, luma: luma, blue: 128, red: 128)
            }
            return true
        }
    }

    /// Whether it is to be composed again.
    func isRung() -> Bool {
        var count: UInt64 = 0
        return read(composing.raw, &count, 8) == 8
    }

    /// What is in the track's pool.
    func luma(_ x: Int, _ y: Int) -> UInt8? {
        guard let latest = pool.latest() else { return nil }
        return latest.withPlanes { planes in
            x < planes.size.width && y < planes.size.height ? planes.luma[y * planes.lumaStride + x] : nil
        }
    }

    /// Every sample of the picture's luma, row by row.
    func picture() -> [[UInt8]] {
        guard let latest = pool.latest() else { return [] }
        return latest.withPlanes { planes in
            (0..<planes.size.height).map { y in (0..<planes.size.width).map { planes.luma[y * planes.lumaStride + $0] } }
        }
    }

    /// What changed since the last call, as the reader hears it; nil when there is no newer picture.
    func damage() -> Damage? {
        guard let lease = pool.take(reader) else { return nil }
        return lease.info.damage
    }

    /// Whether the counters are right.
    var isBalanced: Bool {
        let counts = pool.statistics
        let sum = counts.delivered + counts.coalesced + counts.unread + counts.corrupted + counts.cursorOnly + counts.dropped
        return counts.received == sum + counts.inFlight
    }
}
