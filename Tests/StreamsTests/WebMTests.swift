// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Sound
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

    private func sound(_ milliseconds: Int64, count: Int = 10) -> SoundPacket {
        SoundPacket(
            bytes: [UInt8](repeating: 9, count: count), time: Instant(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000), period: 1)
    }

    @Test func soundHasATrackOfItsOwnInAStreamThatCarriesIt() {
        var (with, without) = (WebMMuxer(.vp8), WebMMuxer(.vp8))
        with.carrySound(true)
        let (beginning, plain) = (with.prefix(of: packet(0, key: true)), without.prefix(of: packet(0, key: true)))
        let name = Array("A_OPUS".utf8)
        #expect(beginning.indices.contains { beginning[$0...].starts(with: name + [0x56, 0xAA, 0x83, 0x63, 0x2E, 0xA0]) })
        #expect(
            beginning.indices.contains { beginning[$0...].starts(with: Array("OpusHead".utf8) + [1, 2, 56, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]) })
        #expect(!plain.indices.contains { plain[$0...].starts(with: name) })
        #expect(with.prefix(of: sound(20)) == [0xA3, 0x8E, 0x82, 0, 20, 0x80])
        #expect(without.prefix(of: sound(20)) == nil)
        // What a stream holds is fixed from its first picture on.
        without.carrySound(true)
        #expect(without.prefix(of: sound(40)) == nil)
    }

    @Test func soundFromBeforeTheFirstPictureIsLeftOut() {
        var muxer = WebMMuxer(.vp8)
        muxer.carrySound(true)
        #expect(muxer.prefix(of: sound(500)) == nil)
        _ = muxer.prefix(of: packet(1_000, key: true))
        #expect(muxer.prefix(of: sound(999)) == nil)
        #expect(muxer.prefix(of: sound(1_000)) == [0xA3, 0x8E, 0x82, 0, 0, 0x80])
    }

    @Test func whatComesBehindSomethingLaterBeginsACluster() {
        var muxer = WebMMuxer(.vp8)
        muxer.carrySound(true)
        _ = muxer.prefix(of: packet(0, key: true))
        #expect(muxer.prefix(of: packet(100, key: false)) == [0xA3, 0x8E, 0x81, 0, 100, 0])
        #expect(muxer.prefix(of: sound(80)) == cluster + [0x81, 80, 0xA3, 0x8E, 0x82, 0, 0, 0x80])
        #expect(muxer.prefix(of: sound(100)) == [0xA3, 0x8E, 0x82, 0, 20, 0x80])
        #expect(muxer.prefix(of: packet(133, key: false)) == [0xA3, 0x8E, 0x81, 0, 53, 0])
        #expect(muxer.prefix(of: packet(166, key: true)) == cluster + [0x81, 166, 0xA3, 0x8E, 0x81, 0, 0, 0x80])
    }

    @Test func otherFormatsHaveNoPlaceForSound() {
        for muxer in [IVFMuxer(.vp8), Y4MMuxer()] as [any Muxer] {
            var muxer = muxer
            muxer.carrySound(true)
            _ = muxer.prefix(of: packet(0, key: true))
            #expect(muxer.prefix(of: sound(20)) == nil)
        }
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
