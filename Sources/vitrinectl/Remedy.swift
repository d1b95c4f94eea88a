// SPDX-License-Identifier: MIT
import DBus

/// What the agent tells programs to call, in the words of this command line.
enum Remedy {
    /// The agent's words, and ours.
    ///
    /// - Parameter option: what names the track to a verb; "" is the desktop track.
    private static func table(_ option: String) -> [(theirs: String, ours: String)] {
        let stop = "'vitrinectl stop\(option)'"
        return [
            ("call SetScreenShare(false) first", "\(stop) ends it first"),
            ("call StartCapture first", "'vitrinectl share' does both"),
            ("wait for it, or call StopBroadcast", "wait for it, or close it with \(stop)"),
            ("call StopBroadcast first", "\(stop) ends the share first"),
            ("call StartBroadcast to choose a source", "'vitrinectl share' starts a share"),
            ("call again, and the bus starts it anew", "try again, and the bus starts it anew"),
            ("only its owner may: make a track of your own with CreateTrack", "only the program that made it may"),
            ("may do that on its own tracks only: make one with CreateTrack", "may do that on its own tracks only"),
            ("take some back with Disallow first", "name fewer of them with --allow"),
            ("ask for \"session\"", "leave --remember out"),
        ]
    }

    /// Keys of the contract that are called otherwise on the command line.
    private static let options = ["masks": "mask", "persist": "remember", "Layout": "layout"]

    private static func option(_ key: Substring) -> String { "--" + (options[String(key)] ?? String(key)) }

    /// A refusal of the agent's with the options that the person typed in place of the contract's keys, which stand at its beginning.
    static func namingOptions(_ message: String) -> String {
        let busy = " cannot change while the share is under way"
        if let range = message.firstRange(of: busy) {
            let keys = message[..<range.lowerBound].split(separator: ",").map { option($0.drop { $0 == " " }) }
            return keys.joined(separator: ", ") + message[range.lowerBound...]
        }
        guard let key = key(in: message) else { return message }
        return option(key) + message.dropFirst(message.hasPrefix("\"") ? key.count + 2 : key.count)
    }

    /// A refusal of what nobody typed: it comes from the person's configuration. Nil when it is about one of the options given, or about none.
    static func namingConfiguration(_ message: String, given options: [String: Value]) -> String? {
        guard let key = key(in: message), options[String(key)] == nil else { return nil }
        return "vitrine.conf: \(message). \(option(key)) wins over its line"
    }

    /// The contract's key at the beginning of a refusal.
    private static func key(in message: String) -> Substring? {
        let key = message.hasPrefix("\"") ? message.dropFirst().prefix { $0 != "\"" } : message.prefix { $0 != " " }
        return message.hasPrefix("\"\(key)\" ") || key == "persist" ? key : nil
    }

    /// A message of the agent's about a track, with a remedy that can be typed.
    static func inOurWords(_ message: String, about track: ObjectPath = Agent.desktopTrack) -> String {
        let name = track.text.split(separator: "/").last ?? ""
        let option = track == Agent.desktopTrack || !track.text.contains("/track/") ? "" : " --track \(name)"
        for entry in table(option) {
            // Each message has one remedy, and it stands at the end.
            if message.hasSuffix(entry.theirs) { return String(message.dropLast(entry.theirs.count)) + entry.ours }
        }
        return message
    }
}
