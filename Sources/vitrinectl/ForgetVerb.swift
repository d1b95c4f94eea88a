// SPDX-License-Identifier: MIT
import Choices
import Loop

/// `vitrinectl forget`.
enum ForgetVerb {
    static let verb = Verb(
        name: "forget", summary: "forget what programs may share again without the picker",
        details: [
            "A share that was started to be remembered for ever skips the picker the next time the same program starts it. This forgets all such "
                + "choices, or those of one program, which is named as 'vitrinectl list' does: app:ID or exe:PATH. The next share asks again.",
            "With --list nothing is forgotten: each line names a program, and its own name for the choice where it has one.",
        ],
        operands: [OperandSpec(name: "PROGRAM", isRequired: false)],
        options: [OptionSpec(name: "list", letter: "l", text: "only show what is remembered")],
        run: { context, arguments throws(Failure) in
            guard let file = ChoiceFile.ofUser else { throw .ended(.failed, "neither XDG_STATE_HOME nor HOME is set") }
            let program = arguments.operands.first
            if let program, !["app:", "unit:", "exe:/"].contains(where: { program.hasPrefix($0) && program != $0 }) {
                let expected = "a program is named app:ID or exe:/PATH, as 'vitrinectl forget --list' shows it"
                throw .usage(.badValue(program, of: "PROGRAM", expected: expected, verb: arguments.verb))
            }
            do throws(Errno) {
                if arguments.has("list") {
                    let lines = chosen(try file.choices(), program).map(line)
                    context.out.lines(lines)
                    // Not among the programs, for who reads the list.
                    if lines.isEmpty { context.err.line("Nothing is remembered\(program.map { " of \(printable($0))" } ?? "").") }
                    return .done
                }
                var forgotten: [Choice] = []
                try file.change { choices in
                    forgotten = chosen(choices, program)
                    choices.removeAll { forgotten.contains($0) }
                }
                let nothing =
                    program.map { "Nothing was remembered of \(printable($0)). 'vitrinectl forget --list' shows what is." }
                    ?? "Nothing was remembered."
                context.out.lines(forgotten.isEmpty ? [nothing] : forgotten.map { "Forgotten: \(line($0))" })
                return .done
            } catch {
                throw .ended(.failed, "the remembered choices cannot be changed: \(error)")
            }
        })

    private static func chosen(_ choices: [Choice], _ program: String?) -> [Choice] {
        choices.filter { program == nil || $0.identity == program }
    }

    private static func line(_ choice: Choice) -> String {
        printable(choice.identity) + (choice.name.isEmpty ? "" : " \"\(printable(choice.name))\"")
    }
}
