// SPDX-License-Identifier: MIT
import Glibc

/// What ffmpeg makes of a stream.
struct Recording {
    struct Packet {
        let milliseconds: Int
        let isKeyFrame: Bool
    }

    let width: Int
    let height: Int
    let packets: [Packet]
    /// The luma of each decoded picture.
    let frames: [[UInt8]]
    /// What the tools complained of.
    let complaints: String

    var times: [Int] { packets.map(\.milliseconds) }
    var timesGrow: Bool { zip(times, times.dropFirst()).allSatisfy(<) }

    init(_ bytes: [UInt8], suffix: String = ".webm") {
        let file = TemporaryFile(bytes, suffix: suffix)
        let probe = run(["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", file.path])
        let size = probe.lines.first?.split(separator: ",").compactMap { Int($0) } ?? []
        (width, height) = (size.first ?? 0, size.last ?? 0)
        let list = run(["ffprobe", "-v", "error", "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", file.path])
        packets = list.lines.compactMap { line in
            let fields = line.split(separator: ",")
            guard fields.count >= 2, let seconds = Double(fields[0]) else { return nil }
            return Packet(milliseconds: Int((seconds * 1_000).rounded()), isKeyFrame: fields[1].contains("K"))
        }
        let decoded = run(
            ["ffmpeg", "-v", "error", "-i", file.path, "-fps_mode", "passthrough", "-enc_time_base", "1:1000"]
                + ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        let (lumaCount, chromaCount) = (width * height, (width + 1) / 2 * ((height + 1) / 2))
        let frameCount = lumaCount + 2 * chromaCount
        frames =
            frameCount == 0
            ? []
            : stride(from: 0, to: decoded.output.count - frameCount + 1, by: frameCount).map {
                Array(decoded.output[$0..<($0 + lumaCount)])
            }
        complaints = probe.errors + list.errors + decoded.errors
    }

    /// Peak signal to noise of two pictures' luma, in decibels.
    static func likeness(_ left: [UInt8], _ right: [UInt8]) -> Double {
        guard left.count == right.count, !left.isEmpty else { return 0 }
        var sum = 0
        left.withUnsafeBufferPointer { left in
            right.withUnsafeBufferPointer { right in
                for index in left.indices {
                    let difference = Int(left[index]) - Int(right[index])
                    sum += difference * difference
                }
            }
        }
        return sum == 0 ? .infinity : 10 * log10(65_025 * Double(left.count) / Double(sum))
    }
}
