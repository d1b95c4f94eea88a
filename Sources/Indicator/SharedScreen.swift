// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// What is shared at present, as people are told.
public struct SharedScreen: Equatable, Sendable {
    /// Names the share among the others.
    public let key: String
    /// `Monitor, 1920x1080`.
    public let source: String
    /// Who shares it: a verified identity.
    public let identity: String
    /// What the program says that it is for; may be empty.
    public let title: String
    /// Seconds since the epoch.
    public let since: Int
    /// How many read it.
    public let readerCount: Int
    /// Whether they get the placeholder.
    public let isMuted: Bool

    /// A share.
    public init(key: String, source: String, identity: String, title: String, since: Int, readerCount: Int, isMuted: Bool) {
        (self.key, self.source, self.identity, self.title) = (key, source, identity, title)
        (self.since, self.readerCount, self.isMuted) = (since, readerCount, isMuted)
    }

    /// Who shares, what, and what that one says that it is for: last, and apart from what is known.
    var headline: String { "\(identity.asPlainText) · \(source)\(title.isEmpty ? "" : " · \(quoted(title))")" }

    /// Since when, and how many look.
    var detail: String {
        var (moment, parts) = (time_t(since), tm())
        localtime_r(&moment, &parts)
        let minute = parts.tm_min < 10 ? "0\(parts.tm_min)" : "\(parts.tm_min)"
        let readers = readerCount == 1 ? "1 reader" : "\(readerCount) readers"
        return "Since \(parts.tm_hour):\(minute) · \(readers)\(isMuted ? " · muted" : "")"
    }
}

/// What a program says, in quotes. Its direction of writing is its own: nothing around it moves (Unicode's isolates).
func quoted(_ text: String) -> String { "“\u{2068}\(text.asPlainText)\u{2069}”" }
