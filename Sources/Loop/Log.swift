// SPDX-License-Identifier: MIT
import Glibc
import Synchronization

/// How much a line matters, with the priorities of `syslog(3)`.
public enum LogLevel: Int, Comparable, CaseIterable, Sendable {
    /// Something that was asked for could not be done.
    case error = 3
    /// It works, but not as it should; the line says the remedy.
    case warning = 4
    /// One line a transition.
    case info = 6
    /// What a developer wants to see.
    case debug = 7

    /// The level's name in options and in `VITRINE_LOG`.
    public var name: String { "\(self)" }

    /// The level of that name.
    public init?(name: String) {
        guard let level = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    /// Orders by detail: `error` is the least.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// What a line says beside its words, as `key=value`: for who looks for it. The order stays.
public struct LogFields: ExpressibleByDictionaryLiteral, Sendable {
    private(set) var entries: [(key: String, value: String)]

    /// Makes them of `["reason": "stopped"]`.
    public init(dictionaryLiteral elements: (String, String)...) { entries = elements.map { (key: $0.0, value: $0.1) } }

    /// Adds fields at the end.
    public mutating func add(_ more: LogFields) { entries += more.entries }

    /// As it stands in a line.
    var text: String {
        entries.map { key, value in
            let isWord = !value.isEmpty && !value.contains { $0 == " " || $0 == "\"" }
            return isWord ? "\(key)=\(value)" : "\(key)=\"\(value)\""
        }.joined(separator: " ")
    }
}

/// Lines on standard error, each with the area it comes from: `portal: …`.
///
/// Thread: any. A line is written by one `write(2)`, so that lines of several threads never mix.
/// Where the journal reads standard error (`JOURNAL_STREAM`), it gets each line as a record with its fields; where it takes none, the line
/// carries its priority instead of a time.
public struct Log: Sendable {
    private static let threshold = Atomic<Int>(LogLevel.info.rawValue)
    /// Levels of areas that have one of their own, ...
    private static let areaLevels = Mutex<[String: LogLevel]>([:])
    /// ... and the most detailed of all levels, so that a line that nobody wants costs no lock.
    private static let mostDetailed = Atomic<Int>(LogLevel.info.rawValue)
    /// The journal names the device and the inode of the stream that it reads; a child of a service may have another standard error.
    /// https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html
    private static let readByJournal: Bool = {
        var status = stat()
        guard let stream = Environment.value(of: "JOURNAL_STREAM"), fstat(2, &status) == 0 else { return false }
        return stream == "\(status.st_dev):\(status.st_ino)"
    }()

    /// Where records go; nil where the journal does not read standard error.
    private static let journal: JournalSocket? = readByJournal ? JournalSocket() : nil

    /// The least important level that is still written.
    public static var level: LogLevel {
        get { LogLevel(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
        set {
            threshold.store(newValue.rawValue, ordering: .relaxed)
            noteLevels()
        }
    }

    /// Gives one area a level of its own; nil takes it back.
    public static func setLevel(_ level: LogLevel?, of area: String) {
        areaLevels.withLock { $0[area] = level }
        noteLevels()
    }

    private static func noteLevels() {
        let most = areaLevels.withLock { $0.values.reduce(Log.level) { max($0, $1) } }
        mostDetailed.store(most.rawValue, ordering: .relaxed)
    }

    private var level: LogLevel { Log.areaLevels.withLock { $0[area] } ?? Log.level }

    private let area: String

    /// A log of one area, named as its module is, in lower case.
    public init(_ area: String) { self.area = area }

    /// Something that was asked for could not be done.
    public func error(_ message: @autoclosure () -> String) { write(.error, message) }
    /// It works, but not as it should.
    public func warning(_ message: @autoclosure () -> String, of track: String? = nil) { write(.warning, message, track) }
    /// A transition.
    ///
    /// - Parameters:
    ///   - message: in words; "" where the fields say it all.
    ///   - track: the object whose transition it is.
    ///   - fields: what may be looked for.
    public func info(_ message: @autoclosure () -> String, of track: String? = nil, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.info, message, track, fields)
    }
    /// A detail for developers.
    public func debug(_ message: @autoclosure () -> String) { write(.debug, message) }

    private func write(_ level: LogLevel, _ message: () -> String, _ track: String? = nil, _ makeFields: () -> LogFields = { [:] }) {
        guard level.rawValue <= Log.mostDetailed.load(ordering: .relaxed), level <= self.level else { return }
        let fields = makeFields()
        let said = [message(), fields.text].filter { !$0.isEmpty }.joined(separator: "; ")
        let whole = (track.map { "\($0): " } ?? "") + said
        let lines = whole.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: true)
        let text = lines.map { String($0).asPlainText }.joined(separator: " | ")
        if let journal = Log.journal {
            let record = JournalRecord("\(area): \(text)", level, area: area, track: track, fields)
            if journal.send(record) { return }
        }
        let prefix: String
        if Log.readByJournal {
            prefix = "<\(level.rawValue)>"
        } else {
            let milliseconds = Instant.now.nanoseconds / 1_000_000
            let fraction = String(milliseconds % 1_000 + 1_000).dropFirst()
            prefix = "\(milliseconds / 1_000).\(fraction) \(level.name) "
        }
        let line = "\(prefix)\(area): \(text)\n"
        var bytes = Array(line.utf8)
        bytes.withUnsafeMutableBytes { buffer in _ = Glibc.write(2, buffer.baseAddress, buffer.count) }
    }
}
