// SPDX-License-Identifier: MIT
import DBus

/// What a track shows of itself at one moment.
struct Track: Equatable {
    let path: ObjectPath
    /// By property name. What a newer agent adds is kept, what an older one lacks is absent.
    private(set) var properties: [String: Value]

    init(path: ObjectPath, properties: [String: Value]) { (self.path, self.properties) = (path, properties) }

    /// Takes over what `PropertiesChanged` brought.
    mutating func apply(_ changed: [String: Value]) { properties.merge(changed) { $1 } }

    /// `idle`, `listening`, `choosing` or `active`.
    var state: String { string("State") ?? "idle" }
    var isActive: Bool { state == "active" }
    /// Whether the track listens; there may be no picture.
    var isCapturing: Bool { properties["IsCapturing"]?.asBool ?? false }
    /// Whether frames flow.
    var isBroadcastActive: Bool { properties["IsBroadcastActive"]?.asBool ?? false }
    var isMuted: Bool { properties["Muted"]?.asBool ?? false }
    var isPaused: Bool { properties["SourcePaused"]?.asBool ?? false }
    var preset: String { string("Preset") ?? "" }
    var title: String { string("Title") ?? "" }
    var ownerIdentity: String { string("OwnerIdentity") ?? "" }
    var ownerProcess: UInt32 { properties["OwnerPid"]?.asUInt32 ?? 0 }
    var lastErrorName: String { string("LastErrorName") ?? "" }
    var lastError: String { string("LastError") ?? "" }
    /// Microseconds since the epoch; 0 when not active.
    var startedAt: UInt64 { properties["StartedAt"]?.asUInt64 ?? 0 }
    var subscriptions: [ObjectPath] { properties["Subscriptions"]?.asObjectPaths ?? [] }
    /// Of the picture that is sent; nil when there is none.
    var size: Size? { properties["Size"].flatMap(Size.init) }
    var sources: [Source] { (properties["Sources"]?.asArray ?? []).compactMap(\.asOptions).map(Source.init) }
    /// How several sources lie in the picture.
    var layout: String { string("Layout") ?? "" }
    /// The part of the source that is sent; nil when all of it is.
    var crop: Region? { properties["Crop"].flatMap(Region.init).flatMap { $0 == .none ? nil : $0 } }
    /// The parts of the source that are black.
    var masks: [Region] { (properties["Masks"]?.asArray ?? []).compactMap(Region.init) }
    /// The size of what crop and masks are parts of; nil while it is not known, and where several sources are one picture.
    private var wholeSize: Size? { sources.count == 1 ? sources[0].pixelSize : nil }
    /// Whether the part that is sent lies outside of the source, so that nothing of it is seen.
    var isCropOutside: Bool {
        guard let crop, let wholeSize else { return false }
        return crop.isOutside(wholeSize)
    }
    /// The masks that hide nothing, because they lie outside of the source.
    var masksOutside: [Region] { wholeSize.map { size in masks.filter { $0.isOutside(size) } } ?? [] }
    /// What is to be said of a crop and of masks that cannot have been meant for this source.
    var warnings: [String] {
        let thing = printable(sharedThing)
        let ofCrop = isCropOutside ? crop.map { ["The crop \($0) lies outside of \(thing): readers see black."] } ?? [] : []
        return ofCrop + masksOutside.map { "The mask \($0) lies outside of \(thing): it hides nothing." }
    }
    /// By counter name.
    var statistics: [String: UInt64] { properties["Statistics"].map(readCounters) ?? [:] }

    /// The last element of the path: what the person calls the track.
    var name: String { path.text.split(separator: "/").last.map(String.init) ?? path.text }

    /// The track with what tells people whose it is: `track 3 ("Slides", exe:/usr/bin/x)`.
    var introduction: String {
        if path == Agent.desktopTrack { return "the desktop track" }
        let facts = [title.isEmpty ? nil : "\"\(printable(title))\"", ownerIdentity.isEmpty ? nil : printable(ownerIdentity)]
        let words = facts.compactMap(\.self).joined(separator: ", ")
        return "track \(name)" + (words.isEmpty ? "" : " (\(words))")
    }

    private func string(_ name: String) -> String? { properties[name]?.asString }

    /// What is shared, in a few words: `monitor, 1920x1080`.
    var sharedThing: String {
        let sources = sources.map(\.description)
        return sources.isEmpty ? size?.description ?? "something" : sources.joined(separator: " and ")
    }
}

/// A width and a height in pixels.
struct Size: Equatable, CustomStringConvertible {
    let width: UInt32
    let height: UInt32

    /// Reads `(uu)`; nil when it is something else, or nothing: `(0, 0)`.
    init?(_ value: Value) {
        guard let fields = value.asStructure, fields.count == 2, let width = fields[0].asUInt32, let height = fields[1].asUInt32 else {
            return nil
        }
        if width == 0 && height == 0 { return nil }
        (self.width, self.height) = (width, height)
    }

    var description: String { "\(width)x\(height)" }
    var json: JSON { .array([.unsigned(UInt64(width)), .unsigned(UInt64(height))]) }
}

/// A part of a picture, in pixels.
struct Region: Equatable, CustomStringConvertible {
    let (x, y): (Int32, Int32)
    let (width, height): (UInt32, UInt32)

    init(x: Int32, y: Int32, width: UInt32, height: UInt32) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }

    /// Reads `(iiuu)`; nil when it is something else.
    init?(_ value: Value) {
        guard let fields = value.asStructure, fields.count == 4, let x = fields[0].asInt32, let y = fields[1].asInt32,
            let width = fields[2].asUInt32, let height = fields[3].asUInt32
        else { return nil }
        self.init(x: x, y: y, width: width, height: height)
    }

    /// What stands for the whole picture.
    static let none = Region(x: 0, y: 0, width: 0, height: 0)

    /// Whether it has no pixel in common with a picture of that size.
    func isOutside(_ size: Size) -> Bool {
        let (right, bottom) = (Int64(x) + Int64(width), Int64(y) + Int64(height))
        return Int64(x) >= Int64(size.width) || Int64(y) >= Int64(size.height) || right <= 0 || bottom <= 0
    }

    var value: Value { .structure([.int32(x), .int32(y), .uint32(width), .uint32(height)]) }
    /// As on the command line.
    var description: String { "\(x),\(y),\(width),\(height)" }
}

/// One stream of what the user picked.
struct Source: CustomStringConvertible {
    private let entries: [String: Value]

    init(_ entries: [String: Value]) { self.entries = entries }

    /// `monitor`, `window`, `virtual monitor`; nil when the portal did not say.
    var type: String? {
        switch entries["type"]?.asUInt32 {
        case 1: "monitor"
        case 2: "window"
        case 4: "virtual monitor"
        case let other?: "source of type \(other)"
        case nil: nil
        }
    }

    /// Whether it is what a whole monitor shows, with all windows on it.
    var isMonitor: Bool { entries["type"]?.asUInt32 == 1 }

    /// PipeWire's number of it: another one is another source.
    var node: UInt32? { entries["node"]?.asUInt32 }

    var pixelSize: Size? { entries["pixel-size"].flatMap(Size.init) }

    var description: String { [type ?? "source", pixelSize?.description].compactMap(\.self).joined(separator: ", ") }

    /// All that the agent said, in the order of the names.
    var json: JSON {
        .object(
            entries.sorted { $0.key < $1.key }.map { key, value in
                JSON.Member(name: key, value: key == "type" ? type.map(JSON.string) ?? .null : JSON(value))
            })
    }
}

/// Reads `a{st}`.
func readCounters(_ value: Value) -> [String: UInt64] {
    guard case .dictionary(_, _, let entries) = value else { return [:] }
    var counters: [String: UInt64] = [:]
    for entry in entries {
        if let name = entry.key.asString, let number = entry.value.asUInt64 { counters[name] = number }
    }
    return counters
}

extension JSON {
    /// A D-Bus value: structures and arrays become arrays, dictionaries objects.
    init(_ value: Value) {
        switch value {
        case .byte(let number): self = .unsigned(UInt64(number))
        case .bool(let flag): self = .bool(flag)
        case .int16(let number): self = .integer(Int64(number))
        case .uint16(let number): self = .unsigned(UInt64(number))
        case .int32(let number): self = .integer(Int64(number))
        case .uint32(let number): self = .unsigned(UInt64(number))
        case .int64(let number): self = .integer(number)
        case .uint64(let number): self = .unsigned(number)
        case .string(let text): self = .string(text)
        case .objectPath(let path): self = .string(path.text)
        case .signature(let signature): self = .string(signature.text)
        case .array(_, let elements): self = .array(elements.map(JSON.init))
        case .structure(let fields): self = .array(fields.map(JSON.init))
        case .dictionary(_, _, let entries):
            self = .object(entries.map { Member(name: $0.key.asString ?? $0.key.text, value: JSON($0.value)) })
        case .variant(let inner): self = JSON(inner)
        case .double, .descriptor: self = .string(value.text)
        }
    }
}
