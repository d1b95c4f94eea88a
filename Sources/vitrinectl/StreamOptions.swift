// SPDX-License-Identifier: MIT
import DBus

/// The options of a stream, of `record` and of `watch`: from the command line to those of `Subscribe`.
enum StreamOptions {
    /// What the help lists.
    static let specs: [OptionSpec] = [
        OptionSpec(
            name: "codec", letter: "c", value: "vp8|vp9", text: "vp8 unless given; vp9 is smaller at the same sharpness, and more work"),
        OptionSpec(name: "bitrate", letter: "b", value: "N", text: "bits a second, such as 4M or 2500k; else the share's"),
        OptionSpec(name: "max-size", value: "WxH", text: "greatest picture, in pixels; else the share's"),
        OptionSpec(name: "fps", value: "N", text: "at most so many frames a second; else the share's"),
    ]

    /// The options that were given. The agent has the defaults, and judges the values.
    static func read(_ arguments: Arguments, _ format: RecordFormat, placeholder: String) throws(Failure) -> [String: Value] {
        var options: [String: Value] = ["format": .string(format.rawValue), "placeholder": .string(placeholder)]
        if let codec = try arguments.word("codec", of: ["vp8", "vp9"]) {
            if format == .y4m { throw .usage(.wrong("--codec makes no sense for raw pictures (y4m)", verb: arguments.verb)) }
            options["codec"] = .string(codec)
        }
        if let bitrate = try arguments.bitrate("bitrate") { options["bitrate"] = .uint32(bitrate) }
        if let rate = try arguments.number("fps") { options["fps"] = .uint32(rate) }
        if let size = try arguments.size("max-size") { options["max-size"] = .structure([.uint32(size.width), .uint32(size.height)]) }
        return options
    }
}
