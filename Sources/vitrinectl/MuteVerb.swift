// SPDX-License-Identifier: MIT
import DBus

/// `vitrinectl mute`.
enum MuteVerb {
    static let verb = Verb(
        name: "mute", summary: "show a placeholder in place of the screen, or the screen again",
        details: [
            "STATE is on, off or toggle; without it, 'mute' is 'mute on'. Muting does not end the share, and outlives it: a share that "
                + "begins while muted shows the placeholder once readers have had a picture."
        ],
        operands: [OperandSpec(name: "STATE", isRequired: false)],
        options: [.track],
        run: { context, arguments throws(Failure) in
            let word = arguments.operands.first ?? "on"
            guard ["on", "off", "toggle"].contains(word) else {
                throw .usage(.badValue(word, of: "STATE", expected: "one of on, off, toggle", verb: arguments.verb))
            }
            let path = try arguments.trackPath()
            let agent = try Agent(context)
            var mutes = word == "on"
            if word == "toggle" { mutes = !(try agent.track(path, starting: true)?.isMuted ?? false) }
            try agent.call(path, Agent.properties, "Set", [.string(Agent.trackInterface.text), .string("Muted"), .variant(.bool(mutes))])
            context.out.line(mutes ? "Muted: readers get a placeholder." : "Not muted.")
            return .done
        })
}
