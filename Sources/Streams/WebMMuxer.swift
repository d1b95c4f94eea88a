// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Matroska
import Sound

/// WebM for a pipe: nothing in it has to be filled in later, and it may be cut off anywhere.
///
/// A cluster begins with each key frame, and before the time in it outgrows sixteen bits. Pictures and sound do not wait for each other: what comes
/// behind something later begins a cluster too, so that times grow within each.
///
/// Spec: [RFC 9559](https://www.rfc-editor.org/rfc/rfc9559), [WebM](https://www.webmproject.org/docs/container/),
/// [Opus in Matroska](https://wiki.xiph.org/MatroskaOpus).
struct WebMMuxer: Muxer {
    private static let greatestClusterTime: Int64 = 30_000
    private static let trackNumber: UInt64 = 1
    private static let soundTrackNumber: UInt64 = 2
    /// Nanoseconds that a decoder needs before what it makes is right, as RFC 7845 has it.
    private static let seekPreRoll: UInt64 = 80_000_000

    private let codec: VideoCodec
    private var epoch: Instant?
    /// Milliseconds since the epoch.
    private var clusterTime: Int64 = 0
    /// Of the newest block, in the same way.
    private var lastTime: Int64 = 0
    private var hasSound = false

    init(_ codec: VideoCodec) { self.codec = codec }

    mutating func prefix(of packet: Packet) -> [UInt8] {
        var output = EBML()
        let begins = epoch == nil
        let epoch = self.epoch ?? packet.time
        self.epoch = epoch
        if begins { appendBeginning(packet.size, to: &output) }
        let time = max(0, (packet.time - epoch).nanoseconds / 1_000_000)
        let head = (track: WebMMuxer.trackNumber, isKeyFrame: packet.isKeyFrame, byteCount: packet.bytes.count)
        appendBlock(head, at: time, beginsCluster: begins || packet.isKeyFrame, to: &output)
        return output.bytes
    }

    mutating func carrySound(_ carriesSound: Bool) { if epoch == nil { hasSound = carriesSound } }

    mutating func prefix(of sound: SoundPacket) -> [UInt8]? {
        // What was taken before the first picture is not in the stream.
        guard hasSound, let epoch, sound.time >= epoch else { return nil }
        var output = EBML()
        let head = (track: WebMMuxer.soundTrackNumber, isKeyFrame: true, byteCount: sound.bytes.count)
        appendBlock(head, at: (sound.time - epoch).nanoseconds / 1_000_000, beginsCluster: false, to: &output)
        return output.bytes
    }

    private mutating func appendBlock(
        _ head: (track: UInt64, isKeyFrame: Bool, byteCount: Int), at time: Int64, beginsCluster: Bool, to output: inout EBML
    ) {
        if beginsCluster || time < lastTime || time - clusterTime > WebMMuxer.greatestClusterTime {
            clusterTime = time
            output.appendUnsizedHeader(.cluster)
            output.append(.timestamp, UInt64(time))
        }
        lastTime = time
        // Track number, relative time, flags, then the packet.
        output.appendHeader(.simpleBlock, byteCount: UInt64(4 + head.byteCount))
        output.appendBigEndian(head.track | 0x80, 1)
        output.appendBigEndian(UInt64(time - clusterTime), 2)
        output.appendBigEndian(head.isKeyFrame ? 0x80 : 0, 1)
    }

    private func appendBeginning(_ size: PixelSize, to output: inout EBML) {
        output.append(.ebml) { header in
            header.append(.ebmlVersion, 1)
            header.append(.ebmlReadVersion, 1)
            header.append(.ebmlMaxIDLength, 4)
            header.append(.ebmlMaxSizeLength, 8)
            header.append(.docType, "webm")
            header.append(.docTypeVersion, 4)
            header.append(.docTypeReadVersion, 2)
        }
        output.appendUnsizedHeader(.segment)
        output.append(.info) { info in
            info.append(.timestampScale, 1_000_000)
            info.append(.muxingApp, "Vitrine")
            info.append(.writingApp, "Vitrine")
        }
        output.append(.tracks) { tracks in
            tracks.append(.trackEntry) { track in
                track.append(.trackNumber, WebMMuxer.trackNumber)
                track.append(.trackUID, WebMMuxer.trackNumber)
                track.append(.trackType, 1)
                track.append(.flagLacing, 0)
                track.append(.language, "und")
                track.append(.codecID, codec == .vp8 ? "V_VP8" : "V_VP9")
                track.append(.video) { video in
                    video.append(.flagInterlaced, 2)
                    video.append(.pixelWidth, UInt64(size.width))
                    video.append(.pixelHeight, UInt64(size.height))
                    video.append(.colour) { colour in
                        // BT.601, limited range; a chroma sample lies amid its four luma samples.
                        colour.append(.matrixCoefficients, 6)
                        colour.append(.chromaSitingHorizontal, 2)
                        colour.append(.chromaSitingVertical, 2)
                        colour.append(.range, 1)
                    }
                }
            }
            if hasSound { tracks.append(.trackEntry, WebMMuxer.describeSound) }
        }
    }

    private static func describeSound(_ track: inout EBML) {
        track.append(.trackNumber, soundTrackNumber)
        track.append(.trackUID, soundTrackNumber)
        track.append(.trackType, 2)
        track.append(.flagLacing, 0)
        track.append(.language, "und")
        track.append(.codecID, "A_OPUS")
        // Nanoseconds by which what is decoded is later than what was encoded.
        track.append(.codecDelay, UInt64(OpusStream.preSkip) * 1_000_000_000 / UInt64(SampleClock.rate))
        track.append(.seekPreRoll, seekPreRoll)
        track.append(.codecPrivate, OpusStream.header)
        track.append(.audio) { audio in
            audio.appendFloat(.samplingFrequency, Double(SampleClock.rate))
            audio.append(.channels, UInt64(SampleClock.channelCount))
        }
    }
}
