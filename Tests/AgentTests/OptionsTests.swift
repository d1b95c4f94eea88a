// SPDX-License-Identifier: MIT
import DBus
import Frames
import Sound
import Testing

@testable import Agent

@Suite struct OptionsTests {
    private func track(_ given: [String: Value]) throws -> TrackOptions {
        var options = TrackOptions()
        var reader = OptionReader(given)
        try options.apply(&reader)
        try reader.finish()
        return options
    }

    @Test func readsEveryOption() throws {
        let options = try track([
            "preset": .string("h720p"), "max-size": .structure([.uint32(640), .uint32(480)]), "fps": .uint32(12),
            "bitrate": .uint32(900_000),
            "sources": .uint32(2), "cursor": .string("hidden"), "title": .string("demo"), "allow": .strings(["app:org.x.Y", ":1.4"]),
            "detached": .bool(true), "multiple": .bool(true), "crop": .structure([.int32(2), .int32(4), .uint32(6), .uint32(8)]),
            "masks": .array(of: "(iiuu)", [Self.region, Self.region]),
        ])
        #expect(options.preset.name == "h720p")
        #expect(options.effectiveMaxSize == PixelSize(width: 640, height: 480))
        #expect(options.effectiveFrameRate == 12 && options.effectiveBitrate == 900_000)
        #expect(options.sources == 2 && options.cursor == .hidden && options.title == "demo")
        #expect(options.isDetached && options.isMultiple)
        #expect(options.allow == ["app:org.x.Y", ":1.4"])
        #expect(options.view.crop == PixelRect(x: 2, y: 4, width: 6, height: 8))
        #expect(options.view.masks == Array(repeating: PixelRect(x: -1, y: 2, width: 3, height: 4), count: 2))
    }

    @Test func showsAllOfTheSourceUnlessItIsToldOtherwise() throws {
        #expect(TrackOptions().view.crop == nil && TrackOptions().view.masks.isEmpty)
        #expect(try track(["crop": .structure([.int32(0), .int32(0), .uint32(0), .uint32(0)])]).view.crop == nil)
        #expect(try track(["crop": .structure([.int32(5), .int32(0), .uint32(0), .uint32(0)])]).view.crop?.isEmpty == true)
    }

    @Test func boundsTheListOfMasks() throws {
        let masks = Array(repeating: Self.region, count: TrackOptions.greatestMaskCount)
        #expect(try track(["masks": .array(of: "(iiuu)", masks)]).masks.count == masks.count)
        let error = failure { _ = try track(["masks": .array(of: "(iiuu)", masks + [Self.region])]) }
        #expect(error?.name == .limitExceeded && error?.message.contains("\"masks\"") == true)
    }

    @Test func explicitOptionsWinOverThePresetUntilItIsWritten() throws {
        var options = try track(["fps": .uint32(5), "preset": .string("h360p")])
        #expect(options.effectiveFrameRate == 5 && options.effectiveBitrate == 500_000)
        options.setPreset(try Preset.named("h480p"))
        #expect(options.effectiveFrameRate == 20)
    }

    private static let wrong: [(String, Value)] = [
        ("preset", .string("h999p")), ("preset", .uint32(3)), ("max-size", .string("1x1")), ("max-size", .structure([.uint32(1)])),
        ("max-size", .structure([.uint32(20_000), .uint32(1)])), ("fps", .int32(3)), ("fps", .uint32(1_001)), ("bitrate", .uint32(1)),
        ("sources", .uint32(0)), ("sources", .uint32(8)), ("cursor", .string("fancy")),
        ("title", .string(String(repeating: "x", count: 65))),
        ("title", .string("a\u{7}b")), ("allow", .strings(["everybody"])), ("allow", .strings(["exe:relative"])),
        ("allow", .strings([":"])),
        ("allow", .string("app:x")), ("detached", .string("yes")), ("multiple", .uint32(1)), ("audio", .string("loud")),
        ("persist", .string("always")), ("restore-key", .bool(true)), ("crop", .structure([.uint32(0)])), ("masks", .strings(["x"])),
        ("crop", .structure([.int32(-1), .int32(0), .uint32(3), .uint32(4)])),
        ("excluded-windows", .strings(["x"])), ("colour", .string("red")),
    ]

    @Test(arguments: wrong) func refusesWhatIsWrongAndNamesTheKey(key: String, value: Value) {
        let error = failure { try track([key: value]) }
        #expect(error?.name == .invalidArgs)
        #expect(error?.message.contains("\"\(key)\"") == true, "\(error?.message ?? "")")
    }

    private static let region = Value.structure([.int32(-1), .int32(2), .uint32(3), .uint32(4)])
    private static let unbuilt: [(String, Value, Value)] = [
        ("excluded-windows", .array(of: "u", [.uint32(7)]), .array(of: "u", []))
    ]

    @Test(arguments: unbuilt) func saysWhatIsNotBuiltUnlessItIsTheDefault(key: String, asked: Value, standard: Value) throws {
        let error = failure { try track([key: asked]) }
        #expect(error?.name == .unsupported)
        #expect(error?.message.contains(key) == true)
        _ = try track([key: standard])
    }

    @Test(arguments: SoundMix.allCases) func readsWhichSoundIsWanted(mix: SoundMix) throws {
        let options = try track(["audio": .string(mix.rawValue)])
        #expect(options.audio == mix)
        #expect(options.asValue.asOptions?["audio"] == .string(mix.rawValue))
    }

    @Test func aNameNeedsSomethingToRemember() throws {
        let error = failure { try track(["restore-key": .string("mine")]) }
        #expect(error?.name == .invalidArgs && error?.message.contains("restore-key") == true)
        #expect(try track(["restore-key": .string("mine"), "persist": .string("session")]).restoreKey == "mine")
        #expect(try track(["restore-key": .string("")]).persistence == .none)
    }

    @Test func boundsTextsByWhatTheyTakeAndNotByWhatIsSeen() throws {
        // One character, as people count.
        let stacked = "a" + String(repeating: "\u{301}", count: 64)
        let wrong: [[String: Value]] = [
            ["title": .string(stacked)], ["title": .string("a\u{2028}b")],
            ["allow": .strings(["exe:/" + String(repeating: "x", count: 1_020)])],
        ]
        for given in wrong { #expect(failure { _ = try track(given) }?.name == .invalidArgs) }
        _ = try track(["title": .string(String(repeating: "\u{e9}", count: 64))])
        #expect(try track(["title": .string("\u{1f469}\u{200d}\u{1f4bb}")]).title.count == 1)
    }

    @Test func boundsTheListOfThoseWhoMaySubscribe() throws {
        let names = (0...TrackOptions.greatestAllowCount).map { "exe:/\($0)" }
        #expect(try track(["allow": .strings(names.dropLast())]).allow.count == TrackOptions.greatestAllowCount)
        let error = failure { _ = try track(["allow": .strings(names)]) }
        #expect(error?.name == .limitExceeded)
    }

    @Test func readsStartOptions() throws {
        var reader = OptionReader(["wait": .bool(true), "timeout": .uint32(0), "parent-window": .string("x11:1a")])
        let start = try StartOptions(&reader)
        #expect(start.waits && start.timeout == 0 && start.parentWindow == "x11:1a")
        #expect(throws: AgentError.self) {
            var reader = OptionReader(["parent-window": .string("win32:1")])
            _ = try StartOptions(&reader)
        }
    }

    @Test func readsSubscribeOptions() throws {
        let options = try SubscribeOptions(["format": .string("y4m"), "placeholder": .string("hold"), "fps": .uint32(3)])
        #expect(options.format == .y4m && options.codecName == "" && options.placeholder == .hold && options.frameRate == 3)
        #expect(try SubscribeOptions([:]).codecName == "vp8")
        let ivf = try SubscribeOptions(["format": .string("ivf"), "codec": .string("vp9")])
        #expect(ivf.format == .ivf && ivf.codecName == "vp9")
        #expect(try SubscribeOptions(["format": .string("y4m"), "codec": .string("vp8")]).codecName == "")
    }

    @Test(arguments: [
        ("format", Value.string("avi"), "InvalidArgs"), ("codec", .string("av1"), "InvalidArgs"),
        ("placeholder", .string("black"), "InvalidArgs"),
        ("sound", .bool(true), "InvalidArgs"),
    ])
    func refusesSubscribeOptions(key: String, value: Value, name: String) {
        let error = failure { try SubscribeOptions([key: value]) }
        #expect(error?.name.rawValue == name)
        #expect(error?.message.contains(key) == true)
    }

    @Test func aRawFormatHasNoCodec() {
        let error = failure { try SubscribeOptions(["format": .string("y4m"), "codec": .string("vp9")]) }
        #expect(error?.name == .invalidArgs)
        #expect(error?.message.contains("\"codec\"") == true && error?.message.contains("y4m") == true)
    }

    @Test func presetsAreThoseOfTheContract() throws {
        #expect(Preset.all.map(\.name) == ["h360p", "h480p", "h720p", "h1080p", "h1440p", "h2160p", "native"])
        #expect(try Preset.standard == Preset.named("h1080p"))
    }
}
