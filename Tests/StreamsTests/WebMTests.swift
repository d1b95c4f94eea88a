// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Testing

@testable import Streams

@Suite struct MuxerTests {
    private let size = PixelSize(width: 640, height: 360)

    private func packet(_ milliseconds: Int64, key: Bool, count: Int = 10, frameRate: UInt32 = 0) -> Packet {
        Packet(
            bytes: [UInt8](repeating: 7, count: count), time: Instant(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000),
            isKeyFrame: key, size: size, frameRate: frameRate)
    }

    private let cluster: [UInt8] = [0x1F, 0x43, 0xB6, 0x75, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xE7]

    @Test func aStreamBeginsWithItsDescription() {
        var muxer = WebMMuxer(.vp8)
        let bytes = muxer.prefix(of: packet(0, key: true))
        #expect(bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]))
        #expect(bytes.suffix(6 + cluster.count + 2) == cluster + [0x81, 0, 0xA3, 0x8E, 0x81, 0, 0, 0x80])
    }

    @Test func timesCountFromTheFirstPicture() {
        var muxer = WebMMuxer(.vp8)
        _ = muxer.prefix(of: packet(70, key: true))
        #expect(muxer.prefix(of: packet(1_070, key: false)) == [0xA3, 0x8E, 0x81, 0x03, 0xE8, 0])
    }

    @Test func aKeyFrameBeginsACluster() {
        var muxer = WebMMuxer(.vp8)
        _ = muxer.prefix(of: packet(0, key: true))
        _ = muxer.prefix(of: packet(40, key: false))
        #expect(muxer.prefix(of: packet(300, key: true)) == cluster + [0x82, 0x01, 0x2C, 0xA3, 0x8E, 0x81, 0, 0, 0x80])
    }

    @Test func noTimeOutgrowsItsCluster() {
        var muxer = WebMMuxer(.vp8)
        _ = muxer.prefix(of: packet(0, key: true))
        #expect(muxer.prefix(of: packet(30_000, key: false)) == [0xA3, 0x8E, 0x81, 0x75, 0x30, 0])
        #expect(muxer.prefix(of: packet(30_001, key: false)) == cluster + [0x82, 0x75, 0x31, 0xA3, 0x8E, 0x81, 0, 0, 0])
        // An hour in which nothing happened.
        #expect(muxer.prefix(of: packet(3_630_001, key: false)) == cluster + [0x83, 0x37, 0x63, 0xB1, 0xA3, 0x8E, 0x81, 0, 0, 0])
    }

    @Test func ivfPicturesHaveSizesAndTimes() {
        var muxer = IVFMuxer(.vp9)
        let header: [UInt8] = [
            0x44, 0x4B, 0x49, 0x46, 0, 0, 32, 0, 0x56, 0x50, 0x39, 0x30, 0x80, 0x02, 0x68, 0x01, 0xE8, 0x03, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            0,
            0, 0, 0,
        ]
        #expect(muxer.prefix(of: packet(70, key: true)) == header + [10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        // A second later, and after an hour in which nothing happened.
        #expect(muxer.prefix(of: packet(1_070, key: false, count: 300)) == [0x2C, 1, 0, 0, 0xE8, 3, 0, 0, 0, 0, 0, 0])
        #expect(muxer.prefix(of: packet(3_600_070, key: false)) == [10, 0, 0, 0, 0x80, 0xEE, 0x36, 0, 0, 0, 0, 0])
    }

    @Test func rawPicturesHaveALineEach() {
        var muxer = Y4MMuxer()
        let first = String(decoding: muxer.prefix(of: packet(0, key: true)), as: UTF8.self)
        #expect(first == "YUV4MPEG2 W640 H360 F30:1 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\nFRAME\n")
        #expect(muxer.prefix(of: packet(1, key: true)) == Array("FRAME\n".utf8))
    }

    @Test func rawPicturesSayTheRateThatIsTheMost() {
        var muxer = Y4MMuxer()
        let first = String(decoding: muxer.prefix(of: packet(0, key: true, frameRate: 5)), as: UTF8.self)
        #expect(first.hasPrefix("YUV4MPEG2 W640 H360 F5:1 "))
    }
}
