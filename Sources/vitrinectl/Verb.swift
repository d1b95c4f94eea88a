// SPDX-License-Identifier: MIT

/// One option of a verb, as `--name` or `--name VALUE`.
struct OptionSpec: Sendable {
    /// Without the dashes.
    let name: String
    /// Other names of the same option, without the dashes.
    var aliases: [String] = []
    /// One letter, used with one dash.
    var letter: Character?
    /// What the value is called in the help, or the words that it may be, with bars between them; nil: the option takes none.
    var value: String?
    /// The line of the help.
    let text: String
}

/// What stands on a verb's command line beside its options.
struct OperandSpec: Sendable {
    let name: String
    var isRequired = true
}

/// One verb of the program: what it takes, what its help says, what it does.
struct Verb: Sendable {
    let name: String
    /// One line, for the list of verbs.
    let summary: String
    /// Paragraphs for the verb's own help; each is wrapped when it is shown.
    let details: [String]
    var operands: [OperandSpec] = []
    var options: [OptionSpec] = []
    /// Does the work.
    let run: @Sendable (Context, Arguments) throws(Failure) -> ExitCode

    /// All verbs, in the order of the help.
    static let all: [Verb] = [
        ShareVerb.verb, SwitchVerb.verb, StopVerb.verb, ToggleVerb.verb, MuteVerb.verb, StatusVerb.verb, WatchVerb.verb, RecordVerb.verb,
        ListVerb.verb,
        StatsVerb.verb,
        ForgetVerb.verb, DoctorVerb.verb,
    ]

    /// What every verb takes.
    static let commonOptions = [OptionSpec(name: "help", letter: "h", text: "show this help")]

    /// The option that has this name or alias.
    func option(named name: String) -> OptionSpec? {
        (options + Verb.commonOptions).first { $0.name == name || $0.aliases.contains(name) }
    }

    /// The option that has this letter.
    func option(lettered letter: Character) -> OptionSpec? {
        (options + Verb.commonOptions).first { $0.letter == letter }
    }
}
