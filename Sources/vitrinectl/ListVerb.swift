// SPDX-License-Identifier: MIT
import DBus

/// `vitrinectl list`.
enum ListVerb {
    static let verb = Verb(
        name: "list", summary: "list the tracks",
        details: [
            "The desktop track is there as long as the agent runs; each other one was made by a program. The agent is not started for it.",
            "With --json each line is one object: track, state, owner (identity), pid, title, readers, muted.",
        ],
        options: [.json],
        run: { context, arguments throws(Failure) in
            let objects = try Agent(context).objects()
            let tracks = Self.tracks(in: objects ?? [:])
            if arguments.has("json") {
                context.out.lines(tracks.map { Self.json($0).text })
            } else if tracks.isEmpty {
                context.out.line(objects == nil ? "No tracks: the agent does not run." : "No tracks.")
            } else {
                context.out.lines(Self.table(tracks).lines)
            }
            return .done
        })

    /// The tracks among the agent's objects: the desktop's first, the others in the order of their numbers.
    static func tracks(in objects: [ObjectPath: [String: [String: Value]]]) -> [Track] {
        let tracks = objects.compactMap { path, interfaces in
            interfaces[Agent.trackInterface.text].map { Track(path: path, properties: $0) }
        }
        return tracks.sorted { left, right in
            if left.path == Agent.desktopTrack || right.path == Agent.desktopTrack { return left.path == Agent.desktopTrack }
            guard let (first, second) = UInt64(left.name).flatMap({ first in UInt64(right.name).map { (first, $0) } }) else {
                return left.path < right.path
            }
            return first < second
        }
    }

    static func table(_ tracks: [Track]) -> TextTable {
        var table = TextTable(headings: ["TRACK", "STATE", "READERS", "OWNER", "TITLE", "PATH"], numeric: [2])
        for track in tracks {
            let state = track.state + (track.isMuted ? " (muted)" : "") + (track.isPaused ? " (paused)" : "")
            let owner = track.path == Agent.desktopTrack ? "-" : printable(track.ownerIdentity) + (track.ownerProcess == 0 ? " (left)" : "")
            let title = track.title.isEmpty ? "-" : printable(track.title)
            table.add([track.name, state, "\(track.subscriptions.count)", owner, title, track.path.text])
        }
        return table
    }

    private static func json(_ track: Track) -> JSON {
        .members([
            "track": .string(track.path.text),
            "state": .string(track.state),
            "owner": .string(track.ownerIdentity),
            "pid": track.ownerProcess == 0 ? .null : .unsigned(UInt64(track.ownerProcess)),
            "title": .string(track.title),
            "readers": .unsigned(UInt64(track.subscriptions.count)),
            "muted": .bool(track.isMuted),
        ])
    }
}
