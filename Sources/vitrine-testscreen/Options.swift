// SPDX-License-Identifier: MIT
import DBus

/// What the command line asks for.
struct Options {
    /// What comes of reading a command line.
    enum Outcome {
        case run(Options)
        case help
        case version
        /// What is wrong with it.
        case wrong(String)
    }

    var settings = Settings()
    var backendName: BusName = "org.freedesktop.impl.portal.desktop.vitrinetest"
    /// Whether sources are there for a portal's sessions; else they are there from the start.
    var isBackend = true
    var isVerbose = false
    /// So many pictures go to standard output instead of PipeWire.
    var pictures: UInt32?

    /// Reads the arguments, without the program's name.
    static func read(_ arguments: [String]) -> Outcome {
        var options = Options()
        var left = arguments[...]
        while let argument = left.popFirst() {
            guard argument.hasPrefix("--") else { return .wrong("\(argument): options begin with --") }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0]
            switch name {
            case "help": return .help
            case "version": return .version
            case "no-portal": options.isBackend = false
            case "verbose": options.isVerbose = true
            case "still": options.settings.workload = .still
            default:
                let knob = Knob.all.first { $0.name == name }
                guard knob != nil || ["name", "format", "pictures"].contains(name) else { return .wrong("--\(name): no such option") }
                // A flag takes its value only after `=`.
                guard let value = parts.count > 1 ? parts[1] : knob?.signature == "b" ? "true" : left.popFirst() else {
                    return .wrong("--\(name) needs a value")
                }
                if let complaint = options.set(name, value) { return .wrong(complaint) }
            }
        }
        return .run(options)
    }

    /// Takes one option; returns what is wrong with it.
    private mutating func set(_ name: String, _ text: String) -> String? {
        switch name {
        case "name":
            guard let busName = BusName(text), !busName.isUnique else { return "--name \(text): no bus name" }
            backendName = busName
            return nil
        case "format": return set("formats", text)
        case "pictures":
            pictures = UInt32(text)
            return pictures == nil ? "--pictures \(text): expected NUMBER" : nil
        case "answer" where text.hasPrefix("late:"): return set("delay", String(text.dropFirst(5)))
        default: break
        }
        guard let knob = Knob.all.first(where: { $0.name == name }) else { return "--\(name): no such option" }
        guard let value = Options.value(text, knob.signature) else {
            return "--\(name) \(text): expected \(Options.shape(knob.signature))"
        }
        do throws(Knob.Refusal) {
            try knob.set(&settings, value)
            return nil
        } catch .range(let allowed) {
            return "--\(name) \(text): expected \(allowed)"
        } catch {
            return "--\(name) \(text): expected \(Options.shape(knob.signature))"
        }
    }

    /// A value in the form of the command line; nil when it is none of that type.
    private static func value(_ text: String, _ signature: String) -> Value? {
        let words = text.split(separator: ",").map(String.init)
        func pair(_ text: String) -> Value? {
            let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { UInt32($0) }
            guard sides.count == 2, let width = sides[0], let height = sides[1] else { return nil }
            return .structure([.uint32(width), .uint32(height)])
        }
        switch signature {
        case "b": return ["true": true, "yes": true, "false": false, "no": false][text].map(Value.bool)
        case "y": return UInt8(text).map(Value.byte)
        case "u": return UInt32(text).map(Value.uint32)
        case "i": return Int32(text).map(Value.int32)
        case "s": return .string(text)
        case "as": return .strings(words)
        case "(uu)": return pair(text)
        case "a(uu)":
            let pairs = words.compactMap(pair)
            return pairs.count == words.count ? .array(of: "(uu)", pairs) : nil
        case "(ii)":
            let numbers = words.compactMap { Int32($0) }
            return numbers.count == 2 && words.count == 2 ? .structure(numbers.map(Value.int32)) : nil
        case "(iiuu)":
            guard words.count == 4, let x = Int32(words[0]), let y = Int32(words[1]), let width = UInt32(words[2]),
                let height = UInt32(words[3])
            else { return nil }
            return .structure([.int32(x), .int32(y), .uint32(width), .uint32(height)])
        default: return nil
        }
    }

    private static func shape(_ signature: String) -> String {
        switch signature {
        case "b": "true or false"
        case "s": "TEXT"
        case "as": "A,B,..."
        case "(uu)": "WxH"
        case "a(uu)": "WxH,WxH,..."
        case "(ii)": "X,Y"
        case "(iiuu)": "X,Y,W,H"
        default: "NUMBER"
        }
    }

    static var help: String {
        let knobs = Knob.all.map { knob in
            let start = "  --\(knob.name)\(knob.signature == "b" ? "[=false]" : " " + shape(knob.signature))"
            return "\(start)\n        \(knob.help)"
        }
        return """
            Usage: vitrine-testscreen [OPTION...]

            A screen for machines that have none: a backend of xdg-desktop-portal whose screens are moving, numbered pictures.
            By default it shows 1280x720 BGRx at 30 pictures a second, and grants every request at once.

              --name BUSNAME
                    the backend's name on the session bus, by default org.freedesktop.impl.portal.desktop.vitrinetest
              --no-portal
                    no backend: the sources are there from the start, and their nodes are printed
              --still
                    the same as --workload still
              --format NAME
                    the same as --formats
              --answer late:MS
                    the same as --delay MS
              --pictures NUMBER
                    neither backend nor source: writes the first so many pictures to standard output, pixel after pixel without padding
              --verbose
                    what happens, in detail
              --help, --version

            Each of these is a key of Configure on the bus, too (org.vitrine.TestScreen1):

            \(knobs.joined(separator: "\n"))

            Exit status: 0 after SIGTERM or SIGINT, 1 when the bus or PipeWire is missing or gone, 2 for a wrong command line.

            """
    }
}
