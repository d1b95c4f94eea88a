// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Indicator
import Loop

/// What the person has set for shares of the desktop track: `vitrine.conf`, the machine's first, then the user's own.
///
/// A line is `key = value`, with the contract's names of options. One that is wrong is reported with its number, and left out.
///
/// Spec: vitrine.conf(5); [XDG Base Directory](https://specifications.freedesktop.org/basedir-spec/latest/).
struct Configuration {
    /// What the desktop track starts with.
    private(set) var options = TrackOptions()
    /// When people are shown that something is shared.
    private(set) var indicator = Indicator.Mode.auto
    /// What is wrong, each with its file and line.
    private(set) var complaints: [String] = []

    /// The file in each of the places where one may be, the most important last.
    static var paths: [String] {
        let machine = (Environment.value(of: "XDG_CONFIG_DIRS").flatMap { $0.isEmpty ? nil : $0 } ?? "/etc/xdg").split(separator: ":")
            .reversed()
        let user = Environment.value(of: "XDG_CONFIG_HOME") ?? Environment.value(of: "HOME").map { $0 + "/.config" }
        return (machine.map(String.init) + [user].compactMap { $0 }).filter { $0.hasPrefix("/") }.map { $0 + "/vitrine/vitrine.conf" }
    }

    /// Reads what there is.
    static func read(_ paths: [String] = Configuration.paths) -> Configuration {
        var configuration = Configuration()
        for path in paths {
            do throws(Errno) {
                configuration.add(String(decoding: try Files.contents(of: path), as: UTF8.self), from: path)
            } catch {
                if error.code != ENOENT && error.code != ENOTDIR { configuration.complaints.append("\(path): \(error)") }
            }
        }
        return configuration
    }

    /// What a file may set, as its manual has it.
    static let keys = [
        "preset", "max-size", "fps", "bitrate", "sources", "multiple", "cursor", "audio", "title", "allow", "persist", "restore-key",
        "indicator",
    ]

    /// Takes the lines of one file in.
    ///
    /// The order of lines means nothing: a preset does not undo what a line before it says.
    mutating func add(_ text: String, from path: String) {
        var allow: [String] = []
        var wrong: [Int: String] = [:]
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(Configuration.trimmed)
        for turn in Turn.allCases {
            for (index, line) in lines.enumerated() where !line.isEmpty && !line.hasPrefix("#") {
                do throws(AgentError) {
                    let (key, value) = try Configuration.parse(line)
                    guard Turn(key) == turn else { continue }
                    if key == "allow" {
                        // The lines of a file add up.
                        let more = allow + Configuration.words(value)
                        try take(key, .strings(more))
                        allow = more
                    } else {
                        try take(key, try Configuration.typed(key, value))
                    }
                } catch {
                    wrong[index] = "\(path):\(index + 1): \"\(line)\" is left out: \(error.message)"
                }
            }
        }
        complaints += wrong.sorted { $0.key < $1.key }.map(\.value)
    }

    /// When a line is taken: a preset sets what other lines may set otherwise, and a name needs something to name.
    private enum Turn: CaseIterable {
        case preset, others, restoreKey

        init(_ key: String) { self = key == "preset" ? .preset : key == "restore-key" ? .restoreKey : .others }
    }

    private mutating func take(_ key: String, _ value: Value) throws(AgentError) {
        if key == "indicator" {
            guard let mode = Indicator.Mode(rawValue: value.asString ?? "") else {
                throw .invalid(key, "is \(value.text); there are auto, always, never")
            }
            indicator = mode
            return
        }
        var reader = OptionReader([key: value])
        var changed = options
        try changed.apply(&reader)
        try reader.finish()
        options = changed
    }

    private static func parse(_ line: String) throws(AgentError) -> (key: String, value: String) {
        guard let equals = line.firstIndex(of: "=") else { throw AgentError(.invalidArgs, "it is not of the form key = value") }
        let key = trimmed(line[..<equals])
        guard keys.contains(key) else {
            throw AgentError(.invalidArgs, "there is no key \"\(key)\"; there are \(keys.joined(separator: ", "))")
        }
        return (key, trimmed(line[line.index(after: equals)...]))
    }

    /// The value as the option wants it.
    private static func typed(_ key: String, _ text: String) throws(AgentError) -> Value {
        switch key {
        case "fps", "bitrate":
            guard let number = number(text) else {
                throw .invalid(key, "is \"\(text)\"; it is a whole number, such as \(key == "fps" ? "15" : "4000000, 4000k or 4M")")
            }
            return .uint32(number)
        case "max-size":
            let sides = text.split(separator: "x").map { UInt32($0) }
            guard sides.count == 2, let width = sides[0], let height = sides[1] else {
                throw .invalid(key, "is \"\(text)\"; it is a width and a height in pixels, such as 1280x720")
            }
            return .structure([.uint32(width), .uint32(height)])
        case "sources":
            var bits: UInt32 = 0
            for word in words(text) {
                guard let place = ["monitor", "window", "virtual"].firstIndex(of: word) else {
                    throw .invalid(key, "names \"\(word)\"; there are monitor, window, virtual")
                }
                bits |= 1 << UInt32(place)
            }
            if bits == 0 { throw .invalid(key, "names nothing; there are monitor, window, virtual") }
            return .uint32(bits)
        case "multiple":
            guard let flag = ["yes": true, "no": false][text] else { throw .invalid(key, "is \"\(text)\"; it is yes or no") }
            return .bool(flag)
        default: return .string(text)
        }
    }

    private static func number(_ text: String) -> UInt32? {
        let (digits, factor): (Substring, UInt32) =
            text.hasSuffix("k") ? (text.dropLast(), 1_000) : text.hasSuffix("M") ? (text.dropLast(), 1_000_000) : (text[...], 1)
        guard let number = UInt32(digits) else { return nil }
        let (product, overflows) = number.multipliedReportingOverflow(by: factor)
        return overflows ? nil : product
    }

    private static func words(_ text: String) -> [String] { text.split { ", \t".contains($0) }.map(String.init) }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let isSpace = { (character: Character) in character == " " || character == "\t" || character == "\r" }
        let front = text.drop(while: isSpace)
        guard let last = front.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(front[...last])
    }
}
