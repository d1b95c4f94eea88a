// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// A command line that plays the stream on its standard input.
struct PlayerCommand: Equatable {
    /// For messages.
    let name: String
    let words: [String]

    /// Those that are looked for, the best first. Each shows what comes at once, and ends with the stream. None is heard: it would play into the very
    /// sound that is shared.
    private static let known = [
        // Pictures have their times, but are to be seen when they come. The keyboard belongs to the window.
        [
            "mpv", "--profile=low-latency", "--untimed", "--no-audio", "--msg-level=all=error", "--input-terminal=no", "--title=Vitrine",
            "-",
        ],
        // Without a look ahead: a still screen sends one picture only. (Its nobuffer would throw that one away.)
        [
            "ffplay", "-hide_banner", "-loglevel", "error", "-nostats", "-probesize", "32", "-analyzeduration", "0", "-flags", "low_delay",
            "-an", "-sync", "ext", "-framedrop", "-autoexit", "-window_title", "Vitrine", "-i", "pipe:0",
        ],
        [
            "gst-launch-1.0", "-q", "fdsrc", "!", "matroskademux", "name=d", "d.video_0", "!", "decodebin", "!", "videoconvert", "!",
            "autovideosink", "sync=false",
        ],
        ["gst-play-1.0", "--quiet", "--no-interactive", "--audiosink=fakesink", "fd://0"],
    ]

    /// A command of the person's, for the shell.
    init(shell text: String) { (name, words) = (text, ["/bin/sh", "-c", text]) }

    /// The best player that is there.
    ///
    /// - Parameter path: folders with colons between them, as in `PATH`.
    init?(in path: String) {
        let folders = path.split(separator: ":")
        let isThere = { (name: String) in folders.contains { Self.isProgram("\($0)/\(name)") } }
        guard let words = Self.known.first(where: { isThere($0[0]) }) else { return nil }
        (name, self.words) = (words[0], words)
    }

    private static func isProgram(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}
