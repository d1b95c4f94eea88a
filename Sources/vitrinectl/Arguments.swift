// SPDX-License-Identifier: MIT

/// What is wrong with a command line.
enum UsageError: Error, Equatable, Sendable {
    case noVerb
    case unknownVerb(String, nearest: String?)
    case unknownOption(String, verb: String, nearest: String?)
    case missingValue(option: String, verb: String)
    case unexpectedValue(option: String, verb: String)
    case badValue(String, of: String, expected: String, verb: String)
    case missingOperand(String, verb: String)
    case unexpectedOperand(String, verb: String)
    /// Options that contradict each other, or anything else in words.
    case wrong(String, verb: String)

    /// One sentence that names the thing.
    var message: String {
        switch self {
        case .noVerb: "say what to do"
        case .unknownVerb(let word, let nearest): "there is no verb '\(printable(word))'\(UsageError.hint(nearest))"
        case .unknownOption(let word, _, let nearest): "unknown option '\(printable(word))'\(UsageError.hint(nearest))"
        case .missingValue(let option, _): "option '\(option)' needs a value"
        case .unexpectedValue(let option, _): "option '\(option)' takes no value"
        case .badValue(let value, let name, let expected, _): "'\(printable(value))' is no value of \(name): \(expected)"
        case .missingOperand(let name, _): "\(name) is missing"
        case .unexpectedOperand(let word, _): "'\(printable(word))' is one word too many"
        case .wrong(let message, _): message
        }
    }

    /// The verb whose help explains it; nil: the program's.
    var verb: String? {
        switch self {
        case .noVerb, .unknownVerb: nil
        case .unknownOption(_, let verb, _), .missingValue(_, let verb), .unexpectedValue(_, let verb), .badValue(_, _, _, let verb),
            .missingOperand(_, let verb), .unexpectedOperand(_, let verb), .wrong(_, let verb):
            verb
        }
    }

    private static func hint(_ nearest: String?) -> String { nearest.map { "; did you mean '\($0)'?" } ?? "" }
}

/// The words after a verb, sorted into options and operands.
struct Arguments: Equatable, Sendable {
    let verb: String
    /// By the option's first name; one entry for each time it was given, "" for an option without a value.
    private(set) var values: [String: [String]] = [:]
    private(set) var operands: [String] = []

    /// Sorts a verb's words.
    ///
    /// Options and operands may be mixed; `--name=value` and `--name value` are the same; after `--` all is operand; `-` alone is one.
    /// `--help` wins over anything that is wrong behind or before it.
    init(_ words: [String], of verb: Verb) throws(Failure) {
        self.verb = verb.name
        let beforeDashes = words.prefix { $0 != "--" }
        if beforeDashes.contains("--help") || beforeDashes.contains("-h") {
            values["help"] = [""]
            return
        }
        var rest = words[...]
        var onlyOperands = false
        while let word = rest.popFirst() {
            if onlyOperands || word == "-" || !word.hasPrefix("-") {
                operands.append(word)
            } else if word == "--" {
                onlyOperands = true
            } else if word.hasPrefix("--") {
                try takeLong(word, &rest, verb)
            } else {
                try takeLetters(word, &rest, verb)
            }
        }
        if operands.count > verb.operands.count {
            throw Failure.usage(.unexpectedOperand(operands[verb.operands.count], verb: verb.name))
        }
        if operands.count < verb.operands.count, verb.operands[operands.count].isRequired {
            throw Failure.usage(.missingOperand(verb.operands[operands.count].name, verb: verb.name))
        }
    }

    private mutating func takeLong(_ word: String, _ rest: inout ArraySlice<String>, _ verb: Verb) throws(Failure) {
        let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = parts.first ?? ""
        guard let option = verb.option(named: name) else {
            let known = (verb.options + Verb.commonOptions).flatMap { [$0.name] + $0.aliases }
            throw Failure.usage(.unknownOption("--\(name)", verb: verb.name, nearest: nearestWord(to: name, in: known).map { "--\($0)" }))
        }
        let attached = parts.count == 2 ? parts[1] : nil
        guard option.value != nil else {
            if attached != nil { throw Failure.usage(.unexpectedValue(option: "--\(name)", verb: verb.name)) }
            values[option.name, default: []].append("")
            return
        }
        guard let value = attached ?? rest.popFirst() else { throw Failure.usage(.missingValue(option: "--\(name)", verb: verb.name)) }
        values[option.name, default: []].append(value)
    }

    private mutating func takeLetters(_ word: String, _ rest: inout ArraySlice<String>, _ verb: Verb) throws(Failure) {
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = verb.option(lettered: letter) else {
                throw Failure.usage(.unknownOption("-\(letter)", verb: verb.name, nearest: nil))
            }
            guard option.value != nil else {
                values[option.name, default: []].append("")
                continue
            }
            // The value is what is left of the word, or the next one.
            guard let value = letters.isEmpty ? rest.popFirst() : String(letters) else {
                throw Failure.usage(.missingValue(option: "-\(letter)", verb: verb.name))
            }
            values[option.name, default: []].append(value)
            return
        }
    }

    /// Whether an option was given.
    func has(_ name: String) -> Bool { values[name] != nil }

    /// The value of an option; of one that was given twice, the last.
    func string(_ name: String) -> String? { values[name]?.last }

    /// All values of an option that may be given several times.
    func strings(_ name: String) -> [String] { values[name] ?? [] }

    /// A whole number.
    func number(_ name: String, in range: ClosedRange<UInt32> = 0...UInt32.max) throws(Failure) -> UInt32? {
        guard let text = string(name) else { return nil }
        guard let number = UInt32(text), range.contains(number) else {
            let expected =
                range.upperBound == .max
                ? "a whole number, \(range.lowerBound) or more" : "a whole number from \(range.lowerBound) to \(range.upperBound)"
            throw bad(text, name, expected)
        }
        return number
    }

    /// Bits a second: a whole number, with `k` or `M` for thousands and millions.
    func bitrate(_ name: String) throws(Failure) -> UInt32? {
        guard let text = string(name) else { return nil }
        let factors: [Character: UInt32] = ["k": 1_000, "K": 1_000, "M": 1_000_000, "m": 1_000_000]
        let factor = text.last.flatMap { factors[$0] }
        let digits = factor == nil ? text : String(text.dropLast())
        guard let number = UInt32(digits) else { throw bad(text, name, "bits a second, such as 4000000, 4000k or 4M") }
        let (product, overflow) = number.multipliedReportingOverflow(by: factor ?? 1)
        if overflow { throw bad(text, name, "at most \(UInt32.max) bits a second") }
        return product
    }

    /// Width and height in pixels, as `1280x720`.
    func size(_ name: String) throws(Failure) -> (width: UInt32, height: UInt32)? {
        guard let text = string(name) else { return nil }
        let parts = text.split(omittingEmptySubsequences: false) { $0 == "x" || $0 == "X" || $0 == "×" }
        guard parts.count == 2, let width = UInt32(parts[0]), let height = UInt32(parts[1]) else {
            throw bad(text, name, "a width and a height in pixels, such as 1280x720")
        }
        return (width, height)
    }

    /// Parts of a picture in pixels, each as `X,Y,WIDTH,HEIGHT`; `none` alone is an empty list. Nil when none was given.
    func regions(_ name: String) throws(Failure) -> [Region]? {
        guard let texts = values[name] else { return nil }
        if texts == ["none"] { return [] }
        if texts.contains("none") {
            throw .usage(.wrong("--\(name) none takes all away: give it alone, or leave it out", verb: verb))
        }
        var regions: [Region] = []
        for text in texts {
            let parts = text.split(separator: ",", omittingEmptySubsequences: false)
            guard parts.count == 4, let x = Int32(parts[0]), let y = Int32(parts[1]), let width = UInt32(parts[2]),
                let height = UInt32(parts[3])
            else { throw bad(text, name, "X,Y,WIDTH,HEIGHT in pixels, such as 0,0,640,480, or none") }
            if width == 0 || height == 0 { throw bad(text, name, "it is empty; none takes away what was set") }
            regions.append(Region(x: x, y: y, width: width, height: height))
        }
        return regions
    }

    /// Seconds, with a fraction if need be; more than 0.
    func duration(_ name: String) throws(Failure) -> Duration? {
        guard let text = string(name) else { return nil }
        // A century is more than anybody records, and fits every clock.
        guard let seconds = Double(text), seconds > 0, seconds <= 3_155_760_000 else {
            throw bad(text, name, "a number of seconds, more than 0")
        }
        return .seconds(seconds)
    }

    /// One of some words.
    func word(_ name: String, of words: [String]) throws(Failure) -> String? {
        guard let text = string(name) else { return nil }
        if !words.contains(text) { throw bad(text, name, "one of \(words.joined(separator: ", "))") }
        return text
    }

    private func bad(_ text: String, _ name: String, _ expected: String) -> Failure {
        .usage(.badValue(text, of: "--\(name)", expected: expected, verb: verb))
    }
}
