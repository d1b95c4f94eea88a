// SPDX-License-Identifier: MIT
import DBus

/// One thing that can be set: by `Configure`, and by an option of the command line with the same name.
struct Knob {
    /// What a change asks of a source that runs.
    enum Effect {
        /// The next picture or answer has it.
        case none
        /// Another pointer: a buffer without pixels where it is metadata, a picture where it is drawn.
        case pointer
        /// Another picture.
        case repaint
        /// Another format or other buffers.
        case renegotiate
        /// The backend's properties changed.
        case announce
        /// Other sources, from the next session on.
        case nextSession
    }

    /// Why a value was not taken: it is not of the knob's type, or not one of its values.
    enum Refusal: Error {
        case type
        case range(String)
    }

    let name: String
    let signature: String
    let effect: Effect
    /// For `--help`: the values, and what they do.
    let help: String
    let get: (Settings) -> Value
    let set: (inout Settings, Value) throws(Refusal) -> Void
}

extension Knob {
    static func flag(_ name: String, _ path: WritableKeyPath<Settings, Bool>, _ effect: Effect = .none, _ help: String) -> Knob {
        Knob(name: name, signature: "b", effect: effect, help: help, get: { .bool($0[keyPath: path]) }) { settings, value throws(Refusal) in
            guard let flag = value.asBool else { throw .type }
            settings[keyPath: path] = flag
        }
    }

    static func number(
        _ name: String, _ path: WritableKeyPath<Settings, UInt32>, _ range: ClosedRange<UInt32> = 0...UInt32.max, _ effect: Effect = .none,
        _ help: String
    ) -> Knob {
        Knob(name: name, signature: "u", effect: effect, help: help, get: { .uint32($0[keyPath: path]) }) {
            settings, value throws(Refusal) in
            guard let number = value.asUInt32 else { throw .type }
            guard range.contains(number) else { throw .range("\(range.lowerBound) to \(range.upperBound)") }
            settings[keyPath: path] = number
        }
    }

    static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ path: WritableKeyPath<Settings, Choice>, _ effect: Effect = .none, _ help: String
    ) -> Knob {
        let names = Choice.allCases.map(\.rawValue).joined(separator: " ")
        return Knob(
            name: name, signature: "s", effect: effect, help: "\(names): \(help)", get: { .string($0[keyPath: path].rawValue) }
        ) { settings, value throws(Refusal) in
            guard let text = value.asString else { throw .type }
            guard let choice = Choice(rawValue: text) else { throw .range("one of \(names)") }
            settings[keyPath: path] = choice
        }
    }

    static func size(_ name: String, _ path: WritableKeyPath<Settings, Size>, _ effect: Effect = .none, _ help: String) -> Knob {
        Knob(name: name, signature: "(uu)", effect: effect, help: help, get: { $0[keyPath: path].value }) {
            settings, value throws(Refusal) in
            settings[keyPath: path] = try Size.taken(from: value)
        }
    }

    /// A value that may be absent; `absent` on the bus says so.
    private static func optional<Number>(
        _ name: String, _ signature: String, _ path: WritableKeyPath<Settings, Number?>, absent: Value, _ effect: Effect = .none,
        _ help: String, get: @escaping (Number) -> Value, set: @escaping (Value) throws(Refusal) -> Number
    ) -> Knob {
        Knob(name: name, signature: signature, effect: effect, help: help, get: { $0[keyPath: path].map(get) ?? absent }) {
            settings, value throws(Refusal) in
            settings[keyPath: path] = value == absent ? nil : try set(value)
        }
    }

    /// All of them, in the order of `--help`.
    static var all: [Knob] { picture + memory + lies + metadata + conversation }

    private static var picture: [Knob] {
        [
            .size("size", \.size, .renegotiate, "pixels of the picture"),
            Knob(
                name: "sizes", signature: "a(uu)", effect: .renegotiate, help: "the size of each stream; those that have none take `size`",
                get: { .array(of: "(uu)", $0.sizes.map(\.value)) }
            ) { settings, value throws(Refusal) in
                guard case .array(of: "(uu)", let elements) = value else { throw .type }
                var sizes: [Size] = []
                for element in elements { sizes.append(try Size.taken(from: element)) }
                settings.sizes = sizes
            },
            .choice("workload", \.workload, .repaint, "what happens on the screen"),
            .number("fps", \.rate, 0...1000, .none, "pictures a second; 0: as fast as buffers come back"),
            .number("fps-min", \.slowestRate, 0...1000, .none, "not 0: the rate of each picture is drawn between this and `fps`"),
            .flag("manual", \.isManual, .none, "pictures come from PushFrames alone"),
            .flag("first-frame", \.sendsFirst, .none, "a new consumer gets a picture at once"),
            .number("resize-every", \.resizeEvery, "not 0: after so many pictures the size changes to `resize-to`, and back"),
            .size("resize-to", \.resizeTo, .none, "see resize-every"),
            .optional(
                "next-size", "(uu)", \.nextSize, absent: Size(0, 0).value, .nextSession,
                "the size that the streams of the next sessions have and keep; 0x0: `size`", get: \.value,
                set: { value throws(Refusal) in try Size.taken(from: value) }),
            .flag("decoy", \.hasDecoy, .nextSession, "a second Video/Source that no portal grants"),
        ]
    }

    private static var memory: [Knob] {
        [
            Knob(
                name: "formats", signature: "as", effect: .renegotiate,
                help: "offered, the best first: \(VideoFormat.allCases.map(\.rawValue).joined(separator: " "))",
                get: { .strings($0.formats.map(\.rawValue)) }
            ) { settings, value throws(Refusal) in
                guard let names = value.asStrings else { throw .type }
                let formats = names.compactMap(VideoFormat.init(rawValue:))
                guard formats.count == names.count, !formats.isEmpty else {
                    throw .range("some of \(VideoFormat.allCases.map(\.rawValue).joined(separator: " "))")
                }
                settings.formats = formats
            },
            .choice("max-rate", \.rateOffer, .renegotiate, "how maxFramerate is offered"),
            .choice("memory", \.memory, .nextSession, "what buffers are made of"),
            .number("buffers", \.buffers, 0...32, .renegotiate, "buffers in the pool; 0: 2 to 8, as the consumer likes"),
            .number("planes", \.planes, 0...4, .renegotiate, "data planes of a buffer; the first has the picture"),
            .number("stride-padding", \.stridePadding, 0...65_536, .renegotiate, "bytes after each row"),
            .number("offset", \.offset, 0...16_777_216, .renegotiate, "bytes before the first row"),
            .flag("sealed", \.isSealed, .renegotiate, "memfds are sealed against another size"),
            Knob(
                name: "unused-byte", signature: "y", effect: .repaint, help: "the x of BGRx, and the alpha of BGRA",
                get: { .byte($0.unusedByte) }
            ) { settings, value throws(Refusal) in
                guard let byte = value.asByte else { throw .type }
                settings.unusedByte = byte
            },
        ]
    }

    private static var lies: [Knob] {
        [
            .optional(
                "chunk-size", "u", \.chunkSize, absent: .uint32(.max), .none, "what each chunk says its size is; 4294967295: the truth",
                get: { .uint32($0) },
                set: { value throws(Refusal) in
                    guard let number = value.asUInt32 else { throw .type }
                    return number
                }),
            .optional(
                "chunk-stride", "i", \.chunkStride, absent: .int32(.min), .none,
                "what each chunk says its stride is; -2147483648: the truth",
                get: { .int32($0) },
                set: { value throws(Refusal) in
                    guard let number = value.asInt32 else { throw .type }
                    return number
                }),
            .flag("short-memory", \.isShort, .renegotiate, "memfds have half of the bytes that the buffer claims"),
            .flag("overwrite", \.overwrites, .none, "buffers that come back are overwritten at once"),
            .number("corrupt-header-every", \.corruptHeaderEvery, "not 0: one header in so many says CORRUPTED, over garbage"),
            .number("corrupt-chunk-every", \.corruptChunkEvery, "not 0: one chunk in so many says CORRUPTED, over garbage"),
            .number("cursor-only-every", \.cursorOnlyEvery, "not 0: one buffer in so many has size 0 and garbage"),
        ]
    }

    private static var metadata: [Knob] {
        [
            .flag("header", \.hasHeader, .renegotiate, "buffers have headers"),
            .choice("pts", \.timeStamps, .none, "time stamps in the headers"),
            .number("sequence-gap-every", \.gapEvery, "not 0: one header in so many leaves out ten sequence numbers"),
            .choice("damage", \.damage, .renegotiate, "damage metadata"),
            .optional(
                "crop", "(iiuu)", \.crop, absent: Rect(0, 0, 0, 0).value, .renegotiate,
                "where the picture is in a bigger buffer, which has `size`; 0,0,0,0: not offered", get: \.value,
                set: { value throws(Refusal) in
                    guard let fields = value.asStructure, fields.count == 4, let x = fields[0].asInt32, let y = fields[1].asInt32,
                        let width = fields[2].asUInt32, let height = fields[3].asUInt32
                    else { throw .type }
                    return Rect(Int(x), Int(y), Int(width), Int(height))
                }),
            Knob(
                name: "transform", signature: "u", effect: .renegotiate,
                help: "0-7 as in SPA: the buffer holds the picture turned, and the metadata say so", get: { .uint32($0.transform.rawValue) }
            ) { settings, value throws(Refusal) in
                guard let number = value.asUInt32 else { throw .type }
                guard let transform = Transform(rawValue: number) else { throw .range("0 to 7") }
                settings.transform = transform
            },
            .flag("transform-meta", \.hasTransform, .renegotiate, "transform metadata are offered"),
            .choice("cursor", \.cursor, .renegotiate, "cursor metadata"),
            .size("cursor-size", \.cursorSize, .renegotiate, "pixels of the cursor's bitmap, and of the room that is offered"),
            .optional(
                "cursor-position", "(ii)", \.cursorPosition, absent: Point(.min, .min).value, .pointer,
                "what it points at, in pixels of the upright picture; -2147483648,-2147483648: it goes over the colour bars", get: \.value,
                set: { value throws(Refusal) in try Point.taken(from: value) }),
            Knob(
                name: "cursor-hotspot", signature: "(ii)", effect: .pointer, help: "the pixel of its bitmap that points, seen upright",
                get: { $0.cursorHotspot.value }
            ) { settings, value throws(Refusal) in
                let point = try Point.taken(from: value)
                guard 0...16_384 ~= point.x, 0...16_384 ~= point.y else { throw .range("0,0 to 16384,16384") }
                settings.cursorHotspot = point
            },
            Knob(
                name: "cursor-shape", signature: "u", effect: .pointer,
                help: "the colour of its triangle: 0 red, 1 green, 2 blue, 3 white, 4 magenta, 5 white at half",
                get: { .uint32($0.cursorShape.rawValue) }
            ) { settings, value throws(Refusal) in
                guard let number = value.asUInt32 else { throw .type }
                guard let shape = PointerShape(rawValue: number) else { throw .range("0 to 5") }
                settings.cursorShape = shape
            },
            .choice("cursor-state", \.cursorState, .pointer, "whether it is seen, where the metadata are `normal`: `away` is id 0"),
            Knob(
                name: "cursor-format", signature: "s", effect: .pointer, help: "of its bitmap: BGRA RGBA ARGB ABGR",
                get: { .string($0.cursorFormat.rawValue) }
            ) { settings, value throws(Refusal) in
                guard let name = value.asString else { throw .type }
                let formats: [VideoFormat] = [.BGRA, .RGBA, .ARGB, .ABGR]
                guard let format = formats.first(where: { $0.rawValue == name }) else { throw .range("one of BGRA RGBA ARGB ABGR") }
                settings.cursorFormat = format
            },
        ]
    }

    private static var conversation: [Knob] {
        [
            .choice("answer", \.answer, .none, "how Start is answered"),
            .choice("answer-create", \.answerCreate, .none, "how CreateSession is answered"),
            .choice("answer-select", \.answerSelect, .none, "how SelectSources is answered"),
            .number("delay", \.delay, "milliseconds that the answer to Start takes"),
            .choice("fault", \.fault, .none, "what is wrong with the answer to Start"),
            .choice("restore", \.persistence, .none, "what is done with a choice to remember"),
            .number("streams", \.streams, 0...20, .nextSession, "streams of a session"),
            Knob(
                name: "omit", signature: "as", effect: .none, help: "of each stream in the answer: id position size source_type",
                get: { .strings($0.omitted.sorted()) }
            ) { settings, value throws(Refusal) in
                guard let names = value.asStrings else { throw .type }
                guard names.allSatisfy(["id", "position", "size", "source_type"].contains) else {
                    throw .range("some of id position size source_type")
                }
                settings.omitted = Set(names)
            },
            .number("source-type", \.sourceType, "source_type in the answer: 1 monitor, 2 window, 4 virtual"),
            Knob(
                name: "position", signature: "(ii)", effect: .none, help: "position of the first stream; each further one is at its right",
                get: { .structure([.int32($0.position.x), .int32($0.position.y)]) }
            ) { settings, value throws(Refusal) in
                guard let fields = value.asStructure, fields.count == 2, let x = fields[0].asInt32, let y = fields[1].asInt32 else {
                    throw .type
                }
                settings.position = (x, y)
            },
            .optional(
                "logical-size", "(uu)", \.logicalSize, absent: Size(0, 0).value, .none, "size in the answer; 0x0: the pixels'",
                get: \.value,
                set: { value throws(Refusal) in try Size.taken(from: value) }),
            Knob(
                name: "stream-id", signature: "s", effect: .none, help: "id in the answer, before the stream's index",
                get: { .string($0.streamID) }
            ) {
                settings, value throws(Refusal) in
                guard let text = value.asString else { throw .type }
                settings.streamID = text
            },
            .number("version", \.version, 0...100, .announce, "the backend's version"),
            .number("source-types", \.sourceTypes, 0...UInt32.max, .announce, "AvailableSourceTypes"),
            .number("cursor-modes", \.cursorModes, 0...UInt32.max, .announce, "AvailableCursorModes"),
            .flag("keep-node", \.keepsNode, .none, "sources outlive their session"),
        ]
    }

    private static func number(_ name: String, _ path: WritableKeyPath<Settings, UInt32>, _ help: String) -> Knob {
        .number(name, path, 0...UInt32.max, .none, help)
    }
}

extension Size {
    var value: Value { .structure([.uint32(UInt32(clamping: width)), .uint32(UInt32(clamping: height))]) }

    static func taken(from value: Value) throws(Knob.Refusal) -> Size {
        guard let fields = value.asStructure, fields.count == 2, let width = fields[0].asUInt32, let height = fields[1].asUInt32 else {
            throw .type
        }
        guard 1...16_384 ~= width, 1...16_384 ~= height else { throw .range("1x1 to 16384x16384") }
        return Size(Int(width), Int(height))
    }
}

extension Point {
    var value: Value { .structure([.int32(Int32(clamping: x)), .int32(Int32(clamping: y))]) }

    static func taken(from value: Value) throws(Knob.Refusal) -> Point {
        guard let fields = value.asStructure, fields.count == 2, let x = fields[0].asInt32, let y = fields[1].asInt32 else { throw .type }
        return Point(Int(x), Int(y))
    }
}

extension Rect {
    var value: Value {
        .structure([
            .int32(Int32(clamping: x)), .int32(Int32(clamping: y)), .uint32(UInt32(clamping: width)), .uint32(UInt32(clamping: height)),
        ])
    }
}
