// SPDX-License-Identifier: MIT

/// `vitrinectl stop`.
enum StopVerb {
    static let verb = Verb(
        name: "stop", summary: "end the share, or close the open picker",
        details: [
            "It is no error when nothing is shared. The desktop's own indicator may go out a moment later.",
            "Only the desktop track is ended; other programs' tracks are theirs. The agent is not started for it.",
        ],
        run: { context, _ throws(Failure) in
            let agent = try Agent(context)
            guard let track = try agent.track(Agent.desktopTrack) else {
                context.out.line("Nothing is shared: the agent does not run.")
                return .done
            }
            try agent.setScreenShare(false)
            switch track.state {
            case "active": context.out.line("The share has ended.")
            case "choosing": context.out.line("The picker was closed.")
            default: context.out.line("Nothing is shared.")
            }
            return .done
        })
}
