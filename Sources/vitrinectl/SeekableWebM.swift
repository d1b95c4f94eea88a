// SPDX-License-Identifier: MIT
import Loop
import Matroska

/// Why a recording cannot go on.
enum RecordingFault: Error, Equatable {
    case write(Errno)
    case stream(StreamFault)

    /// The same for the person.
    func failure(_ target: RecordTarget) -> Failure {
        let rest = target.isEmpty ? "" : ". What was written can be played"
        switch self {
        case .write(let error): return .ended(.failed, "cannot write \(target.name): \(error)\(rest)")
        case .stream(let fault):
            return .ended(
                .failed,
                "the agent's stream has \(fault.text), which this vitrinectl does not know: are they of one version? "
                    + "'vitrinectl record - >FILE' takes the stream as it is\(rest)")
        }
    }
}

/// Packs the agent's stream anew into a file that has a length and an index once it is finished.
///
/// It writes what comes at once, and fills in later what is not known yet: a cluster's size when the next one begins, the rest at the
/// end. What is still open has the sizes of a live stream, so the file can be played whenever the program is killed. Where sound comes too,
/// each block waits until what belongs before it has come: half a second.
///
/// Spec: [RFC 9559](https://www.rfc-editor.org/rfc/rfc9559).
struct SeekableWebM {
    /// Milliseconds for which the last picture is shown. With none, a player that goes to the end would show nothing.
    private static let lastPictureTime: UInt64 = 33
    private static let trackNumber: UInt64 = 1
    /// Milliseconds: times in a cluster have sixteen bits.
    private static let greatestClusterTime: UInt64 = 30_000
    /// Milliseconds by which sound may come later than a picture of the same time.
    static let patience: UInt64 = 500

    /// Where in the file the things are that are filled in at the end.
    private struct Layout {
        let segmentSize: UInt64
        /// What positions inside the segment count from.
        let segment: UInt64
        let info: UInt64
        let duration: UInt64
        let tracks: UInt64

        func seekHead(cues: UInt64?) -> EBML {
            var output = EBML()
            output.append(.seekHead) { head in
                for (id, position) in [(.info, info), (.tracks, tracks), (.cues, cues)] as [(ElementID, UInt64?)] {
                    guard let position else { continue }
                    head.append(.seek) { seek in
                        seek.append(.seekID, id.bytes)
                        // All eight bytes: the place is kept free before the number is known.
                        seek.append(.seekPosition, EBML.bigEndian(position - segment, 8))
                    }
                }
            }
            return output
        }
    }

    private let target: RecordTarget
    private var stream = LiveWebM()
    private var cues = CueList()
    private var layout: Layout?
    /// Where in the file the present cluster begins; nil before the first.
    private var cluster: UInt64?
    /// Milliseconds; of that cluster.
    private var clusterTime: UInt64 = 0
    /// Blocks that wait for what belongs before them, the oldest first.
    private var waiting: [LiveWebM.Block] = []
    /// Milliseconds; of the last block that was written, and of the last that is to be.
    private var (lastTime, comingTime): (UInt64, UInt64) = (0, 0)
    /// Whole elements that are not written yet.
    private var output = EBML()
    /// Bytes of the file so far.
    private(set) var written: UInt64 = 0
    /// Whether a key frame is to be asked for.
    var keyFrameWish = KeyFrameWish()

    /// - Parameter target: a regular file to which nothing was written yet.
    init(into target: RecordTarget) { self.target = target }

    /// Takes the bytes of the stream that come next, and writes what is whole.
    mutating func take(_ bytes: ArraySlice<UInt8>) throws(RecordingFault) {
        stream.append(bytes)
        while let piece = try next() {
            switch piece {
            case .beginning(let header, let info, let tracks): appendBeginning(header, info, tracks)
            case .block(let block): if stream.hasSound { try arrange(block) } else { try append(block) }
            }
        }
        // A file begins with a picture.
        if cluster != nil { try flush() }
    }

    /// Whether something waits for what may still come.
    var isWaiting: Bool { !waiting.isEmpty }

    /// Writes what waits: nothing that belongs before it will come any more.
    mutating func settle() throws(RecordingFault) {
        let blocks = waiting
        waiting = []
        for block in blocks { try append(block) }
        if cluster != nil { try flush() }
    }

    private mutating func arrange(_ block: LiveWebM.Block) throws(RecordingFault) {
        let place = waiting.lastIndex { $0.time <= block.time }.map { $0 + 1 } ?? 0
        waiting.insert(block, at: place)
        guard let newest = waiting.last?.time else { return }
        while let first = waiting.first, first.time + Self.patience < newest { try append(waiting.removeFirst()) }
    }

    /// Fills in what is known now. A picture that is not whole is left out.
    ///
    /// Where there is no room for the index, the file is left without, and can be played all the same.
    mutating func finish() throws(RecordingFault) {
        if layout != nil { try settle() }
        guard let layout, written > 0 else { return }
        try closeCluster()
        let index = written
        var fault: RecordingFault?
        output.append(.cues) { element in
            for cue in cues.cues {
                element.append(.cuePoint) { point in
                    point.append(.cueTime, cue.time)
                    point.append(.cueTrackPositions) { positions in
                        positions.append(.cueTrack, Self.trackNumber)
                        positions.append(.cueClusterPosition, cue.position)
                    }
                }
            }
        }
        do throws(RecordingFault) { try flush() } catch { fault = error }
        let free = layout.seekHead(cues: index).bytes.count
        var head = layout.seekHead(cues: fault == nil ? index : nil)
        if head.bytes.count < free { head.appendVoid(byteCount: free - head.bytes.count) }
        try patch(head.bytes, at: layout.segment)
        var duration = EBML()
        duration.appendFloat(.duration, Double(lastTime + Self.lastPictureTime))
        try patch(duration.bytes, at: layout.duration)
        // Last: with it the file says that all of the above is there.
        try patch(EBML.size(written - layout.segment), at: layout.segmentSize)
        if let fault { throw fault }
    }

    private mutating func next() throws(RecordingFault) -> LiveWebM.Piece? {
        do throws(StreamFault) {
            return try stream.next()
        } catch {
            if cluster != nil { try flush() }
            throw .stream(error)
        }
    }

    private mutating func appendBeginning(_ header: [UInt8], _ info: [UInt8], _ tracks: [UInt8]) {
        output.append(header)
        output.appendUnsizedHeader(.segment)
        let segment = end
        let free = Layout(segmentSize: 0, segment: 0, info: 0, duration: 0, tracks: 0).seekHead(cues: 0).bytes.count
        output.appendVoid(byteCount: free)
        let infoPosition = end
        var duration = EBML()
        duration.appendFloat(.duration, 0.0)
        output.appendHeader(.info, byteCount: UInt64(info.count + duration.bytes.count))
        output.append(info)
        let durationPosition = end
        output.appendVoid(byteCount: duration.bytes.count)
        layout = Layout(
            segmentSize: segment - UInt64(EBML.sizeByteCount), segment: segment, info: infoPosition, duration: durationPosition, tracks: end
        )
        output.append(tracks)
    }

    /// Times grow within a cluster, and playing may begin with one that begins with a key frame.
    private mutating func append(_ block: LiveWebM.Block) throws(RecordingFault) {
        let isOrdered = cluster != nil && block.time >= comingTime && block.time - clusterTime <= Self.greatestClusterTime
        if let layout, block.isKeyFrame || !isOrdered {
            try closeCluster()
            (cluster, clusterTime) = (end, block.time)
            if block.isKeyFrame { cues.add(CueList.Cue(time: block.time, position: end - layout.segment)) }
            output.appendUnsizedHeader(.cluster)
            output.append(.timestamp, block.time)
        }
        output.append(block.bytes(in: clusterTime))
        comingTime = block.time
        if !block.isSound { keyFrameWish.see(isKeyFrame: block.isKeyFrame, at: block.time) }
    }

    private mutating func closeCluster() throws(RecordingFault) {
        try flush()
        guard let cluster else { return }
        let content = cluster + UInt64(ElementID.cluster.bytes.count + EBML.sizeByteCount)
        try patch(EBML.size(written - content), at: content - UInt64(EBML.sizeByteCount))
    }

    // MARK: - The file

    private var end: UInt64 { written + UInt64(output.bytes.count) }

    /// Writes all whole elements, or none of them.
    private mutating func flush() throws(RecordingFault) {
        let bytes = output.bytes
        output = EBML()
        var rest = bytes[...]
        do throws(Errno) {
            while !rest.isEmpty { rest = rest.dropFirst(try target.write(rest)) }
        } catch {
            target.cut(to: written)
            comingTime = lastTime
            if let cluster, cluster >= written { self.cluster = nil }
            if let layout { cues.removeAll(from: written - min(written, layout.segment)) }
            throw .write(error)
        }
        written += UInt64(bytes.count)
        lastTime = comingTime
    }

    private func patch(_ bytes: [UInt8], at position: UInt64) throws(RecordingFault) {
        do throws(Errno) { try target.overwrite(bytes, at: position) } catch { throw .write(error) }
    }
}
