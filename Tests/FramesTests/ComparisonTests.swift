// SPDX-License-Identifier: MIT
import Glibc
import TestSupport
import Testing

@testable import Frames

@Suite struct ComparisonTests {
    /// Whatever differs is found, also beside what is so wide that its row is not looked at any further.
    @Test func noChangeIsMissed() throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<2_000 {
            let size = PixelSize(width: .random(in: 1...700, using: &random), height: .random(in: 1...70, using: &random))
            let (old, new) = (try Picture(size: size), try Picture(size: size))
            var changed: [(x: Int, y: Int)] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let y = Int.random(in: 0..<size.height, using: &random)
                let left = Int.random(in: 0..<size.width, using: &random)
                let right = Int.random(in: left..<size.width, using: &random)
                if Bool.random(using: &random) {
                    for x in left...right {
                        new.planes.luma[y * new.planes.lumaStride + x] = 7
                        changed.append((x: x, y: y))
                    }
                } else {
                    for x in (left / 2)...(right / 2) {
                        new.planes.red[y / 2 * new.planes.chromaStride + x] = 7
                        changed.append((x: x * 2, y: y / 2 * 2))
                    }
                }
            }
            var rects: [PixelRect] = []
            Comparison.damage(old.planes, new.planes).forEach(in: size) { rects.append($0) }
            let missed = changed.filter { pixel in
                !rects.contains {
                    pixel.x >= $0.x && pixel.x < $0.x + $0.width && pixel.y >= $0.y && pixel.y < $0.y + $0.height
                }
            }
            #expect(missed.isEmpty, "\(size): \(rects)")
        }
    }
}
