// SPDX-License-Identifier: MIT
import Composition
import Frames
import Testing

/// What crop and masks hide of a source stays hidden when the sources move.
@Suite struct HiddenTests {
    private let small = PixelSize(width: 64, height: 36)
    private let large = PixelSize(width: 100, height: 80)
    private let black: UInt8 = 16

    /// Sources of 50, 100, 150 and so on, in a row.
    private func row(_ sizes: [PixelSize], view: CaptureView = CaptureView()) throws -> Rig {
        let rig = try Rig(sizes.count, layout: .row, view: view)
        for (index, size) in sizes.enumerated() { rig.send(index, size, UInt8(50 + 50 * index)) }
        rig.composer.compose()
        return rig
    }

    @Test func aMaskMovesWithTheSourceBelowIt() throws {
        let rig = try row([small, small, small])
        // Over the end of the first and the beginning of the second.
        rig.composer.setView(CaptureView(masks: [PixelRect(x: 60, y: 4, width: 8, height: 4)]))
        #expect((rig.luma(60, 4), rig.luma(63, 7), rig.luma(64, 4), rig.luma(67, 7), rig.luma(68, 4)) == (black, black, black, black, 100))
        rig.composer.remove(rig.inputs[0])
        #expect((rig.luma(0, 4), rig.luma(3, 7), rig.luma(4, 4), rig.luma(0, 8)) == (black, black, 100, 100))
        // Where it was nothing is hidden of another source.
        #expect((rig.luma(64, 4), rig.luma(67, 7)) == (150, 150))
        rig.send(2, large, 160)
        rig.composer.compose()
        // The first is in the middle of its cell now.
        #expect((rig.luma(0, 26), rig.luma(3, 29), rig.luma(4, 26), rig.luma(0, 30)) == (black, black, 100, 100))
    }

    @Test func aMaskHoldsThroughLayouts() throws {
        let rig = try row([small, small, small])
        rig.composer.setView(CaptureView(masks: [PixelRect(x: 128, y: 0, width: 10, height: 36)]))
        rig.composer.setLayout(.grid)
        #expect((rig.luma(0, 36), rig.luma(9, 71), rig.luma(10, 36), rig.luma(0, 0)) == (black, black, 150, 50))
        rig.composer.setLayout(.row)
        #expect((rig.luma(128, 0), rig.luma(137, 35), rig.luma(138, 0)) == (black, black, 150))
        // Set anew it is of the picture as it is now; another crop leaves it where it is.
        rig.composer.setLayout(.grid)
        rig.composer.setView(
            CaptureView(crop: PixelRect(x: 0, y: 0, width: 100, height: 72), masks: [PixelRect(x: 128, y: 0, width: 10, height: 36)]))
        #expect((rig.luma(0, 36), rig.luma(9, 71), rig.luma(10, 36), rig.luma(99, 0)) == (black, black, 150, 100))
        rig.composer.setView(CaptureView(masks: [PixelRect(x: 0, y: 0, width: 2, height: 2)]))
        #expect((rig.luma(0, 36), rig.luma(0, 0), rig.luma(2, 0)) == (150, black, 50))
        rig.composer.setView(CaptureView())
        #expect((rig.luma(0, 0), rig.luma(0, 36)) == (50, 150))
    }

    @Test func aSourceThatIsHiddenStaysSoWhenItGrows() throws {
        let rig = try row([small, small])
        rig.composer.setView(CaptureView(masks: [PixelRect(x: 0, y: 0, width: 64, height: 36)]))
        rig.send(0, large, 60)
        rig.composer.compose()
        #expect((rig.luma(0, 0), rig.luma(99, 79), rig.luma(100, 22)) == (black, black, 100))
    }

    @Test func whatTheCropLeavesOutStaysOut() throws {
        let rig = try row([small, small])
        // The first alone, without its right quarter.
        rig.composer.setView(CaptureView(crop: PixelRect(x: 0, y: 0, width: 48, height: 36)))
        #expect(rig.composer.size == PixelSize(width: 48, height: 36) && rig.luma(47, 0) == 50)
        rig.send(0, PixelSize(width: 32, height: 36), 60)
        rig.composer.compose()
        // The second moves into it.
        #expect((rig.luma(31, 0), rig.luma(32, 0), rig.luma(47, 35)) == (60, black, black))
        rig.composer.remove(rig.inputs[0])
        #expect(rig.picture().allSatisfy { row in row.allSatisfy { $0 == black } })
        rig.composer.setView(CaptureView())
        #expect(rig.luma(0, 0) == 100)
    }

    @Test func whatIsHiddenFromTheBeginningIsWhereAllSourcesLieThen() throws {
        let rig = try Rig(2, layout: .row, view: CaptureView(masks: [PixelRect(x: 100, y: 0, width: 4, height: 4)]))
        rig.send(1, large, 100)
        rig.composer.compose()
        #expect((rig.luma(99, 0), rig.luma(100, 0), rig.luma(104, 0)) == (black, black, 100))
        rig.send(0, small, 50)
        rig.composer.compose()
        // The second begins at 64 and not at 100, as it was taken to.
        #expect((rig.luma(99, 0), rig.luma(100, 0), rig.luma(103, 3), rig.luma(104, 0)) == (100, black, black, 100))
        rig.composer.remove(rig.inputs[0])
        #expect((rig.luma(35, 0), rig.luma(36, 0), rig.luma(39, 3), rig.luma(40, 0)) == (100, black, black, 100))
    }

    /// Whatever moves, nothing that was hidden of a source when the view was set is ever seen.
    @Test func nothingHiddenIsEverSeen() throws {
        var numbers = SystemRandomNumberGenerator()
        func anySize() -> PixelSize {
            PixelSize(width: .random(in: 10...60, using: &numbers), height: .random(in: 10...60, using: &numbers))
        }
        for _ in 0..<60 {
            var sizes = (0..<4).map { _ in anySize() }
            let rig = try row(sizes)
            var present = Array(0..<4), layout = Layout.row
            let mask = PixelRect(
                x: .random(in: 0...150, using: &numbers), y: .random(in: 0...40, using: &numbers),
                width: .random(in: 1...80, using: &numbers), height: .random(in: 1...40, using: &numbers))
            rig.composer.setView(CaptureView(masks: [mask]))
            let before = Arrangement(sizes, .row).places
            for _ in 0..<12 {
                switch Int.random(in: 0..<4, using: &numbers) {
                case 0 where present.count > 1:
                    rig.composer.remove(rig.inputs[present.remove(at: .random(in: 0..<present.count, using: &numbers))])
                case 1:
                    layout = layout == .row ? .grid : .row
                    rig.composer.setLayout(layout)
                default:
                    let index = present.randomElement(using: &numbers) ?? 0
                    sizes[index] = anySize()
                    rig.send(index, sizes[index], UInt8(50 + 50 * index))
                    rig.composer.compose()
                }
                let picture = rig.picture()
                let places = Arrangement(present.map { sizes[$0] }, layout).places
                for (index, place) in zip(present, places) {
                    let old = before[index]
                    let hidden = mask.intersection(old)
                    let now = PixelRect(
                        x: place.x + hidden.x - old.x, y: place.y + hidden.y - old.y, width: hidden.width, height: hidden.height
                    ).intersection(place)
                    let isBlack = (now.y..<(now.y + now.height)).allSatisfy { y in
                        picture[y][now.x..<(now.x + now.width)].allSatisfy { $0 == black }
                    }
                    #expect(isBlack, "\(mask) of \(index) in \(sizes)")
                }
            }
        }
    }
}
