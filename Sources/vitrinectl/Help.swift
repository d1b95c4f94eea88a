// SPDX-License-Identifier: MIT
import Contract

/// The texts of `--help` and `--version`.
enum Help {
    private static let width = 100

    /// The one line of `--version`.
    static var version: String { "vitrinectl \(Contract.packageVersion)" }

    /// The program's help.
    static var program: [String] {
        var table = TextTable()
        for verb in Verb.all { table.add(["  \(verb.name)", verb.summary]) }
        return [
            "Usage: vitrinectl VERB [OPTION]...",
            "",
            "Shares this desktop's screen through the Vitrine agent.",
            "",
            "Verbs:",
        ] + table.lines + [
            "",
            "Options:",
            "  -h, --help  show this help; 'vitrinectl help VERB' or 'vitrinectl VERB --help' shows a verb's",
            "  --version   show the version",
            "",
            "Exit codes:",
            "  0 done   1 failed   2 wrong usage   3 cancelled   4 unavailable   5 timed out",
            "",
            "Environment:",
            "  NO_COLOR    when set, nothing is coloured",
        ]
    }

    /// A verb's help.
    static func verb(_ verb: Verb) -> [String] {
        var lines = [usage(verb)]
        for paragraph in [verb.summary.prefix(1).uppercased() + verb.summary.dropFirst() + "."] + verb.details {
            lines += [""] + wrapped(paragraph, width: width)
        }
        lines += ["", "Options:"]
        let options = verb.options + Verb.commonOptions
        let names = options.map(heading)
        let column = (names.map(\.count).max() ?? 0) + 4
        for (option, name) in zip(options, names) {
            let text = wrapped(option.text, width: width, indent: column)
            lines.append("  \(name)\(String(repeating: " ", count: column - 2 - name.count))\(text.first ?? "")")
            lines += text.dropFirst()
        }
        return lines
    }

    /// The line that says how a verb is called.
    static func usage(_ verb: Verb) -> String {
        let operands = verb.operands.map { $0.isRequired ? " \($0.name)" : " [\($0.name)]" }.joined()
        return "Usage: vitrinectl \(verb.name)\(operands) [OPTION]..."
    }

    private static func heading(_ option: OptionSpec) -> String {
        let names = (option.letter.map { ["-\($0)"] } ?? []) + ([option.name] + option.aliases).map { "--\($0)" }
        return names.joined(separator: ", ") + (option.value.map { " \($0)" } ?? "")
    }
}
