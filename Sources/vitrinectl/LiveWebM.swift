// SPDX-License-Identifier: MIT
import Matroska

/// Something in a stream that the agent of this version does not write.
struct StreamFault: Error, Equatable {
    /// What was found, and where.
    let text: String
}

/// Takes apart the WebM that the agent sends: segment and clusters without sizes, a track of pictures and perhaps one of sound, simple blocks.
///
/// It is strict: what it does not know could only be copied to a wrong place.
struct LiveWebM {
    /// One encoded picture, or a packet of sound.
    struct Block: Equatable {
        /// The whole block, as it is in the stream. Its time is relative to the cluster's.
        fileprivate let bytes: [UInt8]
        /// Where that time is in it.
        fileprivate let timePlace: Int
        /// Milliseconds since the stream began.
        let time: UInt64
        let isSound: Bool
        /// Whether it is a picture with which playing may begin.
        let isKeyFrame: Bool

        /// The whole block, in a cluster of that time.
        func bytes(in clusterTime: UInt64) -> [UInt8] {
            var bytes = bytes
            bytes.replaceSubrange(timePlace..<timePlace + 2, with: EBML.bigEndian(time - clusterTime, 2))
            return bytes
        }
    }

    enum Piece: Equatable {
        /// The element before the segment, what is in the segment's information, the element that describes the track.
        case beginning(header: [UInt8], info: [UInt8], tracks: [UInt8])
        case block(Block)
    }

    /// Descriptions have some hundred bytes; a picture is never larger than the agent's queue of a reader by far.
    private static let (greatestDescription, greatestPicture) = (UInt64(1) << 16, UInt64(1) << 26)
    /// Nanoseconds: times are milliseconds.
    private static let timestampScale: UInt64 = 1_000_000
    /// More would not fit in what a file says of itself.
    private static let greatestTime = UInt64(1) << 48

    private enum Place {
        case start, segment, info, tracks, firstCluster, clusterTime, cluster

        /// What may stand there, and whether its end is known.
        func takes(_ id: ElementID?, isOpen: Bool) -> Bool {
            switch (self, id) {
            case (.segment, .segment), (.firstCluster, .cluster), (.cluster, .cluster): isOpen
            case (.start, .ebml), (.info, .info), (.tracks, .tracks), (.clusterTime, .timestamp), (.cluster, .simpleBlock): !isOpen
            default: false
            }
        }
    }
    private typealias Head = (id: ElementID?, byteCount: UInt64?, length: Int)

    private var buffer: [UInt8] = []
    private var position = 0
    /// Of the buffer's beginning in the stream.
    private var offset: UInt64 = 0
    private var place = Place.start
    private var header: [UInt8] = []
    private var info: [UInt8] = []
    private var clusterTime: UInt64 = 0
    /// Whether sound comes with the pictures, once the beginning has come.
    private(set) var hasSound = false

    /// Takes the bytes that come next.
    mutating func append(_ bytes: ArraySlice<UInt8>) {
        buffer.removeFirst(position)
        offset += UInt64(position)
        position = 0
        buffer += bytes
    }

    /// The next piece; nil when it is not all there yet.
    mutating func next() throws(StreamFault) -> Piece? {
        while let head = try head(at: position, before: buffer.count) {
            let content = position + head.length
            guard place.takes(head.id, isOpen: head.byteCount == nil) else { throw fault("an element that is out of place") }
            guard let byteCount = head.byteCount else {
                place = head.id == .segment ? .info : .clusterTime
                position = content
                continue
            }
            guard byteCount <= (place == .cluster ? Self.greatestPicture : Self.greatestDescription) else {
                throw fault("an element of \(byteCount) bytes")
            }
            let end = content + Int(byteCount)
            guard end <= buffer.count else { return nil }
            let piece = try take(head.id, from: position, content..<end)
            position = end
            if let piece { return piece }
        }
        return nil
    }

    private mutating func take(_ id: ElementID?, from start: Int, _ content: Range<Int>) throws(StreamFault) -> Piece? {
        switch id {
        case .ebml:
            guard try children(of: content).contains(where: { $0.id == .docType && buffer[$0.content].elementsEqual("webm".utf8) }) else {
                throw fault("another kind of file than WebM")
            }
            header = Array(buffer[start..<content.upperBound])
            place = .segment
        case .info:
            let children = try children(of: content)
            let scale = children.first { $0.id == .timestampScale }
            guard let scale, number(scale.content) == Self.timestampScale, !children.contains(where: { $0.id == .duration }) else {
                throw fault("another scale of times, or a length")
            }
            info = Array(buffer[content])
            place = .tracks
        case .tracks:
            place = .firstCluster
            hasSound = EBML.contains(Array(buffer[content]), "A_OPUS")
            return .beginning(header: header, info: info, tracks: Array(buffer[start..<content.upperBound]))
        case .timestamp:
            guard content.count <= 8, number(content) < Self.greatestTime else { throw fault("an impossible time") }
            clusterTime = number(content)
            place = .cluster
        default:
            return .block(try block(from: start, content))
        }
        return nil
    }

    /// Track number in one byte, relative time in two, flags, the picture or sound.
    private func block(from start: Int, _ content: Range<Int>) throws(StreamFault) -> Block {
        let (pictures, sound, lacing, key): (UInt8, UInt8, UInt8, UInt8) = (0x81, 0x82, 0x06, 0x80)
        let bytes = buffer[content]
        let track = bytes.first ?? 0
        guard bytes.count > 4, track == pictures || track == sound && hasSound, bytes[content.lowerBound + 3] & lacing == 0 else {
            throw fault("a block that is of neither track")
        }
        let relative = UInt16(bytes[content.lowerBound + 1]) << 8 | UInt16(bytes[content.lowerBound + 2])
        guard relative < 0x8000 else { throw fault("a block that is older than its cluster") }
        return Block(
            bytes: Array(buffer[start..<content.upperBound]), timePlace: content.lowerBound + 1 - start,
            time: clusterTime + UInt64(relative), isSound: track == sound,
            isKeyFrame: track == pictures && bytes[content.lowerBound + 3] & key != 0)
    }

    // MARK: - Elements

    private func children(of range: Range<Int>) throws(StreamFault) -> [(id: ElementID?, content: Range<Int>)] {
        var children: [(id: ElementID?, content: Range<Int>)] = []
        var position = range.lowerBound
        while position < range.upperBound {
            guard let head = try head(at: position, before: range.upperBound), let byteCount = head.byteCount,
                byteCount <= UInt64(range.upperBound - position - head.length)
            else { throw fault("an element that is larger than the one around it") }
            let content = position + head.length
            position = content + Int(byteCount)
            children.append((head.id, content..<position))
        }
        return children
    }

    /// The identifier and the size that stand there; nil when they are not all there.
    private func head(at position: Int, before end: Int) throws(StreamFault) -> Head? {
        guard position < end else { return nil }
        let idLength = buffer[position].leadingZeroBitCount + 1
        guard idLength <= 4 else { throw fault("no element") }
        guard position + idLength < end else { return nil }
        let sizeLength = buffer[position + idLength].leadingZeroBitCount + 1
        guard sizeLength <= 8 else { throw fault("no size of an element") }
        let length = idLength + sizeLength
        guard position + length <= end else { return nil }
        let id = ElementID(rawValue: UInt32(number(position..<position + idLength)))
        let ones = UInt64(1) << UInt64(7 * sizeLength) - 1
        let size = number(position + idLength..<position + length) & ones
        return (id, size == ones ? nil : size, length)
    }

    /// The lowest 64 bits of what stands there, the highest byte first.
    private func number(_ range: Range<Int>) -> UInt64 { buffer[range].reduce(0) { $0 << 8 | UInt64($1) } }

    private func fault(_ what: String) -> StreamFault { StreamFault(text: "\(what) at byte \(offset + UInt64(position))") }
}
