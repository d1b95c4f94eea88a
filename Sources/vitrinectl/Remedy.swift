// SPDX-License-Identifier: MIT

/// What the agent tells programs to call, in the words of this command line.
enum Remedy {
    /// The agent's words, and ours.
    static let table: [(theirs: String, ours: String)] = [
        ("call SetScreenShare(false) first", "'vitrinectl stop' ends it first"),
        ("call StartCapture first", "'vitrinectl share' does both"),
        ("wait for it, or call StopBroadcast", "wait for it, or close it with 'vitrinectl stop'"),
        ("call StopBroadcast first", "'vitrinectl stop' ends the share first"),
        ("call StartBroadcast to choose a source", "'vitrinectl share' starts a share"),
        ("call again, and the bus starts it anew", "try again, and the bus starts it anew"),
    ]

    /// A message of the agent's, with a remedy that can be typed.
    static func inOurWords(_ message: String) -> String {
        for entry in table {
            // Each message has one remedy, and it stands at the end.
            if message.hasSuffix(entry.theirs) { return String(message.dropLast(entry.theirs.count)) + entry.ours }
        }
        return message
    }
}
