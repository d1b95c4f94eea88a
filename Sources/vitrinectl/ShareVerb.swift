// SPDX-License-Identifier: MIT
import DBus
import Loop

/// `vitrinectl share`.
enum ShareVerb {
    static let verb = Verb(
        name: "share", summary: "share this desktop's screen until it is stopped",
        details: [
            "The desktop's own picker opens. What is chosen there is shared until Ctrl-C, until 'vitrinectl stop', or until it is ended in "
                + "the desktop. Ctrl-C while the picker is open closes it, with exit code 3.",
            "When something is shared already, what can be changed of it is changed as the options say (preset, size, rates, crop, masks, layout), and the share is "
                + "watched; Ctrl-C ends it then too. What cannot is refused, with exit code 1.",
            "A program that listens on a track of its own waits for a person to share with it: such tracks are named, and --track shares with one. "
                + "How the picture is sent is up to that program then; only --timeout and --detach may be given.",
        ],
        options: ShareOptions.specs + [
            .track,
            OptionSpec(
                name: "detach", aliases: ["no-wait"], letter: "d",
                text: "return as soon as frames flow; the share goes on until it is stopped"),
        ],
        run: { context, arguments throws(Failure) in
            var options = try ShareOptions.read(arguments)
            let path = try arguments.trackPath()
            if path != Agent.desktopTrack, let option = arguments.values.keys.sorted().first(where: { !optionsOfAnyTrack.contains($0) }) {
                let why = "--\(option) is up to the program that made the track: with --track only --timeout and --detach may be given"
                throw .usage(.wrong(why, verb: arguments.verb))
            }
            options["wait"] = .bool(true)
            let share = Share(try Agent(context), path)
            return try share.run(options, layout: try ShareOptions.layout(arguments), detaches: arguments.has("detach"))
        })

    private static let optionsOfAnyTrack: Set = ["track", "timeout", "detach"]
}

/// One share of a track, from the call to its end.
final class Share {
    private let agent: Agent
    private let path: ObjectPath
    private let observer: TrackObserver
    private var context: Context { agent.context }
    private var out: Output { agent.context.out }

    private var hasSaidPicker = false
    /// Whether what is chosen is to be remembered, and which sound goes with it, as options say; ...
    private var remembers: Value?
    private var audio: String?
    /// ... and where none does, what shares of the desktop track start with.
    private var settings: [String: Value] = [:]
    /// An end counts from then on: an earlier share's may still be told.
    private var isRunning = false
    private var isShown = false
    private var wasMuted = false
    private var wasPaused = false
    private var nodes: [UInt32?] = []
    private var end: Reason?
    private var agentLeft = false
    /// Whether the track listened before, so that it shall go on.
    private var listened = false
    /// Counters run since the agent began: what they were when this share did.
    private var before: [String: UInt64] = [:]
    private var counters: [String: UInt64] = [:]
    private var began = Instant.now

    init(_ agent: Agent, _ path: ObjectPath = Agent.desktopTrack) {
        (self.agent, self.path) = (agent, path)
        observer = TrackObserver(agent, path)
    }

    private var isDesktopTrack: Bool { path == Agent.desktopTrack }

    /// Shares until the end.
    ///
    /// - Parameter layout: of several sources, to be set before; nil leaves it as it is.
    func run(_ options: [String: Value], layout: String?, detaches: Bool) throws(Failure) -> ExitCode {
        // The first call starts the agent if need be, so that nothing that follows is missed.
        let track = try agent.track(path, starting: true)
        (before, listened) = (track?.statistics ?? [:], track?.isCapturing ?? false)
        if let track, !isDesktopTrack, !listened {
            throw .ended(.failed, "\(track.introduction) does not listen: the program that made it decides when it may be shared with")
        }
        audio = options["audio"]?.asString
        remembers = options["persist"]
        if isDesktopTrack { settings = try readSettings() }
        observer.onEvent = { [unowned self] in take($0) }
        try observer.start()
        defer { observer.stop() }
        let joins = observer.track?.isActive ?? false
        isRunning = joins
        // Listening that began with this share ends with it.
        var goesOn = false
        defer { if !goesOn { endListening() } }
        if !joins { try nameOthers() }
        sayPicker()
        if let layout { try agent.setLayout(layout) }
        try ask(options)
        showStart(joins: joins)
        let changes = [ShareOptions.words(options), layout.map { "layout \($0)" }].compactMap(\.self)
        if joins, !changes.isEmpty { out.line("Changed: \(changes.joined(separator: ", ")).") }
        if !joins { nameWhatIsLeft(options) }
        warn()
        if detaches {
            goesOn = true
            return .done
        }
        return try watch()
    }

    private func readSettings() throws(Failure) -> [String: Value] {
        let values = try agent.call(Agent.path, Agent.properties, "Get", [.string(Agent.interface.text), .string("DefaultOptions")])
        return values.first?.asVariant?.asOptions ?? [:]
    }

    private func endListening() {
        guard isDesktopTrack, !listened, !agentLeft, observer.track?.state == "listening" else { return }
        _ = try? agent.call(path, Agent.trackInterface, "StopCapture", starting: false, timeout: .seconds(10))
    }

    /// Says who else waits for a share.
    private func nameOthers() throws(Failure) {
        guard isDesktopTrack else { return }
        for other in try agent.programsTracks() where other.state == "listening" {
            out.line("\(capitalized(other.introduction)) listens too: 'vitrinectl share --track \(other.name)' shares with it instead.")
        }
    }

    private func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }

    /// Says what an earlier share, or the person since, has left in force that nobody asked for now.
    private func nameWhatIsLeft(_ options: [String: Value]) {
        guard isDesktopTrack, let track = observer.track else { return }
        var left: [(words: String, remedy: String)] = []
        if track.isMuted { left.append(("it is muted", "'vitrinectl mute off'")) }
        var taking: [String] = []
        if let crop = track.crop, options["crop"] == nil {
            left.append(("crop \(crop)", ""))
            taking.append("--crop none")
        }
        if !track.masks.isEmpty, options["masks"] == nil {
            left.append(("masked: \(track.masks.map(\.description).joined(separator: " and "))", ""))
            taking.append("--mask none")
        }
        guard !left.isEmpty else { return }
        let remedies =
            left.map(\.remedy).filter { !$0.isEmpty }
            + (taking.isEmpty ? [] : ["'vitrinectl share --detach \(taking.joined(separator: " "))'"])
        let verb = remedies.count == 1 ? "takes" : "take"
        out.line("Still in force: \(left.map(\.words).joined(separator: ", ")). \(remedies.joined(separator: " and ")) \(verb) it back.")
    }

    private func warn() {
        for warning in observer.track?.warnings ?? [] { out.line(out.paint(warning, .yellow)) }
    }

    // MARK: - Asking

    private func ask(_ options: [String: Value]) throws(Failure) {
        let call =
            isDesktopTrack
            ? Agent.method(Agent.path, Agent.interface, "SetScreenShare", [.bool(true), .options(options)])
            : Agent.method(path, Agent.trackInterface, "StartBroadcast", [.options(options)], starting: false)
        var answer: Result<[Value], DBusError>?
        agent.connection.call(call, timeout: nil) { answer = $0 }
        var outcome = context.wait(until: { answer != nil })
        if answer == nil, outcome == .interrupted {
            try stop()
            outcome = context.wait(until: { answer != nil }, timeout: .seconds(10))
            // The picture may have come in between; it is stopped all the same.
            throw .ended(.cancelled, "the picker was closed; nothing is shared")
        }
        guard let answer else { throw Failure(outcome) }
        if case .failure(let error) = answer {
            if agentLeft || error.remoteName == StandardError.noReply { throw lostAgent }
            if isDesktopTrack, case .remote(_, let message) = error, let words = Remedy.namingConfiguration(message, given: options) {
                throw .ended(ExitCode(error), printable(words))
            }
            throw Failure(error, track: path)
        }
    }

    private var lostAgent: Failure {
        .ended(.unavailable, "the agent has gone away, and the share with it. See its log: journalctl --user -t vitrine-agent")
    }

    private func stop() throws(Failure) {
        do throws(Failure) {
            if isDesktopTrack {
                try agent.setScreenShare(false, timeout: .seconds(10))
            } else {
                try agent.call(path, Agent.trackInterface, "StopBroadcast", starting: false, timeout: .seconds(10))
            }
        } catch {
            if error.code == .unavailable || agentLeft { throw lostAgent }
            if error.code == .cancelled { throw .ended(.failed, "left without waiting for the end of the share") }
            throw error
        }
    }

    // MARK: - Watching

    private func watch() throws(Failure) -> ExitCode {
        scheduleLiveLine()
        var outcome = context.wait(until: { self.end != nil || self.agentLeft })
        let wasOurs = outcome == .interrupted && end == nil
        if wasOurs {
            try stop()
            outcome = context.wait(until: { self.end != nil || self.agentLeft }, timeout: .seconds(10))
        }
        out.endLive()
        guard let end else {
            if outcome == .timedOut { throw .ended(.timedOut, "the agent did not say that the share has ended") }
            if agentLeft { throw lostAgent }
            throw Failure(outcome)
        }
        let length = clockTime(Instant.now - began)
        readCountersNow()
        // Who pressed Ctrl-C need not be told who stopped it.
        let sentence = (wasOurs && end.name == "stopped" ? Reason(name: end.name, detail: "") : end).sentence
        out.line(end.exitCode == .done ? sentence : out.paint(sentence, .red))
        out.line("Shared for \(length). Frames: \(Share.describe(counters, since: before)).")
        return end.exitCode
    }

    private func readCountersNow() {
        let call = Agent.method(path, Agent.properties, "Get", Share.statisticsArguments, starting: false)
        if let values = try? context.answer(to: call, on: agent.connection, timeout: .seconds(2)) { takeCounters(values) }
    }

    private static let statisticsArguments: [Value] = [.string(Agent.trackInterface.text), .string("Statistics")]

    private func takeCounters(_ values: [Value]) {
        if let value = values.first?.asVariant { counters = readCounters(value) }
    }

    /// Off a terminal nothing is asked for, and the agent is left alone.
    private func scheduleLiveLine() {
        guard out.isLive else { return }
        let call = Agent.method(path, Agent.properties, "Get", Share.statisticsArguments, starting: false)
        agent.connection.call(call) { [weak self] result in
            guard let self, end == nil, !agentLeft else { return }
            if case .success(let values) = result { takeCounters(values) }
            out.live(liveLine)
            agent.context.loop.after(.seconds(1)) { [weak self] in self?.scheduleLiveLine() }
        }
    }

    private var liveLine: String {
        guard let track = observer.track else { return "" }
        let marks = (track.isMuted ? "  MUTED" : "") + (track.isPaused ? "  PAUSED" : "")
        return "\(clockTime(Instant.now - began))  \(Share.describe(counters, since: before))  "
            + "\(counted(track.subscriptions.count, "reader"))\(marks)"
    }

    /// The counters that matter to a person.
    static func describe(_ counters: [String: UInt64], since before: [String: UInt64]) -> String {
        ["received", "delivered", "coalesced", "unread"].map { name in
            let (difference, isNewer) = (counters[name] ?? 0).subtractingReportingOverflow(before[name] ?? 0)
            return "\(isNewer ? counters[name] ?? 0 : difference) \(name)"
        }.joined(separator: ", ")
    }

    // MARK: - Events

    private func take(_ event: TrackEvent) {
        switch event {
        case .changed, .agentCame: showChanges()
        case .started: isRunning = true
        case .startFailed: break
        case .finished(let reason, let detail): if isRunning { end = Reason(name: reason, detail: detail) }
        case .presetTooHigh(let preset):
            out.line(
                out.paint("The encoder cannot keep up.", .yellow)
                    + " A lower preset may help: vitrinectl share --detach --preset \(printable(preset))")
        case .agentLeft: agentLeft = true
        }
    }

    private func sayPicker() {
        guard !hasSaidPicker, observer.track?.state == "choosing" else { return }
        hasSaidPicker = true
        let persist = remembers ?? (observer.settings ?? settings)["persist"]
        out.line(
            persist?.asString ?? "none" != "none"
                ? "Choose what to share in the desktop's picker, if it opens: what is remembered needs none. Ctrl-C closes it."
                : "Choose what to share in the desktop's picker. Ctrl-C closes it.")
    }

    private func showStart(joins: Bool) {
        guard let track = observer.track else { return }
        isShown = true
        (wasMuted, wasPaused, nodes) = (track.isMuted, track.isPaused, track.sources.map(\.node))
        let now = wallClockMicroseconds()
        let age = track.startedAt == 0 || track.startedAt > now ? 0 : now - track.startedAt
        began = Instant.now + .microseconds(-Int64(clamping: age))
        let audio = audio ?? (observer.settings ?? settings)["audio"]?.asString ?? "none"
        let sound = audio == "none" || joins ? "" : ", with the sound of \(ShareOptions.soundWords[audio] ?? audio)"
        out.line("\(joins ? "Shared already" : "Sharing"): \(printable(track.sharedThing))\(sound).")
    }

    private func showChanges() {
        sayPicker()
        guard isShown, let track = observer.track else { return }
        if track.isMuted != wasMuted {
            out.line(track.isMuted ? "Muted: readers get a placeholder." : "No longer muted.")
        }
        if track.isPaused != wasPaused {
            out.line(track.isPaused ? "The source is paused: readers keep the last picture." : "The source goes on.")
        }
        (wasMuted, wasPaused) = (track.isMuted, track.isPaused)
        guard track.isActive, track.sources.map(\.node) != nodes else { return }
        nodes = track.sources.map(\.node)
        out.line("Sharing now: \(printable(track.sharedThing)).")
        warn()
    }
}
