// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop
import Matroska

/// WebM for a pipe: nothing in it has to be filled in later, and it may be cut off anywhere.
///
/// A cluster begins with each key frame, and before the time in it outgrows sixteen bits.
///
/// Spec: [RFC 9559](https://www.rfc-editor.org/rfc/rfc9559), [WebM](https://www.webmproject.org/docs/container/).
struct WebMMuxer: Muxer {
    private static let greatestClusterTime: Int64 = 30_000
    private static let trackNumber: UInt64 = 1

    private let codec: VideoCodec
    private var epoch: Instant?
    /// Milliseconds since the epoch.
    private var clusterTime: Int64 = 0

    init(_ codec: VideoCodec) { self.codec = codec }

    mutating func prefix(of packet: Packet) -> [UInt8] {
        var output = EBML()
        let begins = epoch == nil
        let epoch = self.epoch ?? packet.time
        self.epoch = epoch
        if begins { appendBeginning(packet.size, to: &output) }
        let time = max(0, (packet.time - epoch).nanoseconds / 1_000_000)
        if begins || packet.isKeyFrame || time - clusterTime > WebMMuxer.greatestClusterTime {
            clusterTime = time
            output.appendUnsizedHeader(.cluster)
            output.append(.timestamp, UInt64(time))
        }
        // Track number, relative time, flags, then the packet.
        output.appendHeader(.simpleBlock, byteCount: UInt64(4 + packet.bytes.count))
        output.appendBigEndian(WebMMuxer.trackNumber | 0x80, 1)
        output.appendBigEndian(UInt64(time - clusterTime), 2)
        output.appendBigEndian(packet.isKeyFrame ? 0x80 : 0, 1)
        return output.bytes
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
        }
    }
}
