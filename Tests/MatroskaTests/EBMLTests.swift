// SPDX-License-Identifier: MIT
import Matroska
import Testing

@Suite struct EBMLTests {
    @Test func integersTakeAsFewBytesAsTheyCan() {
        var output = EBML()
        output.append(.trackNumber, 0)
        output.append(.trackNumber, 255)
        output.append(.timestampScale, 1_000_000)
        #expect(output.bytes == [0xD7, 0x81, 0, 0xD7, 0x81, 0xFF, 0x2A, 0xD7, 0xB1, 0x83, 0x0F, 0x42, 0x40])
    }

    @Test(
        arguments: [(0, [0x80]), (126, [0xFE]), (127, [0x40, 0x7F]), (16_382, [0x7F, 0xFE]), (16_383, [0x20, 0x3F, 0xFF])]
            as [(UInt64, [UInt8])])
    func lengthsNeverLookUnknown(_ length: UInt64, _ expected: [UInt8]) {
        var output = EBML()
        output.appendHeader(.simpleBlock, byteCount: length)
        #expect(output.bytes == [0xA3] + expected)
    }

    @Test func elementsNest() {
        var output = EBML()
        output.append(.info) { $0.append(.muxingApp, "ab") }
        #expect(output.bytes == [0x15, 0x49, 0xA9, 0x66, 0x85, 0x4D, 0x80, 0x82, 0x61, 0x62])
    }

    @Test func anElementMayLastUntilTheEnd() {
        var output = EBML()
        output.appendUnsizedHeader(.segment)
        #expect(output.bytes == [0x18, 0x53, 0x80, 0x67, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
    }

    @Test func aSizeThatWasLeftOpenCanBeFilledIn() {
        var output = EBML()
        output.appendUnsizedHeader(.cluster)
        #expect(output.bytes.count == ElementID.cluster.bytes.count + EBML.sizeByteCount)
        #expect(EBML.size(0x0123) == [0x01, 0, 0, 0, 0, 0, 0x01, 0x23])
        #expect(EBML.size(0).count == EBML.sizeByteCount)
    }

    @Test(arguments: [2, 9, 128])
    func aVoidHasTheLengthThatIsToBeKeptFree(byteCount: Int) {
        var output = EBML()
        output.appendVoid(byteCount: byteCount)
        #expect(output.bytes.count == byteCount && output.bytes.prefix(2) == [0xEC, UInt8(0x80 | (byteCount - 2))])
    }

    @Test func floatsHaveEightBytes() {
        var output = EBML()
        output.appendFloat(.duration, 1.5)
        #expect(output.bytes == [0x44, 0x89, 0x88, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0])
    }
}
