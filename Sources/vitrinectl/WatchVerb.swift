// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop

/// `vitrinectl watch`.
enum WatchVerb {
    static let verb = Verb(
        name: "watch", summary: "show what is shared, as others get it, in a player",
        details: [
            "The player is mpv, ffplay, gst-launch-1.0 or gst-play-1.0, the first that is there, or what --player says. It opens with the first "
                + "picture: when nothing is shared yet, 'watch' waits. It goes on when the share is muted, stopped and started again, with a "
                + "placeholder picture meanwhile, and ends when the player is closed, at Ctrl-C, or when there is no more to come.",
            "With the operand - there is no player: the WebM stream goes to standard output, for any other program.",
            "A player on the monitor that is shared shows itself in itself; a word on standard error warns of it. The players above show the picture "
                + "alone: one that is heard on this machine would be part of the system's sound that is shared. Tell so the one of --player or behind - "
                + "too, where sound is shared.",
        ],
        operands: [OperandSpec(name: "-", isRequired: false)],
        options: [
            OptionSpec(
                name: "player", value: "CMD",
                text: "play with this command of the shell, which gets the WebM stream on its standard input: 'mpv --mute -'"),
            .track,
        ] + StreamOptions.specs,
        run: { context, arguments throws(Failure) in
            let operand = arguments.operands.first
            if let operand, operand != "-" {
                throw .usage(.wrong("'\(printable(operand))' is no place to show a stream: only - can be named", verb: arguments.verb))
            }
            let shell = arguments.string("player")
            if let shell, shell.allSatisfy(\.isWhitespace) {
                throw .usage(.badValue(shell, of: "--player", expected: "a command, such as 'mpv -'", verb: arguments.verb))
            }
            if shell != nil, operand != nil { throw .usage(.wrong("--player and - exclude each other", verb: arguments.verb)) }
            let options = try StreamOptions.read(arguments, .webm, placeholder: "picture")
            let path = try arguments.trackPath()
            if operand != nil {
                let target = try RecordTarget("-", keepsExisting: true)
                return try Watching(try Reading(try Agent(context), path, options), context).write(to: target)
            }
            guard let command = shell.map(PlayerCommand.init(shell:)) ?? PlayerCommand(in: Environment.value(of: "PATH") ?? "") else {
                throw .ended(
                    .unavailable,
                    "there is no player: install mpv (apt install mpv), ffplay (in ffmpeg) or gst-launch-1.0 (in gstreamer1.0-tools); or "
                        + "name another with --player, or send the stream to one with 'vitrinectl watch - | PLAYER'")
            }
            return try Watching(try Reading(try Agent(context), path, options), context).show(in: command)
        })
}

/// One stream that is shown, from the subscription to the end of the player. Its words go to standard error.
final class Watching {
    private let reading: Reading
    private let context: Context
    private var err: Output { context.err }
    private var hasWarned = false

    init(_ reading: Reading, _ context: Context) {
        (self.reading, self.context) = (reading, context)
        reading.onEvent = { [unowned self] in take($0) }
        warnOfMonitor()
    }

    private func take(_ event: TrackEvent) {
        switch event {
        case .changed: warnOfMonitor()
        case .finished(let reason, let detail):
            let end = Reason(name: reason, detail: detail)
            err.line(end.sentence)
            if end.name != "agent-exit" { err.line("The next share will be shown here. Ctrl-C ends the waiting.") }
        case .presetTooHigh, .started, .startFailed, .agentCame, .agentLeft: break
        }
    }

    /// Once for each monitor that comes to be shared.
    private func warnOfMonitor() {
        guard let sources = reading.track?.sources, sources.contains(where: \.isMonitor) else {
            hasWarned = false
            return
        }
        if !hasWarned { err.line("A monitor is shared: a player on it shows itself in itself. Move it elsewhere, or share a window.") }
        hasWarned = true
    }

    // MARK: - Into a player

    func show(in command: PlayerCommand) throws(Failure) -> ExitCode {
        var (hasBegun, isOver) = (false, false)
        var watch: Watch?
        watch = context.loop.watch(reading.stream.raw, for: .read) { readiness in
            if readiness.contains(.read) { hasBegun = true } else { isOver = true }
            watch?.cancel()
        }
        defer { watch?.cancel() }
        try reading.awaitPicture(until: { hasBegun }, orOver: { isOver }, limit: nil, nothing: "nothing was shown")
        let player: Player
        do throws(Errno) {
            player = try Player.start(command, showing: reading.stream, on: context.loop)
        } catch {
            throw .ended(.unavailable, "cannot run \(printable(command.name)): \(error)")
        }
        err.line("Showing it in \(printable(command.name)). Ctrl-C ends it.")
        // All writers have gone: the player gets to the end of what is left.
        watch = context.loop.watch(reading.stream.raw, for: []) { _ in
            isOver = true
            watch?.cancel()
        }
        let outcome = context.wait(until: { player.end != nil || isOver })
        let wasAsked = context.interrupts > 0
        if player.end == nil { end(player, isOver: isOver) }
        if outcome == .disconnected { throw Failure(.disconnected) }
        if isOver, !wasAsked { return reading.explainEnd(agentGone: "The agent has gone away.") }
        if wasAsked { return .done }
        return try judge(player)
    }

    /// Lets the player come to the end of the stream, and helps where it does not.
    private func end(_ player: Player, isOver: Bool) {
        // Whoever else holds the stream, such as a program that a shell runs, gets its end too.
        if !isOver { reading.tell("Unsubscribe") }
        _ = context.wait(until: { player.end != nil }, timeout: isOver ? .seconds(10) : .seconds(2))
        if player.end == nil { player.terminate() }
        _ = context.wait(until: { player.end != nil }, timeout: .seconds(3))
        guard player.end == nil else { return }
        player.kill()
        _ = context.wait(until: { player.end != nil }, timeout: .seconds(1))
    }

    private func judge(_ player: Player) throws(Failure) -> ExitCode {
        let name = printable(player.name)
        switch player.end {
        case .exited(0), nil: return .done
        // What a shell says of a command that is not there, or cannot be run.
        case .exited(126), .exited(127): throw .ended(.unavailable, "the player cannot be run: \(name)")
        case .exited(let code): throw .ended(.failed, "the player ended with exit code \(code): \(name)")
        case .killed(let number): throw .ended(.failed, "the player was ended by signal \(number): \(name)")
        }
    }

    // MARK: - To standard output

    func write(to target: RecordTarget) throws(Failure) -> ExitCode {
        let pump = try Pump.start(reading.stream, into: target, isSeekable: false, on: context.loop)
        defer { pump.finish() }
        try reading.awaitPicture(until: { pump.began != nil }, orOver: { pump.isOver }, limit: nil, nothing: "nothing was sent")
        switch context.wait(until: { pump.isOver }) {
        case .held: break
        case .disconnected: throw Failure(.disconnected)
        case .interrupted, .timedOut: return .done
        }
        guard let failure = pump.failure else { return reading.explainEnd(agentGone: "The agent has gone away.") }
        // Whoever reads has seen enough.
        if case .write(let error) = failure, error.code == EPIPE { return .done }
        throw failure.failure(target)
    }
}
