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
        ]
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
