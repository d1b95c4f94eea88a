// SPDX-License-Identifier: MIT
import Testing

@testable import vitrinectl

@Suite struct HelpTests {
    @Test func theProgramsHelpNamesEachVerb() {
        let text = Help.program.joined(separator: "\n")
        for verb in Verb.all { #expect(text.contains("  \(verb.name) ")) }
    }

    @Test(arguments: Verb.all.map(\.name))
    func aVerbsHelpNamesEachOption(name: String) throws {
        let verb = try #require(Verb.all.first { $0.name == name })
        let lines = Help.verb(verb)
        for option in verb.options + Verb.commonOptions { #expect(lines.contains { $0.contains("--\(option.name)") }) }
        for line in lines { #expect(line.count <= 110, "\(line)") }
    }

    @Test(arguments: Verb.all.map(\.name))
    func noTwoOptionsOfAVerbShareAName(name: String) throws {
        let verb = try #require(Verb.all.first { $0.name == name })
        let options = verb.options + Verb.commonOptions
        let names = options.flatMap { [$0.name] + $0.aliases }
        #expect(Set(names).count == names.count)
        let letters = options.compactMap(\.letter)
        #expect(Set(letters).count == letters.count)
    }

    @Test func verbsHaveDifferentNames() {
        #expect(Set(Verb.all.map(\.name)).count == Verb.all.count)
    }
}

@Suite struct NearestWordTests {
    private let verbs = Verb.all.map(\.name)

    @Test(arguments: [
        ("shaer", "share"), ("sahre", "share"), ("stauts", "status"), ("recrd", "record"), ("togle", "toggle"), ("rec", "record"),
        ("lst", "list"), ("doctro", "doctor"),
    ])
    func slipsAreUnderstood(typed: String, meant: String) { #expect(nearestWord(to: typed, in: verbs) == meant) }

    @Test(arguments: ["", "x", "publish", "--share-it"])
    func othersAreNot(typed: String) { #expect(nearestWord(to: typed, in: verbs) == nil) }

    @Test func distances() {
        #expect(editDistance("", "abc") == 3)
        #expect(editDistance("abc", "abc") == 0)
        #expect(editDistance("ab", "ba") == 1)
        #expect(editDistance("kitten", "sitting") == 3)
    }
}
