// SPDX-License-Identifier: MIT
import DBus

/// The options of a share, of `share` and of `toggle`: from the command line to the contract's `a{sv}`.
enum ShareOptions {
    /// What the help lists.
    static let specs: [OptionSpec] = [
        OptionSpec(name: "preset", letter: "p", value: "P", text: "greatest size, rate and bit rate together: h360p to h2160p, native"),
        OptionSpec(name: "fps", value: "N", text: "at most so many frames a second; 0 is no limit"),
        OptionSpec(name: "bitrate", letter: "b", value: "N", text: "bits a second, such as 4M or 2500k; 0 is chosen from the size"),
        OptionSpec(name: "max-size", value: "WxH", text: "greatest picture sent, in pixels; the picture keeps its shape"),
        OptionSpec(
            name: "cursor", value: "embedded|metadata|hidden", text: "the pointer: drawn by the desktop, drawn by the agent, or not at all"),
        OptionSpec(
            name: "audio", letter: "a", value: "none|system|microphone|both",
            text: "the sound that goes with the picture: none, what this machine plays, the microphone, or both mixed"),
        OptionSpec(
            name: "crop", value: "X,Y,W,H",
            text: "the part of the source that is sent, in its pixels; none is all of it. It stays until it is changed"),
        OptionSpec(
            name: "mask", value: "X,Y,W,H",
            text:
                "a part of the source that is black for everybody, in its pixels; may be given several times, and then stands in place of "
                + "earlier ones; none takes all away. Masks stay until they are changed"),
        OptionSpec(name: "multiple", text: "let several sources be chosen in the picker; they are put together into one picture"),
        OptionSpec(
            name: "layout", value: "grid|row",
            text: "how several sources lie in the picture: in rows and columns, or all beside each other. It stays until it is changed"),
        OptionSpec(name: "title", value: "T", text: "what others see as the share's name"),
        OptionSpec(
            name: "timeout", value: "S",
            text:
                "seconds that the picker may stay open; 60 unless given, 0 is for ever. Where one is open already, how long to wait for it"),
        OptionSpec(name: "monitor", text: "offer monitors in the picker"),
        OptionSpec(name: "window", text: "offer windows in the picker; without any of the three, monitors and windows"),
        OptionSpec(name: "virtual", text: "offer a virtual monitor in the picker"),
        OptionSpec(
            name: "remember", value: "no|forever",
            text: "whether vitrinectl may share this again without the picker: no, or forever (see forget)"),
        OptionSpec(
            name: "allow", value: "ID",
            text:
                "who else may read the stream: app:ID, unit:NAME, exe:PATH or a unique bus name; may be given several times, and then stands in "
                + "place of those who were allowed before"),
    ]

    /// What the sounds are for people.
    static let soundWords = ["system": "this machine", "microphone": "the microphone", "both": "this machine and the microphone"]

    /// What options change of a share that runs, in words: `preset h720p, at most 640x480`; nil when they change nothing.
    static func words(_ options: [String: Value]) -> String? {
        let words = options.sorted { $0.key < $1.key }.compactMap { key, value -> String? in
            switch key {
            case "wait", "timeout": nil
            // They cannot change: what was asked for is as it was.
            case "sources", "multiple", "cursor", "audio", "persist": nil
            case "crop": Region(value).map { $0 == .none ? "no crop" : "crop \($0)" }
            case "masks":
                value.asArray.map { masks in
                    masks.isEmpty ? "no masks" : "masked: " + masks.compactMap(Region.init).map(\.description).joined(separator: " and ")
                }
            case "title" where value.asString == "": "no title"
            case "allow": "allowed: " + (value.asStrings ?? []).joined(separator: " and ")
            case "max-size": Size(value).map { "at most \($0)" } ?? "any size"
            default: "\(key) \(value.asString ?? value.asUInt32.map(String.init) ?? value.text)"
            }
        }
        return words.isEmpty ? nil : printable(words.joined(separator: ", "))
    }

    /// The options that were given. The agent has the defaults, and judges the values.
    static func read(_ arguments: Arguments) throws(Failure) -> [String: Value] {
        var options: [String: Value] = [:]
        if let preset = arguments.string("preset") { options["preset"] = .string(preset) }
        if let rate = try arguments.number("fps") { options["fps"] = .uint32(rate) }
        if let bitrate = try arguments.bitrate("bitrate") { options["bitrate"] = .uint32(bitrate) }
        if let size = try arguments.size("max-size") { options["max-size"] = .structure([.uint32(size.width), .uint32(size.height)]) }
        if let cursor = try arguments.word("cursor", of: ["embedded", "metadata", "hidden"]) { options["cursor"] = .string(cursor) }
        if let audio = try arguments.word("audio", of: ["none", "system", "microphone", "both"]) { options["audio"] = .string(audio) }
        if let crop = try arguments.regions("crop") { options["crop"] = (crop.last ?? .none).value }
        if let masks = try arguments.regions("mask") { options["masks"] = .array(of: "(iiuu)", masks.map(\.value)) }
        if arguments.has("multiple") { options["multiple"] = .bool(true) }
        if let title = arguments.string("title") { options["title"] = .string(title) }
        if let timeout = try arguments.number("timeout") { options["timeout"] = .uint32(timeout) }
        let sources = (arguments.has("monitor") ? 1 : 0) | (arguments.has("window") ? 2 : 0) | (arguments.has("virtual") ? 4 : 0)
        if sources != 0 { options["sources"] = .uint32(UInt32(sources)) }
        if arguments.string("remember") == "session" {
            // What is remembered for the session goes with the program that shared, and this one ends with its share.
            throw .usage(
                .wrong("--remember session would be forgotten when vitrinectl ends: there are no and forever", verb: arguments.verb))
        }
        if let duration = try arguments.word("remember", of: ["no", "forever"]) {
            options["persist"] = .string(duration == "no" ? "none" : duration)
        }
        if arguments.has("allow") { options["allow"] = .strings(arguments.strings("allow")) }
        return options
    }

    /// `Layout`, which is a property and no option of the call; nil when it was not given.
    static func layout(_ arguments: Arguments) throws(Failure) -> String? { try arguments.word("layout", of: ["grid", "row"]) }
}
