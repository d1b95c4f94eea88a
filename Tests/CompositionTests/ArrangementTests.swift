// SPDX-License-Identifier: MIT
import Frames
import Testing

@testable import Composition

@Suite struct ArrangementTests {
    private func size(_ width: Int, _ height: Int) -> PixelSize { PixelSize(width: width, height: height) }
    private func rect(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> PixelRect { PixelRect(x: x, y: y, width: width, height: height) }

    @Test func oneSourceIsThePicture() {
        for layout in Layout.allCases {
            let arrangement = Arrangement([size(640, 360)], layout)
            #expect(arrangement.size == size(640, 360))
            #expect(arrangement.places == [rect(0, 0, 640, 360)])
        }
    }

    @Test func twoLieBesideEachOther() {
        for layout in Layout.allCases {
            let arrangement = Arrangement([size(640, 360), size(300, 400)], layout)
            #expect(arrangement.size == size(940, 400))
            #expect(arrangement.places == [rect(0, 20, 640, 360), rect(640, 0, 300, 400)])
        }
    }

    @Test func aGridHasAsManyColumnsAsRowsOrOneMore() {
        let columns = (1...9).map { Layout.grid.columns($0) }
        #expect(columns == [1, 2, 2, 2, 3, 3, 3, 3, 3])
        #expect((1...9).map { Layout.row.columns($0) } == Array(1...9))
    }

    @Test func eachColumnIsAsWideAsItsWidestSource() {
        let arrangement = Arrangement([size(100, 50), size(20, 80), size(60, 30)], .grid)
        #expect(arrangement.size == size(120, 110))
        #expect(arrangement.places == [rect(0, 14, 100, 50), rect(100, 0, 20, 80), rect(20, 80, 60, 30)])
    }

    @Test func oddSidesAreRoundedUp() {
        let arrangement = Arrangement([size(101, 51), size(3, 51)], .row)
        #expect(arrangement.size == size(106, 52))
        #expect(arrangement.places == [rect(0, 0, 101, 51), rect(102, 0, 3, 51)])
    }

    @Test func tooLargeAPictureIsMadeSmallerAsAWhole() {
        let arrangement = Arrangement(Array(repeating: size(7_680, 4_320), count: 4), .grid)
        #expect(arrangement.size == size(7_680, 4_320))
        #expect(arrangement.places.map(\.size) == Array(repeating: size(3_840, 2_160), count: 4))
        let row = Arrangement(Array(repeating: size(3_840, 100), count: 9), .row)
        #expect(row.size.width <= PixelSize.greatestSide && row.size.width > 16_000)
        #expect(row.places.allSatisfy { $0.size == row.places[0].size })
    }

    @Test func sourcesThatCannotBeMadeSmallerLeaveTheOthersLess() {
        let arrangement = Arrangement([size(16_382, 100), size(16_382, 100), size(2, 2), size(1, 1)], .row)
        #expect(arrangement.size.isUsable, "\(arrangement.size)")
        #expect(arrangement.places.map(\.width).min() == 2)
    }

    /// Whatever the sources measure: all even, all inside, none over another, each in its shape.
    @Test func anySourcesFit() {
        var numbers = SystemRandomNumberGenerator()
        for round in 0..<400 {
            let count = 1 + round % 9
            let greatest = round % 4 == 0 ? 16_383 : 2_000
            let sources = (0..<count).map { _ in
                size(.random(in: 1...greatest, using: &numbers), .random(in: 1...greatest, using: &numbers))
            }
            for layout in Layout.allCases {
                let arrangement = Arrangement(sources, layout)
                let whole = arrangement.size
                #expect(whole.isUsable && whole.width % 2 == 0 && whole.height % 2 == 0, "\(sources)")
                for (index, place) in arrangement.places.enumerated() {
                    #expect(place.x % 2 == 0 && place.y % 2 == 0 && !place.isEmpty)
                    #expect(place.intersection(PixelRect(whole)) == place, "\(place) in \(whole) of \(sources)")
                    for other in arrangement.places[..<index] { #expect(other.intersection(place).isEmpty) }
                    let ratio = Double(place.width) * Double(sources[index].height) / Double(place.height) / Double(sources[index].width)
                    #expect(place.size == sources[index] || min(place.width, place.height) < 200 || abs(ratio - 1) < 0.02)
                }
            }
        }
    }
}
