// SPDX-License-Identifier: MIT
import DBus

/// `vitrinectl switch`.
enum SwitchVerb {
    static let verb = Verb(
        name: "switch", summary: "share another source, without ending the share",
        details: [
            "The desktop's picker opens while the share goes on: what was shared is seen until the first picture of what is chosen now. Readers keep "
                + "their streams; crop and masks stay as they are, in the pixels of the new source.",
            "A picker that is closed without a choice leaves the share as it was, with exit code 3. Ctrl-C only stops waiting, also with exit code "
                + "3: the picker stays, and a choice in it counts.",
        ],
        options: [
            OptionSpec(name: "timeout", value: "S", text: "seconds that the picker may stay open; 60 unless given, 0 is for ever")
        ],
        run: { context, arguments throws(Failure) in
            var options: [String: Value] = ["wait": .bool(true)]
            if let timeout = try arguments.number("timeout") { options["timeout"] = .uint32(timeout) }
            // Another track's source is up to the program that made the track.
            let path = Agent.desktopTrack
            let agent = try Agent(context)
            guard let track = try agent.track(path), track.isActive else {
                throw .ended(.failed, "nothing is shared that could be switched: 'vitrinectl share' starts a share")
            }
            context.out.line("Choose in the desktop's picker what to share instead of: \(printable(track.sharedThing)).")
            do throws(Failure) {
                try agent.call(path, Agent.trackInterface, "SwitchSource", [.options(options)], starting: false, timeout: nil)
            } catch {
                if context.interrupts > 0 { throw .ended(.cancelled, "no longer waiting: what is chosen in the picker still counts") }
                throw error
            }
            if let track = try agent.track(path) {
                context.out.line("Sharing: \(printable(track.sharedThing)).")
                for warning in track.warnings { context.out.line(context.out.paint(warning, .yellow)) }
            }
            return .done
        })
}
