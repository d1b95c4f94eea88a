// SPDX-License-Identifier: MIT
import DBus
import Loop

/// `vitrinectl stats`.
enum StatsVerb {
    static let verb = Verb(
        name: "stats", summary: "show a track's counters and its readers'",
        details: [
            "Frames are counted since the track was made. received = delivered + coalesced + unread + corrupted + cursor-only + dropped, up "
                + "to what is in flight. Coalesced frames were replaced by newer ones; that is no error. Of unread ones no encoder had need. "
                + "Corrupted ones the desktop itself called broken; cursor-only ones brought no picture, just the pointer; dropped ones could not be "
                + "used: no memory was free for them, or they were not as agreed.",
            "Numbers without another unit are frames: footprint, bytes and queued-bytes are bytes, pool-capacity is frame slots, and what ends "
                + "in -us is microseconds. The agent measures latency from the picture's own time to the readers' streams.",
            "With --memory it shows what the agent, with all its tracks, has resident, part by part. The pool is what the tracks call footprint; the "
                + "kernel says the rest. The encoders' part is all large blocks: it comes with the first reader and goes soon after the last.",
            "The agent is not started for it. With --json the object has the members track, state, counters, and readers: an array with "
                + "path, subscriber, identity, format, codec, size, paused and counters of each; with --memory too it has pid, parts, and resident, "
                + "in bytes.",
        ],
        options: [
            OptionSpec(name: "follow", letter: "f", text: "again each second, until Ctrl-C; with --json a line each"),
            OptionSpec(name: "memory", letter: "m", text: "show what the agent's memory is used for, instead of counters"), .json, .track,
        ],
        run: { context, arguments throws(Failure) in
            let path = try arguments.trackPath()
            let showsMemory = arguments.has("memory")
            if showsMemory && arguments.has("track") {
                throw .usage(.wrong("--memory shows all of the agent, not one track", verb: arguments.verb))
            }
            let agent = try Agent(context)
            while true {
                let (json, lines) = showsMemory ? try memory(of: agent) : try counters(of: agent, path)
                context.out.lines(arguments.has("json") ? [json.text] : lines)
                guard arguments.has("follow") else { return .done }
                switch context.wait(until: { false }, timeout: .seconds(1)) {
                case .timedOut: break
                case .interrupted, .held: return .done
                case .disconnected: throw Failure(.disconnected)
                }
                if !arguments.has("json") { context.out.line("") }
            }
        })

    private static func counters(of agent: Agent, _ path: ObjectPath) throws(Failure) -> (JSON, [String]) {
        let report = try StatsReport(agent, path)
        return (report.json, report.lines)
    }

    private static func memory(of agent: Agent) throws(Failure) -> (JSON, [String]) {
        guard let report = try MemoryReport.taken(from: agent) else {
            let nothing: JSON = .members(["pid": .null, "parts": .object([]), "resident": .unsigned(0)])
            return (nothing, ["No memory: the agent does not run."])
        }
        return (report.json, report.lines)
    }
}

/// The counters of a track and of its subscriptions at one moment.
struct StatsReport {
    private let path: ObjectPath
    private let track: Track?
    private let readers: [(path: ObjectPath, properties: [String: Value])]

    init(_ agent: Agent, _ path: ObjectPath) throws(Failure) {
        self.path = path
        track = try agent.track(path)
        let objects = track == nil ? nil : try agent.objects()
        // A reader may have left since the track was read.
        readers = (track?.subscriptions ?? []).compactMap { path in
            objects?[path]?[Agent.subscriptionInterface.text].map { (path, $0) }
        }
    }

    /// Counters in the order in which the contract names them; others follow by name.
    private static let order = [
        "received", "delivered", "coalesced", "unread", "corrupted", "cursor-only", "dropped", "footprint", "pool-capacity",
        "last-frame-age-us", "latency-p50-us", "latency-p99-us", "sent", "keyframes", "bytes", "queued-bytes",
    ]

    static func sorted(_ counters: [String: UInt64]) -> [(name: String, value: UInt64)] {
        counters.map { ($0.key, $0.value) }.sorted { left, right in
            let (first, second) = (order.firstIndex(of: left.0) ?? .max, order.firstIndex(of: right.0) ?? .max)
            return first == second ? left.0 < right.0 : first < second
        }
    }

    var lines: [String] {
        guard let track else { return ["No counters: the agent does not run."] }
        var table = TextTable(numeric: [1])
        for (name, value) in Self.sorted(track.statistics) {
            table.add([printable(name), "\(value)", Self.unit(name), Self.remark(name, value)])
        }
        var lines = ["\(track.name): \(track.state)"] + table.lines
        guard !readers.isEmpty else { return lines + ["no readers"] }
        var columns: [String] = []
        for reader in readers {
            for (name, _) in Self.sorted(Self.counters(reader.properties)) where !columns.contains(name) { columns.append(name) }
        }
        var readerTable = TextTable(
            headings: ["READER", "FORMAT", "SIZE"] + columns.map { $0.uppercased() } + ["IDENTITY"],
            numeric: Set(3..<(3 + columns.count)))
        readerTable.add(["", "", "pixels"] + columns.map(Self.unit))
        for (path, properties) in readers {
            let text = { (name: String) in printable(properties[name]?.asString ?? "") }
            let counters = Self.counters(properties)
            let codec = text("Codec")
            var row = [
                path.text.split(separator: "/").last.map(String.init) ?? path.text,
                codec.isEmpty ? text("Format") : "\(text("Format")) \(codec)",
                properties["Size"].flatMap(Size.init)?.description ?? "-",
            ]
            for column in columns { row.append(counters[column].map { "\($0)" } ?? "-") }
            readerTable.add(row + [text("SubscriberIdentity")])
        }
        lines += readerTable.lines
        return lines
    }

    var json: JSON {
        .members([
            "track": .string(path.text),
            "state": .string(track?.state ?? "idle"),
            "counters": Self.json(track?.statistics ?? [:]),
            "readers": .array(readers.map { Self.json($0, $1) }),
        ])
    }

    private static func json(_ reader: ObjectPath, _ properties: [String: Value]) -> JSON {
        func value(_ name: String) -> JSON { properties[name].map(JSON.init) ?? .null }
        let size: JSON = properties["Size"].flatMap(Size.init)?.json ?? .null
        return .members([
            "path": .string(reader.text),
            "subscriber": value("Subscriber"),
            "identity": value("SubscriberIdentity"),
            "format": value("Format"),
            "codec": value("Codec"),
            "size": size,
            "paused": value("Paused"),
            "counters": json(counters(properties)),
        ])
    }

    private static func counters(_ properties: [String: Value]) -> [String: UInt64] {
        properties["Statistics"].map(readCounters) ?? [:]
    }

    private static func json(_ counters: [String: UInt64]) -> JSON {
        .object(sorted(counters).map { JSON.Member(name: $0.name, value: .unsigned($0.value)) })
    }

    /// What a counter counts.
    private static func unit(_ name: String) -> String {
        switch name {
        case "footprint", "bytes", "queued-bytes": "bytes"
        case "pool-capacity": "slots"
        case let name where name.hasSuffix("-us"): "µs"
        default: "frames"
        }
    }

    private static func remark(_ name: String, _ value: UInt64) -> String {
        switch name {
        case "coalesced": "replaced by newer ones"
        case "unread": "no encoder had need of them"
        case "cursor-only": "only the pointer had moved"
        case "footprint": "of the frame pool (\(byteCount(value)))"
        case "pool-capacity": "of the frame pool"
        case "last-frame-age-us": "since the last frame"
        case "latency-p50-us": "half of the frames took less to the readers' streams"
        case "latency-p99-us": "99 of 100 frames took less"
        default: ""
        }
    }
}
