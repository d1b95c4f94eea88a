// SPDX-License-Identifier: MIT
import Capture
import Composition
import DBus
import Encoding
import Frames
import Portal
import Sound

/// The keys of one `a{sv}`, taken out one by one: what is left over at the end was unknown.
struct OptionReader {
    private var left: [String: Value]
    private var known: [String] = []

    init(_ options: [String: Value]) { left = options }

    mutating func take<Taken>(_ key: String, _ type: StaticString, _ read: (Value) -> Taken?) throws(AgentError) -> Taken? {
        known.append(key)
        guard let value = left.removeValue(forKey: key) else { return nil }
        guard let taken = read(value) else { throw .invalid(key, "is of type \(value.signature); it must be \(type)") }
        return taken
    }

    mutating func takeBool(_ key: String) throws(AgentError) -> Bool? { try take(key, "b") { $0.asBool } }
    mutating func takeUInt32(_ key: String) throws(AgentError) -> UInt32? { try take(key, "u") { $0.asUInt32 } }
    mutating func takeString(_ key: String) throws(AgentError) -> String? { try take(key, "s") { $0.asString } }

    mutating func takeSize(_ key: String) throws(AgentError) -> PixelSize? {
        let size = try take(key, "(uu)") { value -> PixelSize? in
            guard let fields = value.asStructure, fields.count == 2, let width = fields[0].asUInt32, let height = fields[1].asUInt32
            else { return nil }
            return PixelSize(width: Int(width), height: Int(height))
        }
        if let size, size.width > 16_383 || size.height > 16_383 { throw .invalid(key, "is more than 16383 pixels") }
        return size
    }

    /// Takes a key of which only the default is possible here.
    mutating func takeDefault<Taken: Equatable>(
        _ key: String, _ type: StaticString, _ standard: Taken, _ why: String, _ read: (Value) -> Taken?
    ) throws(AgentError) {
        if let taken = try take(key, type, read), taken != standard { throw .unsupported("\"\(key)\"", why) }
    }

    /// - Throws: `InvalidArgs`, naming a key that nobody took.
    func finish() throws(AgentError) {
        guard let key = left.keys.sorted().first else { return }
        throw .invalid(key, "is not an option here; there are \(known.joined(separator: ", "))")
    }
}

/// The options of a track: `CreateTrack`, `SetScreenShare`.
struct TrackOptions: Equatable, Sendable {
    var preset = Preset.standard
    /// What was asked for explicitly wins over the preset; nil is the preset's.
    var maxSize: PixelSize?
    var frameRate: UInt32?
    var bitrate: UInt32?
    /// Bits of the portal's source types.
    var sources: UInt32 = 3
    var cursor = CursorMode.embedded
    /// Whether the caller named the cursor mode, and did not just leave it at the default.
    var cursorIsExplicit = false
    /// Which sound goes with the picture.
    var audio = SoundMix.none
    var title = ""
    var allow: [String] = []
    var isDetached = false
    /// Whether the next share may skip the picker, ...
    var persistence = Persistence.none
    /// ... and the client's own name for what is remembered.
    var restoreKey = ""
    /// Whether the picker lets the user choose several sources.
    var isMultiple = false
    /// How several are composed. A property only, and no option.
    var layout = Layout.grid
    var crop = Region.none
    var masks: [Region] = []

    /// What an encoder gets when its subscription says nothing else.
    var effectiveMaxSize: PixelSize { maxSize ?? preset.maxSize }
    var effectiveFrameRate: UInt32 { frameRate ?? preset.frameRate }
    var effectiveBitrate: UInt32 { bitrate ?? preset.bitrate }

    /// Most identities that one track lets subscribe.
    static let greatestAllowCount = 256
    static let tooManyAllowed = AgentError(
        .limitExceeded, "\"allow\" holds more than \(greatestAllowCount) identities: take some back with Disallow first")

    /// Most bytes of a `restore-key`.
    static let greatestRestoreKey = 256

    /// Most parts that are blacked out: each costs a little in every picture.
    static let greatestMaskCount = 256

    /// What of the source is captured.
    var view: CaptureView { CaptureView(crop: crop == .none ? nil : crop.asRect, masks: masks.map(\.asRect)) }

    /// Most bytes of an identity. All of a client's tracks still fit into one message of the bus.
    static let greatestIdentity = 1_024

    /// Applies what the caller gave to what stands; a preset resets what was explicit before it.
    mutating func apply(_ reader: inout OptionReader) throws(AgentError) {
        if let name = try reader.takeString("preset") { setPreset(try Preset.named(name)) }
        if let size = try reader.takeSize("max-size") { maxSize = size }
        if let rate = try reader.takeUInt32("fps") { frameRate = try Self.checkFrameRate(rate) }
        if let rate = try reader.takeUInt32("bitrate") { bitrate = try Self.checkBitrate(rate) }
        if let bits = try reader.takeUInt32("sources") {
            guard bits != 0, bits & ~7 == 0 else { throw .invalid("sources", "is \(bits); it is a sum of 1 monitor, 2 window, 4 virtual") }
            sources = bits
        }
        if let flag = try reader.takeBool("multiple") { isMultiple = flag }
        if let mode = try reader.takeString("cursor") { try setCursor(mode) }
        if let name = try reader.takeString("audio") {
            guard let mix = SoundMix(rawValue: name) else {
                throw .invalid("audio", "is \"\(name)\"; there are \(SoundMix.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            audio = mix
        }
        if let text = try reader.takeString("title") { title = try Self.checkTitle(text) }
        if let names = try reader.take("allow", "as", { $0.asArray?.allOrNone { $0.asString } }) {
            guard names.count <= TrackOptions.greatestAllowCount else { throw TrackOptions.tooManyAllowed }
            allow = []
            for name in names where !allow.contains(name) { allow.append(try Self.checkIdentity("allow", name)) }
        }
        if let flag = try reader.takeBool("detached") { isDetached = flag }
        if let region = try reader.take("crop", "(iiuu)", { Region($0) }) { crop = try Self.checkCrop(region) }
        if let regions = try reader.take("masks", "a(iiuu)", { $0.asArray?.allOrNone { Region($0) } }) {
            masks = try Self.checkMasks(regions)
        }
        try takePersistence(&reader)
        try Self.refuseUnbuilt(&reader)
    }

    mutating func setPreset(_ new: Preset) {
        (preset, maxSize, frameRate, bitrate) = (new, nil, nil, nil)
    }

    private mutating func setCursor(_ mode: String) throws(AgentError) {
        switch mode {
        case "hidden": cursor = .hidden
        case "embedded": cursor = .embedded
        case "metadata": cursor = .metadata
        default: throw .invalid("cursor", "is \"\(mode)\"; there are hidden, embedded, metadata")
        }
        cursorIsExplicit = true
    }

    private mutating func takePersistence(_ reader: inout OptionReader) throws(AgentError) {
        if let name = try reader.takeString("persist") {
            guard let known = Persistence(rawValue: name) else {
                throw .invalid("persist", "is \"\(name)\"; there are none, session, forever")
            }
            persistence = known
            // A name from before names nothing then.
            if known == .none { restoreKey = "" }
        }
        if let key = try reader.takeString("restore-key") {
            guard key.utf8.count <= TrackOptions.greatestRestoreKey else {
                throw .invalid("restore-key", "has \(key.utf8.count) bytes; it has at most \(TrackOptions.greatestRestoreKey)")
            }
            restoreKey = key
        }
        guard restoreKey.isEmpty || persistence != .none else {
            throw .invalid("restore-key", "names what \"persist\" remembers: ask for \"session\" or \"forever\" too")
        }
    }

    /// - Throws: `Unsupported`, when what this program chooses cannot be remembered for good.
    func checkPersistence(of identity: Identity, onDesktopTrack: Bool) throws(AgentError) {
        guard persistence == .forever, !identity.isVerified || !(onDesktopTrack || identity.name.hasPrefix("app:")) else { return }
        let why =
            onDesktopTrack
            ? "\(identity.name) may be another program tomorrow (an interpreter, a user service, a file that its user can write): ask for \"session\""
            : "it is for Flatpak and Snap applications, and for the desktop track; \(identity.name) may ask for \"session\""
        throw .unsupported("persist \"forever\"", why)
    }

    private static func refuseUnbuilt(_ reader: inout OptionReader) throws(AgentError) {
        try reader.takeDefault("excluded-windows", "au", [], "no desktop portal can leave windows out") {
            $0.asArray?.allOrNone { $0.asUInt32 }
        }
    }

    static func checkCrop(_ crop: Region) throws(AgentError) -> Region {
        guard crop.x >= 0, crop.y >= 0 else { throw .invalid("crop", "begins outside of the source: x and y are 0 or more") }
        return crop
    }

    static func checkMasks(_ masks: [Region]) throws(AgentError) -> [Region] {
        guard masks.count <= greatestMaskCount else {
            throw AgentError(.limitExceeded, "\"masks\" holds \(masks.count) parts; it holds at most \(greatestMaskCount)")
        }
        return masks
    }

    static func layout(named name: String) throws(AgentError) -> Layout {
        guard let layout = Layout(rawValue: name) else { throw .invalid("Layout", "is \"\(name)\"; there are grid, row") }
        return layout
    }

    static func checkFrameRate(_ rate: UInt32) throws(AgentError) -> UInt32 {
        guard rate <= 1_000 else { throw .invalid("fps", "is \(rate); it is at most 1000 frames a second, 0 is no limit") }
        return rate
    }

    static func checkBitrate(_ rate: UInt32) throws(AgentError) -> UInt32 {
        guard rate == 0 || (10_000...1_000_000_000).contains(rate) else {
            throw .invalid("bitrate", "is \(rate); it lies between 10000 and 1000000000 bit/s, 0 is chosen from the size")
        }
        return rate
    }

    private static func checkTitle(_ text: String) throws(AgentError) -> String {
        // Scalars, since one character may be made of any number of them.
        let count = text.unicodeScalars.count
        guard count <= 64 else { throw .invalid("title", "has \(count) characters; it has at most 64") }
        // Format characters are part of some scripts and of emoji: who shows a title escapes those that could deceive.
        let breaking: Set<Unicode.GeneralCategory> = [.control, .lineSeparator, .paragraphSeparator]
        guard !text.unicodeScalars.contains(where: { breaking.contains($0.properties.generalCategory) }) else {
            throw .invalid("title", "holds a control character or a line break")
        }
        return text
    }

    /// `app:ID`, `unit:NAME`, `exe:/PATH`, `:1.42`.
    static func checkIdentity(_ key: String, _ name: String) throws(AgentError) -> String {
        guard name.utf8.count <= greatestIdentity else {
            throw .invalid(key, "holds an identity of \(name.utf8.count) bytes; it has at most \(greatestIdentity)")
        }
        let isNamed = ["app:", "unit:"].contains { name.hasPrefix($0) && name.count > $0.count } || name.hasPrefix("exe:/")
        let isUnique = name.hasPrefix(":") && BusName(name) != nil
        guard isNamed || isUnique else {
            throw .invalid(key, "holds \"\(name)\"; an identity is app:ID, unit:NAME, exe:/PATH, or a unique bus name such as :1.42")
        }
        return name
    }

    /// The options as the contract spells them.
    var asValue: Value {
        var options: [String: Value] = [
            "preset": .string(preset.name), "sources": .uint32(sources), "multiple": .bool(isMultiple),
            "cursor": .string(cursor.description), "audio": .string(audio.rawValue), "title": .string(title),
            "allow": .array(of: "s", allow.map(Value.string)), "detached": .bool(isDetached), "persist": .string(persistence.rawValue),
            "restore-key": .string(restoreKey), "crop": crop.asValue, "masks": masks.asValue,
        ]
        if let maxSize { options["max-size"] = maxSize.asValue }
        if let frameRate { options["fps"] = .uint32(frameRate) }
        if let bitrate { options["bitrate"] = .uint32(bitrate) }
        return .options(options)
    }
}

/// The options of one start: `wait`, `timeout`, `parent-window`.
struct StartOptions: Equatable, Sendable {
    var waits = false
    /// How long the picker may stay open, seconds; 0 is for ever.
    var timeout: UInt32 = 60
    var parentWindow = ""

    init(_ reader: inout OptionReader) throws(AgentError) {
        waits = try reader.takeBool("wait") ?? waits
        timeout = try reader.takeUInt32("timeout") ?? timeout
        parentWindow = try reader.takeString("parent-window") ?? parentWindow
        guard parentWindow.utf8.count <= 1_024 else { throw .invalid("parent-window", "is longer than 1024 bytes") }
        guard parentWindow.isEmpty || ["x11:", "wayland:"].contains(where: { parentWindow.hasPrefix($0) }) else {
            throw .invalid("parent-window", "is neither x11:XID nor wayland:HANDLE")
        }
    }
}

/// The options of `Subscribe`.
struct SubscribeOptions: Equatable, Sendable {
    enum Format: String, Sendable {
        case webm, ivf, y4m, frames
        var isRaw: Bool { self == .y4m || self == .frames }
    }
    enum Placeholder: String, Sendable { case picture, hold, end }

    var format = Format.webm
    var codec = VideoCodec.vp8
    var bitrate: UInt32?
    var maxSize: PixelSize?
    var frameRate: UInt32?
    var placeholder = Placeholder.picture

    /// The codec in the stream; `""` in a raw format.
    var codecName: String { format.isRaw ? "" : codec.rawValue }

    init(_ options: [String: Value]) throws(AgentError) {
        var reader = OptionReader(options)
        if let name = try reader.takeString("format") {
            guard let known = Format(rawValue: name) else { throw .invalid("format", "is \"\(name)\"; there are webm, ivf, y4m, frames") }
            format = known
        }
        if let name = try reader.takeString("codec") {
            guard let known = VideoCodec(rawValue: name) else { throw .invalid("codec", "is \"\(name)\"; there are vp8, vp9") }
            // The default may be said beside any format.
            guard known == codec || !format.isRaw else {
                throw .invalid("codec", "is \"\(name)\", but the format \(format.rawValue) has no codec: take webm or ivf")
            }
            codec = known
        }
        if let rate = try reader.takeUInt32("bitrate") { bitrate = try TrackOptions.checkBitrate(rate) }
        maxSize = try reader.takeSize("max-size")
        if let rate = try reader.takeUInt32("fps") { frameRate = try TrackOptions.checkFrameRate(rate) }
        if let name = try reader.takeString("placeholder") {
            guard let known = Placeholder(rawValue: name) else {
                throw .invalid("placeholder", "is \"\(name)\"; there are picture, hold, end")
            }
            placeholder = known
        }
        try reader.finish()
    }
}

/// A rectangle as the contract spells it: `(iiuu)`.
struct Region: Equatable, Sendable {
    let x, y: Int32
    let width, height: UInt32

    static let none = Region(x: 0, y: 0, width: 0, height: 0)

    private init(x: Int32, y: Int32, width: UInt32, height: UInt32) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }

    init?(_ value: Value) {
        guard let fields = value.asStructure, fields.count == 4, let x = fields[0].asInt32, let y = fields[1].asInt32,
            let width = fields[2].asUInt32, let height = fields[3].asUInt32
        else { return nil }
        self.init(x: x, y: y, width: width, height: height)
    }

    var asValue: Value { .structure([.int32(x), .int32(y), .uint32(width), .uint32(height)]) }
    var asRect: PixelRect { PixelRect(x: Int(x), y: Int(y), width: Int(width), height: Int(height)) }
}

extension [Region] {
    /// `a(iiuu)`.
    var asValue: Value { .array(of: "(iiuu)", map(\.asValue)) }
}

extension PixelSize {
    /// `(uu)`.
    var asValue: Value { .structure([.uint32(UInt32(clamping: width)), .uint32(UInt32(clamping: height))]) }
}

extension Array {
    /// All elements transformed, or nil when one of them cannot be.
    func allOrNone<Transformed>(_ transform: (Element) -> Transformed?) -> [Transformed]? {
        var result: [Transformed] = []
        for element in self {
            guard let transformed = transform(element) else { return nil }
            result.append(transformed)
        }
        return result
    }
}
