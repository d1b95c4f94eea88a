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
            "What FILE's name ends in is the format: .webm, .mkv (both WebM) or .y4m (raw pictures without times); WebM when it has no ending.",
            "A FILE that exists is replaced, but not before the first picture is there; with --no-clobber it is left alone, with exit code 1.",
            "Ctrl-C before the first picture ends with exit code 3, and leaves no file behind.",
        ],
        operands: [OperandSpec(name: "FILE")],
        options: [
            OptionSpec(name: "seconds", letter: "s", value: "N", text: "end after so many seconds of stream"),
            OptionSpec(name: "wait-seconds", value: "N", text: "give up, with exit code 5, when no picture came for so long"),
            OptionSpec(name: "format", letter: "f", value: "F", text: "webm or y4m, whatever FILE's name ends in"),
            .track,
            OptionSpec(name: "bitrate", letter: "b", value: "N", text: "bits a second, such as 4M or 2500k; else the share's"),
            OptionSpec(name: "max-size", value: "WxH", text: "greatest picture, in pixels; else the share's"),
            OptionSpec(name: "fps", value: "N", text: "at most so many frames a second; else the share's"),
            OptionSpec(
                name: "placeholder", value: "P",
                text:
                    "when the share ends: end (the default) ends the recording; picture and hold wait for the next share, with a placeholder "
                    + "picture or with nothing; hold also records nothing while muted"),
            OptionSpec(name: "no-clobber", letter: "n", text: "do not replace a file that exists"),
        ],
        run: { context, arguments throws(Failure) in
            let file = arguments.operands.first ?? "-"
            let format = try RecordFormat(arguments, file: file)
            let options = try Self.options(arguments, format)
            let path = try arguments.trackPath()
            let (seconds, waitSeconds) = (try arguments.duration("seconds"), try arguments.duration("wait-seconds"))
            let agent = try Agent(context)
            let target = try RecordTarget(file, keepsExisting: arguments.has("no-clobber"))
            defer { target.discardIfEmpty() }
            return try Recording(agent, path, into: target, format: format).run(options, seconds: seconds, waitSeconds: waitSeconds)
        })

    /// The options of `Subscribe`.
    static func options(_ arguments: Arguments, _ format: RecordFormat) throws(Failure) -> [String: Value] {
        let placeholder = try arguments.word("placeholder", of: ["end", "picture", "hold"]) ?? "end"
        var options: [String: Value] = ["format": .string(format.rawValue), "placeholder": .string(placeholder)]
        if let bitrate = try arguments.bitrate("bitrate") { options["bitrate"] = .uint32(bitrate) }
        if let rate = try arguments.number("fps") { options["fps"] = .uint32(rate) }
        if let size = try arguments.size("max-size") { options["max-size"] = .structure([.uint32(size.width), .uint32(size.height)]) }
        return options
    }
}

/// One recording, from the subscription to the end of its stream. Its words go to standard error.
final class Recording {
    private let agent: Agent
    private let track: ObjectPath
    private let target: RecordTarget
    private let observer: TrackObserver
    private var context: Context { agent.context }
    private var err: Output { agent.context.err }
    private var end: Reason?
    private var agentLeft = false
    private var isEnding = false
    private let isSeekable: Bool

    init(_ agent: Agent, _ track: ObjectPath, into target: RecordTarget, format: RecordFormat) {
        (self.agent, self.track, self.target) = (agent, track, target)
        // Standard output gets what comes, also when it is a file: it may have something in it already.
        isSeekable = format == .webm && target.isRegular && !target.isStandardOutput
        observer = TrackObserver(agent, track)
    }

    func run(_ options: [String: Value], seconds: Duration?, waitSeconds: Duration?) throws(Failure) -> ExitCode {
        let answer = try agent.call(track, Agent.trackInterface, "Subscribe", [.options(options)])
        guard answer.count == 2, let subscription = answer[0].asObjectPath, let stream = answer[1].asDescriptor else {
            throw .ended(.failed, "the agent's answer to Subscribe is not a subscription and a stream")
        }
        observer.onEvent = { [unowned self] event in
            if case .finished(let reason, let detail) = event { end = Reason(name: reason, detail: detail) }
            if event == .agentLeft { agentLeft = true }
        }
        try observer.start()
        defer { observer.stop() }
        let pump: Pump
        do throws(Errno) {
            pump = try Pump(stream, into: target, isSeekable: isSeekable, on: context.loop)
        } catch {
            throw .ended(.failed, "cannot read the stream: \(error)")
        }
        defer { pump.finish() }
        pump.onKeyFrameWish = { [unowned self] in
            if !isEnding { tell(subscription, "RequestKeyFrame") }
        }

        try awaitPicture(pump, subscription, waitSeconds)
        err.line("Recording to \(target.name). Ctrl-C ends it.")
        scheduleLiveLine(pump)
        let outcome = context.wait(until: { pump.isOver }, timeout: seconds)
        if outcome != .held { try finish(pump, subscription, outcome) }
        err.endLive()
        return try conclude(pump, wasAsked: outcome != .held)
    }

    private func awaitPicture(_ pump: Pump, _ subscription: ObjectPath, _ limit: Duration?) throws(Failure) {
        // One that is there is not worth a word.
        _ = context.loop.run(until: { pump.began != nil || pump.isOver }, timeout: .milliseconds(500))
        if pump.began == nil, !pump.isOver {
            let state = observer.track?.state ?? "idle"
            err.line(
                state == "active"
                    ? "Waiting for the first picture. Ctrl-C ends it."
                    : "Waiting: nothing is shared yet (\(state)). 'vitrinectl share' starts a share, Ctrl-C ends the waiting.")
        }
        let outcome = context.wait(until: { pump.began != nil || pump.isOver || agentLeft }, timeout: limit)
        if pump.began != nil || pump.failure != nil { return }
        if agentLeft { throw .ended(.failed, "the agent went away before the first picture; nothing was recorded") }
        switch outcome {
        case .held: throw .ended(.failed, "the stream was ended before the first picture; nothing was recorded")
        case .interrupted: throw .ended(.cancelled, "ended before the first picture; nothing was recorded")
        case .timedOut:
            throw .ended(.timedOut, "no picture came in time; nothing was recorded. 'vitrinectl status' says whether something is shared")
        case .disconnected: throw Failure(.disconnected)
        }
    }

    /// Asks for the end and takes what still comes, the last picture among it.
    private func finish(_ pump: Pump, _ subscription: ObjectPath, _ why: Context.Outcome) throws(Failure) {
        // Without a bus there is nobody to ask; what came is in the file.
        if why == .disconnected { throw Failure(.disconnected) }
        isEnding = true
        tell(subscription, "Unsubscribe")
        switch context.wait(until: { pump.isOver }, timeout: .seconds(10)) {
        case .held: break
        case .interrupted: throw .ended(.failed, "left before the end was written; \(target.name) can be played up to there")
        case .timedOut: throw .ended(.timedOut, "the agent did not end the stream; \(target.name) can be played up to there")
        case .disconnected: throw Failure(.disconnected)
        }
    }

    /// Calls a method for what it may bring; that the subscription is gone, or muted, is nothing to tell.
    private func tell(_ subscription: ObjectPath, _ member: MemberName) {
        let call = Agent.method(subscription, Agent.subscriptionInterface, member, starting: false)
        agent.connection.call(call, timeout: .seconds(10)) { _ in }
    }

    private func conclude(_ pump: Pump, wasAsked: Bool) throws(Failure) -> ExitCode {
        let length = length(pump)
        pump.finish()
        switch pump.failure {
        case nil: break
        // The reader of our standard output has seen enough.
        case .write(let error) where error.code == EPIPE && target.isStandardOutput: return .done
        case .write(let error):
            throw .ended(.failed, "cannot write \(target.name): \(error)\(target.isEmpty ? "" : ". What was written can be played")")
        case .stream(let fault):
            throw .ended(
                .failed,
                "the agent's stream has \(fault.text), which this vitrinectl does not know: are they of one version? "
                    + "'vitrinectl record - >FILE' takes the stream as it is")
        }
        var code = ExitCode.done
        if !wasAsked {
            // The stream's end comes before the words that explain it.
            _ = context.wait(until: { self.end != nil || self.agentLeft }, timeout: .seconds(1))
            if let end {
                err.line(end.sentence)
                code = end.exitCode
            } else if agentLeft {
                err.line("The agent has gone away; the recording ends there.")
                code = .failed
            } else {
                err.line("The stream was ended.")
            }
        }
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
