// SPDX-License-Identifier: MIT
import DBus
import Loop

/// `vitrinectl status`.
enum StatusVerb {
    static let verb = Verb(
        name: "status", summary: "say what is shared",
        details: [
            "The agent is not started for it: when it does not run, nothing is shared, and the state is idle. What programs share on tracks of "
                + "their own is named too; --track shows one of those. The preset is shown without what --fps, --bitrate and --max-size set otherwise.",
            "With --follow a line follows at each change, until Ctrl-C; it waits for an agent that does not run yet.",
            "With --json each line is one object with the same members: event (state, started, finished, start-failed, preset-too-high), "
                + "reason and detail (of finished and start-failed), preset-suggested, agent (whether it runs), track, state, capturing, "
                + "broadcasting, sharing (whether any track of the agent broadcasts), paused, muted, preset, title, size ([width, height]), crop and masks ([x, y, width, height]), layout, sources, started-at (microseconds since the epoch), "
                + "readers, last-error-name, last-error. What does not apply is null.",
        ],
        options: [OptionSpec(name: "follow", letter: "f", text: "go on, with a line at each change"), .json, .track],
        run: { context, arguments throws(Failure) in
            let status = StatusReport(
                try Agent(context), try arguments.trackPath(), json: arguments.has("json"), follows: arguments.has("follow"))
            return try status.run()
        })
}

/// One look at a track, and what changes afterwards.
final class StatusReport {
    private let agent: Agent
    private let path: ObjectPath
    private let usesJSON: Bool
    private let follows: Bool
    private let observer: TrackObserver
    private var lastLine: String?

    init(_ agent: Agent, _ path: ObjectPath, json: Bool, follows: Bool) {
        (self.agent, self.path, usesJSON, self.follows) = (agent, path, json, follows)
        observer = TrackObserver(agent, path)
    }

    func run() throws(Failure) -> ExitCode {
        guard follows else {
            let track = try agent.track(path)
            let all = track == nil ? [] : try agent.programsTracks().filter(\.isActive)
            if usesJSON {
                let isAnythingShared = track?.isActive == true || !all.isEmpty
                agent.context.out.line(Self.json(path, track, isAnythingShared: isAnythingShared, event: nil).text)
            } else {
                let others = path == Agent.desktopTrack ? all : []
                agent.context.out.lines(Self.lines(track, others: others, agent.context.out))
            }
            return .done
        }
        try observer.start()
        show(nil)
        observer.onEvent = { [unowned self] in show($0) }
        switch agent.context.wait(until: { false }) {
        case .interrupted: return .done
        case let outcome: throw Failure(outcome)
        }
    }

    private func show(_ event: TrackEvent?) {
        let isAnythingShared = observer.isAnythingShared
        let line: String?
        if usesJSON {
            line = Self.json(path, observer.track, isAnythingShared: isAnythingShared, event: event).text
        } else {
            line = Self.line(observer.track, isAnythingShared: isAnythingShared && observer.isSureOfOthers, event: event)
        }
        // A property that is not shown may have changed.
        guard let line, line != lastLine else { return }
        lastLine = line
        agent.context.out.line(line)
    }

    // MARK: - JSON

    /// The whole truth in one object, with the same members each time.
    ///
    /// - Parameter isAnythingShared: on this track or on another.
    static func json(_ path: ObjectPath, _ track: Track?, isAnythingShared: Bool, event: TrackEvent?) -> JSON {
        var (name, reason, detail, preset): (String, JSON, JSON, JSON) = ("state", .null, .null, .null)
        switch event {
        case .started: name = "started"
        case .finished(let word, let words): (name, reason, detail) = ("finished", .string(word), .string(words))
        case .startFailed(let word, let words): (name, reason, detail) = ("start-failed", .string(word), .string(words))
        case .presetTooHigh(let word): (name, preset) = ("preset-too-high", .string(word))
        case nil, .changed, .agentCame, .agentLeft: break
        }
        func text(_ text: String?) -> JSON { text.map(JSON.string) ?? .null }
        func filled(_ text: String?) -> JSON { text.flatMap { $0.isEmpty ? nil : JSON.string($0) } ?? .null }
        let size: JSON = track?.size?.json ?? .null
        let startedAt: JSON = track.flatMap { $0.startedAt == 0 ? nil : .unsigned($0.startedAt) } ?? .null
        let crop: JSON = track?.crop.map { JSON($0.value) } ?? .null
        let masks: [JSON] = track?.masks.map { JSON($0.value) } ?? []
        let sources: [JSON] = track?.sources.map(\.json) ?? []
        let readers = UInt64(track?.subscriptions.count ?? 0)
        let members: KeyValuePairs<String, JSON> = [
            "event": .string(name),
            "reason": reason,
            "detail": detail,
            "preset-suggested": preset,
            "agent": .bool(track != nil),
            "track": .string(path.text),
            "state": .string(track?.state ?? "idle"),
            "capturing": .bool(track?.isCapturing ?? false),
            "broadcasting": .bool(track?.isBroadcastActive ?? false),
            "sharing": .bool(isAnythingShared || track?.isBroadcastActive ?? false),
            "paused": .bool(track?.isPaused ?? false),
            "muted": .bool(track?.isMuted ?? false),
            "preset": filled(track?.preset),
            "title": text(track?.title),
            "size": size,
            "crop": crop,
            "masks": .array(masks),
            "layout": filled(track?.layout),
            "sources": .array(sources),
            "started-at": startedAt,
            "readers": .unsigned(readers),
            "last-error-name": filled(track?.lastErrorName),
            "last-error": filled(track?.lastError),
        ]
        return .members(members)
    }

    // MARK: - Words

    /// Several lines, for one look.
    ///
    /// - Parameter others: tracks of programs that share too.
    static func lines(_ track: Track?, others: [Track] = [], _ out: Output) -> [String] {
        guard let track else { return ["idle: nothing is shared, and the agent does not run"] }
        var table = TextTable()
        table.add(["State", out.paint(track.state, track.isActive ? .green : .bold) + meaning(track, hasOthers: !others.isEmpty)])
        if track.isActive {
            table.add(["Shared", printable(track.sharedThing)])
            if track.sources.count > 1 { table.add(["Layout", printable(track.layout)]) }
            if let size = track.size { table.add(["Sent", "\(size), preset \(printable(track.preset))"]) }
        }
        for other in others { table.add(["Shared too", "\(printable(other.sharedThing)), on \(other.introduction)"]) }
        if let crop = track.crop {
            table.add(["Crop", "\(crop)\(track.isCropOutside ? out.paint(" outside of the source: all is black", .yellow) : "")"])
        }
        if !track.masks.isEmpty { table.add(["Masks", track.masks.map(\.description).joined(separator: "  ")]) }
        let idle = track.masksOutside.map(\.description)
        if !idle.isEmpty { table.add(["", out.paint("outside of the source, hiding nothing: \(idle.joined(separator: "  "))", .yellow)]) }
        if !track.title.isEmpty { table.add(["Title", printable(track.title)]) }
        table.add(["Muted", track.isMuted ? out.paint("yes", .yellow) : "no"])
        table.add(["Readers", "\(track.subscriptions.count)"])
        if !track.lastErrorName.isEmpty {
            table.add(["Last error", "\(printable(Remedy.inOurWords(track.lastError))) (\(printable(track.lastErrorName)))"])
        }
        return table.lines
    }

    private static func meaning(_ track: Track, hasOthers: Bool) -> String {
        let here = hasOthers ? " here" : ""
        switch track.state {
        case "idle": return ": nothing is shared\(here)"
        case "listening": return ": ready, nothing is shared\(here)"
        case "choosing": return ": the desktop's picker is open, nothing is shared yet"
        case "active":
            let now = wallClockMicroseconds()
            let age = track.startedAt == 0 || track.startedAt > now ? 0 : now - track.startedAt
            return " for \(clockTime(.microseconds(Int64(clamping: age))))" + (track.isPaused ? ", paused by the source" : "")
        default: return ""
        }
    }

    /// One line, for a change; nil when there is nothing to say.
    static func line(_ track: Track?, isAnythingShared: Bool, event: TrackEvent?) -> String? {
        switch event {
        case .finished(let reason, let detail): return "finished: \(Reason(name: reason, detail: detail).sentence)"
        case .startFailed(let name, let detail): return "start failed: \(printable(Remedy.inOurWords(detail))) (\(printable(name)))"
        case .presetTooHigh(let preset): return "the encoder cannot keep up; preset to try: \(printable(preset))"
        case .started: return nil
        case nil, .changed, .agentCame, .agentLeft: break
        }
        guard let track else { return "idle (the agent does not run)" }
        var words = [track.state]
        if track.isActive {
            words.append(printable(track.sharedThing))
        } else if isAnythingShared {
            words.append("shared on another track")
        }
        if track.isPaused { words.append("paused") }
        if track.isMuted { words.append("muted") }
        if !track.subscriptions.isEmpty { words.append(counted(track.subscriptions.count, "reader")) }
        return words.joined(separator: ", ")
    }
}
