// SPDX-License-Identifier: MIT
import Loop
import Testing

@Suite struct PlainTextTests {
    @Test(arguments: [
        "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}", "\u{2068}", "\u{2069}", "\u{200E}", "\u{200F}",
        "\u{061C}", "\u{0}", "\u{7}", "\u{1B}", "\u{7F}", "\u{85}", "\u{9B}", "\u{2028}", "\u{2029}", "\u{AD}", "\u{FEFF}", "\u{E0041}",
        "\n", "\r",
    ]) func whatIsNotSeenIsShownAsNothing(text: String) {
        #expect("a\(text)b".asPlainText == "a\u{FFFD}b")
        #expect("\(text)\u{301}".asPlainText == "\u{FFFD}\u{301}")
    }

    @Test(arguments: ["", "exe:/usr/bin/cat", "Schöne Grüße", "שלום", "مرحبا", "👩‍🏫 𝒳", "می‌خواهم", "e\u{301}", "<&>"])
    func whatPeopleWriteStaysAsItIs(text: String) {
        #expect(text.asPlainText == text)
    }

    @Test func twoCharactersThatAreOneToSwiftAreTwo() {
        #expect("a\r\nb".asPlainText == "a\u{FFFD}\u{FFFD}b")
    }
}
