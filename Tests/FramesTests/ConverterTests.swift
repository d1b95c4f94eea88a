// SPDX-License-Identifier: MIT
import Frames
import Testing

@Suite struct ConverterTests {
    /// What libyuv's integer arithmetic may differ from the formula by.
    static let tolerance = 2.0
    static let sizes = [(1, 1), (1, 2), (2, 1), (3, 5), (16, 16), (17, 9), (64, 48), (641, 479)].map {
        PixelSize(width: $0.0, height: $0.1)
    }

    // Faults: B13
    @Test(arguments: PixelFormat.allCases, [UInt8(0x00), 0xff])
    func everyFormatWhateverTheFourthByteHolds(_ format: PixelFormat, _ filler: UInt8) throws {
        for size in Self.sizes {
            let picture = TestPicture.gradient(size)
            let samples = try #require(try convert(picture, format, padding: 12, filler: filler))
            #expect(samples.distance(picture.i420) <= Self.tolerance, "\(size)")
        }
    }

    @Test(arguments: PixelFormat.allCases)
    func pureColours(_ format: PixelFormat) throws {
        let golden: [(TestPicture.Colour, y: Double, u: Double, v: Double)] = [
            (.init(red: 255, green: 0, blue: 0), 82, 90, 240), (.init(red: 0, green: 255, blue: 0), 145, 54, 34),
            (.init(red: 0, green: 0, blue: 255), 41, 240, 110), (.init(red: 255, green: 255, blue: 255), 235, 128, 128),
            (.init(red: 0, green: 0, blue: 0), 16, 128, 128),
        ]
        for (colour, y, u, v) in golden {
            let picture = TestPicture(PixelSize(width: 4, height: 4)) { _, _ in colour }
            let samples = try #require(try convert(picture, format))
            #expect(abs(samples.luma[5] - y) <= 1 && abs(samples.blue[0] - u) <= 1 && abs(samples.red[0] - v) <= 1, "\(colour)")
        }
    }

    // Faults: B19
    @Test func greyRampStaysInLimitedRange() throws {
        let picture = TestPicture(PixelSize(width: 256, height: 2)) { x, _ in .init(red: x, green: x, blue: x) }
        let samples = try #require(try convert(picture, .bgrx))
        #expect(samples.luma.min() == 16 && samples.luma.max() == 235)
        #expect(zip(samples.luma, samples.luma.dropFirst()).prefix(255).allSatisfy { $0 <= $1 })
        #expect(samples.blue.allSatisfy { $0 == 128 } && samples.red.allSatisfy { $0 == 128 })
    }

    @Test(arguments: Transform.allCases, sizes)
    func everyTransform(_ transform: Transform, _ size: PixelSize) throws {
        let upright = TestPicture.gradient(size)
        let samples = try #require(try convert(upright.turned(transform), .bgrx, padding: 4, transform: transform))
        #expect(samples.size == size)
        #expect(samples.distance(upright.i420) <= Self.tolerance)
    }

    @Test(arguments: Transform.allCases)
    func cropIsInPixelsOfMemory(_ transform: Transform) throws {
        let memory = TestPicture.gradient(PixelSize(width: 93, height: 71))
        for crop in [
            PixelRect(x: 1, y: 3, width: 51, height: 33), PixelRect(x: 92, y: 70, width: 1, height: 1),
            PixelRect(x: 90, y: -5, width: 900, height: 20),
        ] {
            let visible = crop.intersection(PixelRect(memory.size))
            let samples = try #require(try convert(memory, .rgbx, crop: crop, transform: transform))
            // Turning four times, or twice mirrored, is nothing: the inverse is found by trying.
            let upright = try #require(
                Transform.allCases.map { memory.cropped(visible).turned($0) }.first { $0.turned(transform) == memory.cropped(visible) })
            #expect(samples.distance(upright.i420) <= Self.tolerance)
        }
    }

    @Test(arguments: Transform.allCases)
    func damagedPartsAloneAreConverted(_ transform: Transform) throws {
        let size = PixelSize(width: 101, height: 77)
        let (before, after) = (TestPicture.gradient(size), TestPicture.gradient(size, seed: 40))
        let turned = after.turned(transform)
        let bytes = turned.bytes(.bgrx, stride: turned.size.width * 4)
        let target = try Picture(size: size)
        let converter = Converter()
        try converter.prepare(size: size)
        let old = before.bytes(.bgrx, stride: size.width * 4)
        old.withUnsafeBytes { bytes in
            let source = SourcePicture(bytes: bytes, size: size, strideBytes: size.width * 4, format: .bgrx)
            #expect(converter.convert(source, into: target.planes))
        }
        var damage = Damage(PixelRect(x: 10, y: 20, width: 7, height: 40))
        damage.insert(PixelRect(x: 99, y: 75, width: 50, height: 50))
        bytes.withUnsafeBytes { bytes in
            let source = SourcePicture(
                bytes: bytes, size: turned.size, strideBytes: turned.size.width * 4, format: .bgrx, transform: transform)
            #expect(converter.convert(source, into: target.planes, damage))
        }
        let mixed = TestPicture(size) { x, y in
            let isNew = (10..<18).contains(x) && (20..<60).contains(y) || x >= 98 && y >= 74
            return isNew ? after[x, y] : before[x, y]
        }
        #expect(TestPicture.Samples(target.planes).distance(mixed.i420) <= Self.tolerance)
    }

    @Test(arguments: Transform.allCases)
    func damageIsMappedToTheUprightPicture(_ transform: Transform) {
        let memory = TestPicture(PixelSize(width: 9, height: 7)) { x, y in .init(red: x, green: y, blue: 0) }
        let crop = PixelRect(x: 1, y: 2, width: 7, height: 4)
        let source = SourcePicture(
            bytes: UnsafeRawBufferPointer(start: nil, count: 0), size: memory.size, strideBytes: 36, format: .bgrx, crop: crop,
            transform: transform)
        let visible = memory.cropped(crop)
        let upright = Transform.allCases.map { visible.turned($0) }.first { $0.turned(transform) == visible }
        let mapped = source.upright(PixelRect(x: 2, y: 3, width: 2, height: 1))
        let colours = upright?.cropped(mapped).pixels.map { [$0.red, $0.green] }
        #expect(Set(colours ?? []) == [[2, 3], [3, 3]])
        #expect(source.upright(PixelRect(x: 8, y: 6, width: 1, height: 1)).isEmpty)
        #expect(source.inMemory(mapped) == PixelRect(x: 2, y: 3, width: 2, height: 1))
    }

    @Test func rowsOutsideTheBytesAreRefused() throws {
        let bytes = [UInt8](repeating: 0, count: 100)
        let target = try Picture(size: PixelSize(width: 5, height: 5))
        func isConverted(_ stride: Int, _ count: Int) -> Bool {
            bytes.withUnsafeBytes { bytes in
                let source = SourcePicture(
                    bytes: UnsafeRawBufferPointer(rebasing: bytes[..<count]), size: target.size, strideBytes: stride, format: .bgrx)
                return Converter().convert(source, into: target.planes)
            }
        }
        #expect(isConverted(20, 100))
        #expect(!isConverted(20, 99) && !isConverted(21, 100) && !isConverted(19, 100) && !isConverted(0, 100) && !isConverted(-20, 100))
        #expect(!isConverted(.max, 100) && !isConverted(.max / 2, 100) && !isConverted(20, 0))
    }

    @Test func turningWithoutScratchIsRefused() throws {
        let picture = TestPicture.gradient(PixelSize(width: 4, height: 4))
        let bytes = picture.bytes(.bgrx, stride: 16)
        let target = try Picture(size: picture.size)
        bytes.withUnsafeBytes { bytes in
            let source = SourcePicture(bytes: bytes, size: picture.size, strideBytes: 16, format: .bgrx, transform: .rotated90)
            #expect(!Converter().convert(source, into: target.planes))
        }
    }
}
