// SPDX-License-Identifier: MIT
import Frames
import Testing

@Suite struct ConversionTests {
    @Test func letterboxKeepsTheShape() {
        func box(_ a: (Int, Int), _ b: (Int, Int)) -> PixelRect {
            Conversion.letterbox(PixelSize(width: a.0, height: a.1), in: PixelSize(width: b.0, height: b.1))
        }
        #expect(box((1920, 1080), (1920, 1080)) == PixelRect(x: 0, y: 0, width: 1920, height: 1080))
        #expect(box((1920, 1080), (1280, 720)) == PixelRect(x: 0, y: 0, width: 1280, height: 720))
        #expect(box((1000, 1000), (1280, 720)) == PixelRect(x: 280, y: 0, width: 720, height: 720))
        #expect(box((1280, 100), (640, 480)) == PixelRect(x: 0, y: 214, width: 640, height: 50))
        #expect(box((1, 16_383), (640, 480)) == PixelRect(x: 318, y: 0, width: 1, height: 480))
        #expect(box((3, 5), (641, 479)).height == 479)
    }

    @Test func fittingAPictureOfOneColour() throws {
        for (from, to) in [((64, 64), (160, 90)), ((301, 99), (100, 100)), ((2, 2), (5, 7)), ((1, 1), (1, 1)), ((640, 360), (641, 479))] {
            let source = try Picture(size: PixelSize(width: from.0, height: from.1))
            let canvas = try Picture(size: PixelSize(width: to.0, height: to.1))
            Conversion.fill(source.planes, luma: 200, blue: 60, red: 70)
            Conversion.fill(canvas.planes, luma: 1, blue: 2, red: 3)
            let rect = Conversion.fit(source.planes, into: canvas.planes)
            let samples = TestPicture.Samples(canvas.planes)
            let inside = TestPicture(canvas.size) { x, y in
                // The averages of libyuv are rounded down.
                let isInside = !PixelRect(x: x, y: y, width: 1, height: 1).intersection(rect).isEmpty
                return .init(red: isInside ? 200 : 16, green: 0, blue: 0)
            }
            #expect(zip(inside.pixels, samples.luma).allSatisfy { abs(Double($0.red) - $1) <= 1 }, "\(from) \(to)")
        }
    }

    @Test func scalingDownAverages() throws {
        let source = try Picture(size: PixelSize(width: 64, height: 64))
        for y in 0..<64 { for x in 0..<64 { source.planes.luma[y * source.planes.lumaStride + x] = (x + y) & 1 == 0 ? 20 : 220 } }
        let canvas = try Picture(size: PixelSize(width: 16, height: 16))
        Conversion.fit(source.planes, into: canvas.planes)
        #expect(TestPicture.Samples(canvas.planes).luma.allSatisfy { abs($0 - 120) <= 1 })
    }

    @Test(arguments: [PixelSize(width: 16, height: 9), PixelSize(width: 4, height: 2), PixelSize(width: 1, height: 1)])
    func coloursStayWhereLittleIsLeftOfAPicture(size: PixelSize) throws {
        for source in [PixelSize(width: 3840, height: 2160), PixelSize(width: 16_383, height: 9)] {
            let picture = try Picture(size: source)
            Conversion.fill(picture.planes, luma: 200, blue: 60, red: 170)
            let canvas = try Picture(size: size)
            let rect = Conversion.fit(picture.planes, into: canvas.planes)
            let planes = try #require(canvas.planes.part(rect))
            // A step of averages is rounded down.
            #expect((197...200).contains(planes.luma[0]), "\(source)")
            #expect((57...60).contains(planes.blue[0]), "\(source)")
            #expect((167...170).contains(planes.red[0]), "\(source)")
        }
    }

    @Test func copyOfDamagedParts() throws {
        let size = PixelSize(width: 33, height: 21)
        let (source, target) = (try Picture(size: size), try Picture(size: size))
        Conversion.fill(source.planes, luma: 50, blue: 51, red: 52)
        Conversion.copy(source.planes, into: target.planes, Damage(PixelRect(x: 31, y: 19, width: 5, height: 5)))
        #expect(TestPicture.Samples(target.planes).luma.count { $0 == 50 } == 9)
        Conversion.copy(source.planes, into: target.planes)
        #expect(TestPicture.Samples(target.planes).distance(TestPicture.Samples(source.planes)) == 0)
    }

    @Test func copyOfAPartToAnotherPlace() throws {
        let sizes = (PixelSize(width: 33, height: 21), PixelSize(width: 25, height: 19))
        let (source, target) = (try Picture(size: sizes.0), try Picture(size: sizes.1))
        for row in 0..<21 { for column in 0..<33 { source.planes.luma[row * source.planes.lumaStride + column] = UInt8(row * 8 + column) } }
        Conversion.fillBlack(target.planes)
        let rect = PixelRect(x: 15, y: 8, width: 18, height: 13)
        Conversion.copy(source.planes, rect, into: target.planes, x: 7, y: 5)
        for row in 0..<19 {
            for column in 0..<25 {
                let isInside = (5..<18).contains(row) && column >= 7
                let expected = isInside ? (row + 3) * 8 + column + 8 : 16
                #expect(Int(target.planes.luma[row * target.planes.lumaStride + column]) == expected)
            }
        }
    }

    @Test func placeholderOfAnySize() throws {
        for size in [PixelSize(width: 1, height: 1), PixelSize(width: 3, height: 5), PixelSize(width: 1_280, height: 720)] {
            let samples = TestPicture.Samples(try Picture.placeholder(size: size).planes)
            #expect(samples.blue.allSatisfy { $0 == 128 } && samples.red.allSatisfy { $0 == 128 })
            #expect(samples.luma.allSatisfy { $0 == 40 || $0 == 120 })
            if size.width > 100 { #expect(samples.luma.contains(40) && samples.luma.contains(120)) }
        }
    }
}
