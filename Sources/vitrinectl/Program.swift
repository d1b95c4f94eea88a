// SPDX-License-Identifier: MIT
import Glibc

/// From the command line to the exit code.
enum Program {
    /// Runs what the words ask for.
    ///
    /// - Parameter words: the command line without the program's own name.
    static func run(_ words: [String]) -> ExitCode {
        let context: Context
        do throws(Failure) {
            context = try Context()
        } catch {
            Output(2).line("vitrinectl: \(error.message)")
            return error.code
        }
        var code: ExitCode
        do throws(Failure) {
            code = try perform(words, context)
        } catch {
            context.out.endLive()
            // Who reads no more has ended it, and need not be told so.
            if !context.hasHungUp || error != Failure(.interrupted) { complain(error, context.err) }
            code = error.code
        }
        // A reader that has seen enough, or a terminal that was closed, is no failure; a full disk is.
        if let failure = context.out.failure, ![EPIPE, EIO].contains(failure.code) {
            context.err.line("vitrinectl: cannot write the output: \(failure)")
            if code == .done { code = .failed }
        }
        return code
    }

    private static func perform(_ words: [String], _ context: Context) throws(Failure) -> ExitCode {
        guard let word = words.first else { throw .usage(.noVerb) }
        switch word {
        case "--help", "-h", "help":
            guard let name = words.dropFirst().first, !name.hasPrefix("-") else {
                context.out.lines(Help.program)
                return .done
            }
            context.out.lines(Help.verb(try verb(named: name)))
            return .done
        case "--version", "-V":
            context.out.line(Help.version)
            return .done
        default: break
        }
        if word.hasPrefix("-") {
            throw .usage(.unknownOption(word, verb: "", nearest: nearestWord(to: word, in: ["--help", "--version"])))
        }
        let verb = try verb(named: word)
        let arguments = try Arguments(Array(words.dropFirst()), of: verb)
        if arguments.has("help") {
            context.out.lines(Help.verb(verb))
            return .done
        }
        return try verb.run(context, arguments)
    }

    private static func verb(named word: String) throws(Failure) -> Verb {
        if let verb = Verb.all.first(where: { $0.name == word }) { return verb }
        throw .usage(.unknownVerb(word, nearest: nearestWord(to: word, in: Verb.all.map(\.name))))
    }

    private static func complain(_ failure: Failure, _ err: Output) {
        if !failure.message.isEmpty { err.line("vitrinectl: \(err.paint(failure.message, failure.code == .cancelled ? .yellow : .red))") }
        guard case .usage(let error) = failure else { return }
        if let verb = Verb.all.first(where: { $0.name == error.verb }) {
            err.lines([Help.usage(verb), "'vitrinectl \(verb.name) --help' says more."])
        } else {
            err.lines([
                "Usage: vitrinectl VERB [OPTION]...", "Verbs: \(Verb.all.map(\.name).joined(separator: ", ")).",
                "'vitrinectl --help' says more.",
            ])
        }
    }
}
