// SPDX-License-Identifier: MIT
import DBus
import Testing

@testable import vitrinectl

@Suite struct TextTests {
    @Test func columnsAreAsWideAsTheirWidestCell() {
        var table = TextTable(headings: ["A", "BB", "C"], numeric: [1])
        table.add(["long", "1", "x"])
        table.add(["s", "1000", ""])
        #expect(table.lines == ["A       BB  C", "long     1  x", "s     1000"])
    }

    @Test func rowsMayBeShort() {
        var table = TextTable()
        table.add(["one"])
        table.add(["a", "b"])
        #expect(table.lines == ["one", "a    b"])
        #expect(TextTable().lines == [])
    }

    @Test func paragraphsBreakBetweenWords() {
        #expect(wrapped("aa bb cc", width: 5) == ["aa bb", "cc"])
        #expect(wrapped("aa bb cc", width: 7, indent: 2) == ["aa bb", "  cc"])
        #expect(wrapped("averylongword b", width: 5) == ["averylongword", "b"])
        #expect(wrapped("", width: 5) == [""])
    }

    @Test func timesReadLikeAClock() {
        #expect(clockTime(.seconds(7)) == "0:07")
        #expect(clockTime(.milliseconds(59_999)) == "0:59")
        #expect(clockTime(.seconds(754)) == "12:34")
        #expect(clockTime(.seconds(3_723)) == "1:02:03")
        #expect(clockTime(.seconds(-5)) == "0:00")
    }

    @Test func bytesReadInUnits() {
        #expect(byteCount(0) == "0 B")
        #expect(byteCount(999) == "999 B")
        #expect(byteCount(1_550) == "1.5 kB")
        #expect(byteCount(12_345_678) == "12.3 MB")
        #expect(byteCount(.max).hasSuffix(" TB"))
    }

    @Test func nothingOfAPeerSteersTheTerminal() {
        #expect(printable("plain, größe 日本") == "plain, größe 日本")
        #expect(printable("a\u{1B}[31m\nb\r\u{202E}\u{7F}\u{9B}") == "a\\u{1b}[31m\\u{a}b\\u{d}\\u{202e}\\u{7f}\\u{9b}")
    }

    @Test func differencesOfCountersSurviveARestart() {
        #expect(
            Share.describe(["received": 12, "delivered": 10, "coalesced": 2, "unread": 7], since: ["received": 2, "delivered": 1])
                == "10 received, 9 delivered, 2 coalesced, 7 unread")
        // An agent that was started anew counts from 0.
        #expect(Share.describe(["received": 3], since: ["received": 100]) == "3 received, 0 delivered, 0 coalesced, 0 unread")
    }
}

@Suite struct JSONTests {
    @Test func membersKeepTheirOrder() {
        let json = JSON.members(["b": .unsigned(.max), "a": .array([.null, .bool(true), .integer(-3)]), "c": .object([])])
        #expect(json.text == #"{"b":18446744073709551615,"a":[null,true,-3],"c":{}}"#)
    }

    @Test func stringsAreEscaped() {
        #expect(JSON.string("a\"b\\c/d").text == #""a\"b\\c/d""#)
        #expect(JSON.string("\n\r\t\u{0}\u{1F}\u{7F}\u{9B}\u{2028}").text == #""\n\r\t\u0000\u001f\u007f\u009b\u2028""#)
        #expect(JSON.string("größe 😀").text == "\"größe 😀\"")
        // A letter and the accent that follows it are one character, and an escape before an accent is not.
        #expect(JSON.string("\n\u{301}\"\u{301}").text == "\"\\n\u{301}\\\"\u{301}\"")
    }

    @Test func valuesOfTheBusBecomeJSON() {
        let value = Value.dictionary(
            key: "s", value: "v",
            [
                .init(key: .string("size"), value: .variant(.structure([.uint32(1), .int32(-2)]))),
                .init(key: .string("id"), value: .variant(.string("x"))),
            ])
        #expect(JSON(value).text == #"{"size":[1,-2],"id":"x"}"#)
        #expect(JSON(.double(.infinity)).text == #""inf""#)
    }
}
