// SPDX-License-Identifier: MIT
import Testing

@testable import vitrinectl

@Suite struct ArgumentsTests {
    private static let verb = Verb(
        name: "try", summary: "try things", details: [],
        operands: [OperandSpec(name: "FILE"), OperandSpec(name: "SECOND", isRequired: false)],
        options: [
            OptionSpec(name: "flag", aliases: ["banner"], letter: "f", text: ""),
            OptionSpec(name: "rate", letter: "r", value: "N", text: ""),
            OptionSpec(name: "size", value: "WxH", text: ""),
            OptionSpec(name: "seconds", value: "S", text: ""),
        ],
        run: { _, _ throws(Failure) in .done })

    private func parse(_ words: String...) throws(Failure) -> Arguments { try Arguments(words, of: Self.verb) }

    @Test func optionsAndOperandsMix() throws {
        let arguments = try parse("--rate", "5", "out", "-f", "--size=10x20")
        #expect(arguments.operands == ["out"])
        #expect(arguments.has("flag"))
        #expect(try arguments.number("rate") == 5)
        let size = try arguments.size("size")
        #expect(size?.width == 10 && size?.height == 20)
    }

    @Test func anAliasIsTheSameOption() throws {
        #expect(try parse("x", "--banner").has("flag"))
    }

    @Test func theLastOfTwoCounts() throws {
        let arguments = try parse("x", "--rate=1", "--rate=2")
        #expect(arguments.string("rate") == "2")
        #expect(arguments.strings("rate") == ["1", "2"])
    }

    @Test func lettersGroupAndTakeTheRestAsValue() throws {
        let arguments = try parse("x", "-fr30")
        #expect(arguments.has("flag"))
        #expect(arguments.string("rate") == "30")
        #expect(try parse("x", "-r", "7").string("rate") == "7")
    }

    @Test func dashesEndOptionsAndOneDashIsAnOperand() throws {
        #expect(try parse("--", "--rate").operands == ["--rate"])
        #expect(try parse("-").operands == ["-"])
        #expect(try parse("--", "--help").has("help") == false)
    }

    @Test func valuesMayBeginWithADash() throws {
        #expect(try parse("x", "--rate", "-5").string("rate") == "-5")
    }

    @Test func helpWinsOverMistakes() throws {
        #expect(try parse("--nonsense", "--help").has("help"))
        #expect(try parse("-h").has("help"))
    }

    @Test(arguments: [
        (["x", "--flagg"], UsageError.unknownOption("--flagg", verb: "try", nearest: "--flag")),
        (["x", "--zzzzzz"], .unknownOption("--zzzzzz", verb: "try", nearest: nil)),
        (["x", "-z"], .unknownOption("-z", verb: "try", nearest: nil)),
        (["x", "--rate"], .missingValue(option: "--rate", verb: "try")),
        (["x", "-r"], .missingValue(option: "-r", verb: "try")),
        (["x", "--flag=1"], .unexpectedValue(option: "--flag", verb: "try")),
        ([], .missingOperand("FILE", verb: "try")),
        (["a", "b", "c"], .unexpectedOperand("c", verb: "try")),
    ])
    func mistakesAreNamed(words: [String], expected: UsageError) {
        #expect(throws: Failure.usage(expected)) { try Arguments(words, of: Self.verb) }
    }

    @Test(arguments: ["", "x", "-1", "4294967296", "1.5", "0x10", " 1"])
    func wrongNumbersAreRefused(text: String) throws {
        let arguments = try parse("x", "--rate", text)
        #expect(throws: Failure.self) { try arguments.number("rate") }
    }

    @Test func rangesHold() throws {
        #expect(try parse("x", "--rate", "4294967295").number("rate") == .max)
        let arguments = try parse("x", "--rate", "9")
        #expect(throws: Failure.self) { try arguments.number("rate", in: 1...8) }
    }

    @Test(arguments: [("4000000", 4_000_000), ("4M", 4_000_000), ("2500k", 2_500_000), ("0", 0)] as [(String, UInt32)])
    func bitratesTakeSuffixes(text: String, bits: UInt32) throws {
        #expect(try parse("x", "--rate", text).bitrate("rate") == bits)
    }

    @Test(arguments: ["M", "5000M", "1G", "-1k", "1.5M", ""])
    func wrongBitratesAreRefused(text: String) throws {
        let arguments = try parse("x", "--rate", text)
        #expect(throws: Failure.self) { try arguments.bitrate("rate") }
    }

    @Test(arguments: ["", "10", "10x", "x10", "10x20x30", "-1x5", "10 x 20"])
    func wrongSizesAreRefused(text: String) throws {
        let arguments = try parse("x", "--size", text)
        #expect(throws: Failure.self) { try arguments.size("size") }
    }

    @Test func regionsAreFourNumbersOrNone() throws {
        #expect(try parse("x").regions("size") == nil)
        #expect(try parse("x", "--size", "none").regions("size") == [])
        let expected = [Region(x: -1, y: 2, width: 3, height: 4), Region(x: 0, y: 0, width: 5, height: 6)]
        #expect(try parse("x", "--size=-1,2,3,4", "--size", "0,0,5,6").regions("size") == expected)
    }

    @Test(arguments: ["", "1,2,3", "1,2,3,4,5", "1,2,-3,4", "1,,3,4", "a,b,c,d", "1, 2, 3, 4", "4294967296,0,1,1"])
    func wrongRegionsAreRefused(text: String) throws {
        let arguments = try parse("x", "--size", text)
        #expect(throws: Failure.self) { try arguments.regions("size") }
    }

    @Test func noneIsNoPartAmongOthers() throws {
        let arguments = try parse("x", "--size", "none", "--size", "0,0,1,1")
        #expect(throws: Failure.self) { try arguments.regions("size") }
    }

    @Test func secondsMayHaveAFraction() throws {
        #expect(try parse("x", "--seconds", "2.5").duration("seconds") == .milliseconds(2_500))
    }

    @Test(arguments: ["0", "-1", "nan", "inf", "1e300", "", "ten"])
    func wrongSecondsAreRefused(text: String) throws {
        let arguments = try parse("x", "--seconds", text)
        #expect(throws: Failure.self) { try arguments.duration("seconds") }
    }

    @Test func aWordIsOneOfSome() throws {
        let arguments = try parse("x", "--rate", "slow")
        #expect(try arguments.word("rate", of: ["slow", "fast"]) == "slow")
        #expect(throws: Failure.usage(.badValue("slow", of: "--rate", expected: "one of a, b", verb: "try"))) {
            try arguments.word("rate", of: ["a", "b"])
        }
    }

    @Test func messagesNameTheThing() {
        #expect(UsageError.unknownVerb("shaer", nearest: "share").message == "there is no verb 'shaer'; did you mean 'share'?")
        #expect(UsageError.unknownVerb("x\u{1B}[2J", nearest: nil).message == "there is no verb 'x\\u{1b}[2J'")
    }
}
