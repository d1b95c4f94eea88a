// SPDX-License-Identifier: MIT
import Frames

/// A named choice of size, frame rate and bit rate.
struct Preset: Equatable, Sendable {
    let name: String
    /// Greatest width and height sent, pixels; 0 is no limit.
    let maxSize: PixelSize
    /// Greatest number of frames a second; 0 is no limit.
    let frameRate: UInt32
    /// Bit/s; 0 is chosen from the size.
    let bitrate: UInt32

    /// From the smallest to the greatest.
    static let all: [Preset] = [
        Preset("h360p", 640, 360, 15, 500_000),
        Preset("h480p", 854, 480, 20, 900_000),
        Preset("h720p", 1280, 720, 30, 2_000_000),
        standard,
        Preset("h1440p", 2560, 1440, 30, 7_000_000),
        Preset("h2160p", 3840, 2160, 30, 14_000_000),
        Preset("native", 0, 0, 60, 0),
    ]

    /// What a track starts with.
    static let standard = Preset("h1080p", 1920, 1080, 30, 4_000_000)

    private init(_ name: String, _ width: Int, _ height: Int, _ frameRate: UInt32, _ bitrate: UInt32) {
        (self.name, self.frameRate, self.bitrate) = (name, frameRate, bitrate)
        maxSize = PixelSize(width: width, height: height)
    }

    /// The preset of that name.
    ///
    /// - Throws: `InvalidArgs`, with the names that there are.
    static func named(_ name: String) throws(AgentError) -> Preset {
        if let preset = all.first(where: { $0.name == name }) { return preset }
        throw .invalid("preset", "is \"\(name)\"; there are \(all.map(\.name).joined(separator: ", "))")
    }

    /// The greatest of those below this one that is less work than pictures of that size and rate, for a machine that cannot keep up with them.
    ///
    /// - Parameters:
    ///   - size: what is sent at present, pixels.
    ///   - frameRate: the limit at present; 0 is none.
    func lower(than size: PixelSize, _ frameRate: UInt32) -> Preset? {
        guard let index = Preset.all.firstIndex(of: self) else { return nil }
        return Preset.all[..<index].last { size.fitted(into: $0.maxSize) != size || frameRate == 0 || $0.frameRate < frameRate }
    }
}
