// SPDX-License-Identifier: MIT
import DBus

/// `vitrinectl toggle`.
enum ToggleVerb {
    static let verb = Verb(
        name: "toggle", summary: "start the share when there is none, end it when there is one",
        details: [
            "For a key of the keyboard. Starting opens the desktop's picker and returns when frames flow, with exit code 3 when the picker "
                + "was closed; the share then goes on. While the picker is open, 'toggle' closes it."
        ],
        options: ShareOptions.specs,
        run: { context, arguments throws(Failure) in
            var options = try ShareOptions.read(arguments)
            options["wait"] = .bool(true)
            let layout = try ShareOptions.layout(arguments)
            let agent = try Agent(context)
            let state = try agent.track(Agent.desktopTrack, starting: true)?.state
            guard state == "active" || state == "choosing" else {
                return try Share(agent).run(options, layout: layout, detaches: true)
            }
            try agent.setScreenShare(false)
            context.out.line(state == "active" ? "The share has ended." : "The picker was closed.")
            return .done
        })
}
