// SPDX-License-Identifier: MIT
import DBus

/// `vitrinectl mute`.
enum MuteVerb {
    static let verb = Verb(
        name: "mute", summary: "show a placeholder in place of the screen, or the screen again",
        details: [
            "STATE is on, off or toggle; without it, 'mute' is 'mute on'. Muting does not end the share, and outlives it: a share that "
                + "begins while muted shows the placeholder once readers have had a picture.",
            "A program's own track (--track) may be muted by everybody, but only that program can show it again.",
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
            do throws(Failure) {
                try agent.call(
                    path, Agent.properties, "Set", [.string(Agent.trackInterface.text), .string("Muted"), .variant(.bool(mutes))])
            } catch {
                guard !mutes, error.code == .failed, let track = try agent.track(path), track.isMuted else { throw error }
                throw .ended(.failed, "\(ownersPart(track)). \(error.message)")
            }
            context.out.line(mutes ? "Muted: readers get a placeholder." : "Not muted.")
            if mutes, path != Agent.desktopTrack, let track = try agent.track(path) { context.out.line("\(ownersPart(track)).") }
            return .done
        })

    /// What is for the owner of a track alone, and what others can do in its place.
    private static func ownersPart(_ track: Track) -> String {
        "Only the program that made \(track.introduction) can show it again; 'vitrinectl stop --track \(track.name)' ends the share"
    }
}
