// SPDX-License-Identifier: MIT

/// Why a broadcast ended, as `BroadcastFinished` says.
struct Reason {
    let name: String
    let detail: String

    /// The end that somebody wished for is no failure.
    var exitCode: ExitCode {
        switch name {
        case "stopped", "ended-by-desktop", "owner-left": .done
        case "agent-exit", "portal-lost", "pipewire-lost": .unavailable
        default: .failed
        }
    }

    /// One sentence, with the reason's own name for whoever looks it up.
    var sentence: String {
        let words =
            switch name {
            case "stopped": "The share has ended"
            case "ended-by-desktop": "The share was ended in the desktop"
            case "source-removed": "What was shared is gone"
            case "portal-lost": "The desktop's portal has gone away"
            case "pipewire-lost": "PipeWire has gone away"
            case "owner-left": "The program that shared has left"
            case "agent-exit": "The agent has ended"
            default: "The share has failed"
            }
        let named = name == "stopped" ? words : "\(words) (\(printable(name)))"
        return detail.isEmpty ? "\(named)." : "\(named): \(printable(detail))"
    }
}
