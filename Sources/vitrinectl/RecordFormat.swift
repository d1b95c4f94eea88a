// SPDX-License-Identifier: MIT

/// What a recording is written as, by the contract's names.
enum RecordFormat: String, CaseIterable {
    case webm, ivf, y4m

    /// The names, as the help lists them.
    static var words: String { allCases.map(\.rawValue).joined(separator: "|") }

    private static let extensions: [String: RecordFormat] = ["webm": .webm, "mkv": .webm, "ivf": .ivf, "y4m": .y4m]

    /// The format that a file's name ends in; WebM for a name that ends in none, such as a pipe's.
    ///
    /// - Returns: nil when the name ends in something else.
    init?(fileName path: String) {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else {
            self = .webm
            return
        }
        guard let format = Self.extensions[name[name.index(after: dot)...].lowercased()] else { return nil }
        self = format
    }

    /// What the command line asks for: `--format`, else what the file's name says.
    init(_ arguments: Arguments, file: String) throws(Failure) {
        let names = Self.allCases.map(\.rawValue)
        if let word = try arguments.word("format", of: names), let format = RecordFormat(rawValue: word) {
            self = format
            return
        }
        guard let format = RecordFormat(fileName: file) else {
            let endings = Self.extensions.keys.sorted().map { ".\($0)" }.joined(separator: ", ")
            throw .usage(
                .wrong(
                    "'\(printable(file))' names no format that can be recorded: let it end in one of \(endings), or say with --format what "
                        + "to write. 'ffmpeg -i FILE.webm FILE.mp4' makes other formats of a recording", verb: arguments.verb))
        }
        self = format
    }
}
