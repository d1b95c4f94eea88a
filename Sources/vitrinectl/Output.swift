// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// Where lines for the person or the calling script go: standard output or standard error.
///
/// On a terminal it can also hold a live line at the bottom, which other lines push down.
final class Output {
    /// How words are set off on a terminal.
    enum Style: String {
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    /// Whether a live line can be shown.
    let isLive: Bool
    /// What became of the last write; nil as long as all went well. Nothing is written afterwards.
    private(set) var failure: Errno?
    /// Called once, when a write has failed.
    var onFailure: (() -> Void)?

    private let descriptor: Int32
    private let isColoured: Bool
    private var liveLine = ""

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        isLive = Terminal.isTerminal(descriptor) && Environment.value(of: "TERM") ?? "dumb" != "dumb"
        isColoured = isLive && Environment.value(of: "NO_COLOR") ?? "" == ""
    }

    /// A text in a style, where there is colour.
    func paint(_ text: String, _ style: Style) -> String {
        isColoured ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Writes lines.
    func lines(_ lines: [String]) {
        let clear = liveLine.isEmpty ? "" : "\r\u{1B}[K"
        write(clear + lines.map { $0 + "\n" }.joined() + liveLine)
    }

    /// Writes one line.
    func line(_ line: String) { lines([line]) }

    /// Shows a line that the next call replaces. Off a terminal nothing happens.
    func live(_ text: String) {
        guard isLive else { return }
        // One column is left free: some terminals wrap as soon as the last one is written.
        liveLine = String(text.prefix(max(0, (Terminal.columns(of: descriptor) ?? 80) - 1)))
        write("\r\u{1B}[K" + liveLine)
    }

    /// Takes the live line away.
    func endLive() {
        guard !liveLine.isEmpty else { return }
        liveLine = ""
        write("\r\u{1B}[K")
    }

    private func write(_ text: String) {
        guard failure == nil else { return }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            do throws(Errno) {
                let chunk = Array(rest)
                rest = rest.dropFirst(try Errno.check { Glibc.write(descriptor, chunk, chunk.count) })
            } catch {
                failure = error
                onFailure?()
                return
            }
        }
    }
}
