// SPDX-License-Identifier: MIT
import DBus

/// `vitrinectl stop`.
enum StopVerb {
    static let verb = Verb(
        name: "stop", summary: "end the share, or close the open picker",
        details: [
            "It is no error when nothing is shared. The desktop's own indicator may go out a moment later.",
            "Only the desktop track is ended. What programs share on tracks of their own is named, and ended with --track; such a program goes "
                + "on listening, and may be shared with again. The agent is not started for it.",
        ],
        options: [.track],
        run: { context, arguments throws(Failure) in
            let path = try arguments.trackPath()
            let agent = try Agent(context)
            guard let track = try agent.track(path) else {
                context.out.line("Nothing is shared: the agent does not run.")
                return .done
            }
            if path == Agent.desktopTrack {
                try agent.setScreenShare(false)
            } else {
                try agent.call(path, Agent.trackInterface, "StopBroadcast", starting: false)
            }
            switch track.state {
            case "active": context.out.line("The share has ended.")
            case "choosing": context.out.line("The picker was closed.")
            default: try sayNothing(of: track, agent, context.out)
            }
            return .done
        })

    /// Nothing was to end, but perhaps elsewhere, where the person meant.
    private static func sayNothing(of track: Track, _ agent: Agent, _ out: Output) throws(Failure) {
        let others = try agent.programsTracks().filter { $0.path != track.path && ["active", "choosing"].contains($0.state) }
        if track.path != Agent.desktopTrack || !others.isEmpty {
            out.line("Nothing is shared on \(track.introduction).")
        } else {
            out.line("Nothing is shared.")
        }
        for other in others {
            let state = other.isActive ? "shares: \(printable(other.sharedThing))" : "has the picker open"
            out.line("But \(other.introduction) \(state). 'vitrinectl stop --track \(other.name)' ends that.")
        }
    }
}
