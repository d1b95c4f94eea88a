// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop

/// `vitrinectl record`.
enum RecordVerb {
    static let verb = Verb(
        name: "record", summary: "write what is shared to a file",
        details: [
            "Recording begins with the first picture: when nothing is shared yet, it waits. It ends after --seconds, at Ctrl-C, or with the "
                + "share (unless --placeholder says otherwise), and the last picture is then written out. FILE may be - for standard output.",
            "A WebM file has its length and an index when it ends, and can be played while it grows and after the program was killed. While "
                + "pictures change, a key frame is asked for about every ten seconds, to seek to. Pipes and standard output get the live "
                + "stream as the agent sends it.",
            "What FILE's name ends in is the format: .webm, .mkv (both WebM), .ivf, or .y4m (raw pictures without times); WebM when it has no "
                + "ending. WebM alone has a place for the share's sound.",
            "A FILE that exists is replaced, but not before the first picture is there; with --no-clobber it is left alone, with exit code 1.",
            "Ctrl-C before the first picture ends with exit code 3, and leaves no file behind.",
        ],
        operands: [OperandSpec(name: "FILE")],
        options: [
            OptionSpec(name: "seconds", letter: "s", value: "N", text: "end after so many seconds of stream"),
            OptionSpec(name: "wait-seconds", value: "N", text: "give up, with exit code 5, when no picture came for so long"),
            OptionSpec(name: "format", letter: "f", value: RecordFormat.words, text: "what to write, whatever FILE's name ends in"),
            .track,
        ] + StreamOptions.specs + [
            OptionSpec(
                name: "placeholder", value: "end|picture|hold",
                text:
                    "when the share ends: end (the default) ends the recording; picture and hold wait for the next share, with a placeholder "
                    + "picture or with nothing; hold also records nothing while muted"),
            OptionSpec(name: "no-clobber", letter: "n", text: "do not replace a file that exists"),
        ],
        run: { context, arguments throws(Failure) in
            let file = arguments.operands.first ?? "-"
            if file.isEmpty { throw .usage(.badValue(file, of: "FILE", expected: "a file to write, or -", verb: arguments.verb)) }
            let format = try RecordFormat(arguments, file: file)
            let placeholder = try arguments.word("placeholder", of: ["end", "picture", "hold"]) ?? "end"
            let options = try StreamOptions.read(arguments, format, placeholder: placeholder)
            let path = try arguments.trackPath()
            let (seconds, waitSeconds) = (try arguments.duration("seconds"), try arguments.duration("wait-seconds"))
            let agent = try Agent(context)
            let target = try RecordTarget(file, keepsExisting: arguments.has("no-clobber"))
            defer { target.discardIfEmpty() }
            let recording = Recording(try Reading(agent, path, options), into: target, context)
            return try recording.run(format, seconds: seconds, waitSeconds: waitSeconds)
        })
}

/// One recording, from the subscription to the end of its stream. Its words go to standard error.
final class Recording {
    private let reading: Reading
    private let target: RecordTarget
    private let context: Context
    private var err: Output { context.err }
    private var isEnding = false

    init(_ reading: Reading, into target: RecordTarget, _ context: Context) {
        (self.reading, self.target, self.context) = (reading, target, context)
    }

    func run(_ format: RecordFormat, seconds: Duration?, waitSeconds: Duration?) throws(Failure) -> ExitCode {
        // Standard output gets what comes, also when it is a file: it may have something in it already.
        let isSeekable = format == .webm && target.isRegular && !target.isStandardOutput
        let pump = try Pump.start(reading.stream, into: target, isSeekable: isSeekable, on: context.loop)
        defer { pump.finish() }
        pump.onKeyFrameWish = { [unowned self] in
            if !isEnding { reading.tell("RequestKeyFrame") }
        }

        try reading.awaitPicture(
            until: { pump.began != nil }, orOver: { pump.isOver }, limit: waitSeconds, nothing: "nothing was recorded")
        err.line("Recording to \(target.name). Ctrl-C ends it.")
        scheduleLiveLine(pump)
        let outcome = context.wait(until: { pump.isOver }, timeout: seconds)
        if outcome != .held { try finish(pump, outcome) }
        err.endLive()
        return try conclude(pump, wasAsked: outcome != .held)
    }

    /// Asks for the end and takes what still comes, the last picture among it.
    private func finish(_ pump: Pump, _ why: Context.Outcome) throws(Failure) {
        // Without a bus there is nobody to ask; what came is in the file.
        if why == .disconnected { throw Failure(.disconnected) }
        isEnding = true
        reading.tell("Unsubscribe")
        switch context.wait(until: { pump.isOver }, timeout: .seconds(10)) {
        case .held: break
        case .interrupted: throw .ended(.failed, "left before the end was written; \(target.name) can be played up to there")
        case .timedOut: throw .ended(.timedOut, "the agent did not end the stream; \(target.name) can be played up to there")
        case .disconnected: throw Failure(.disconnected)
        }
    }

    private func conclude(_ pump: Pump, wasAsked: Bool) throws(Failure) -> ExitCode {
        let length = length(pump)
        pump.finish()
        if let failure = pump.failure {
            // The reader of our standard output has seen enough.
            if case .write(let error) = failure, error.code == EPIPE, target.isStandardOutput { return .done }
            throw failure.failure(target)
        }
        let code = wasAsked ? .done : reading.explainEnd(agentGone: "The agent has gone away; the recording ends there.")
        err.line("Recorded \(length), \(byteCount(pump.written)), to \(target.name).")
        return code
    }

    private func length(_ pump: Pump) -> String { clockTime(pump.began.map { Instant.now - $0 } ?? .zero) }

    private func scheduleLiveLine(_ pump: Pump) {
        guard err.isLive else { return }
        err.live("\(length(pump))  \(byteCount(pump.written))")
        context.loop.after(.seconds(1)) { [weak self, weak pump] in
            guard let self, let pump, !pump.isOver else { return }
            scheduleLiveLine(pump)
        }
    }
}
