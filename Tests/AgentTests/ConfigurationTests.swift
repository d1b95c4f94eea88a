// SPDX-License-Identifier: MIT
import Frames
import Testing

@testable import Agent

@Suite struct ConfigurationTests {
    private func read(_ text: String) -> Configuration {
        var configuration = Configuration()
        configuration.add(text, from: "vitrine.conf")
        return configuration
    }

    @Test func everyOptionOfTheDesktopTrackCanBeSet() {
        let configuration = read(
            """
            # The classroom.
            preset = h720p
              max-size=800x600\t
            fps = 5
            bitrate = 1500k
            sources = monitor, virtual
            cursor = hidden
            title = Room 7 = the blue one
            persist = forever
            restore-key = room
            allow = app:org.example.A, exe:/usr/bin/b
            allow = unit:c.service
            """)
        #expect(configuration.complaints == [])
        var expected = TrackOptions()
        expected.preset = Preset.all[2]
        expected.maxSize = PixelSize(width: 800, height: 600)
        (expected.frameRate, expected.bitrate, expected.sources) = (5, 1_500_000, 5)
        (expected.cursor, expected.cursorIsExplicit) = (.hidden, true)
        (expected.title, expected.persistence, expected.restoreKey) = ("Room 7 = the blue one", .forever, "room")
        expected.allow = ["app:org.example.A", "exe:/usr/bin/b", "unit:c.service"]
        #expect(configuration.options == expected)
    }

    @Test(arguments: ["restore-key = room\npersist = forever\n", "persist = forever\nrestore-key = room\n"])
    func whatIsRememberedMayBeNamedInAnyOrder(text: String) {
        let configuration = read(text)
        #expect(configuration.complaints == [])
        #expect(configuration.options.persistence == .forever && configuration.options.restoreKey == "room")
    }

    /// The machine's file has a name for what is remembered; the user's has nothing remembered.
    @Test func nothingIsRememberedWhenTheUserSaysSo() {
        var configuration = read("persist = forever\nrestore-key = room\n")
        configuration.add("persist = none\n", from: "user")
        #expect(configuration.complaints == [])
        #expect(configuration.options.persistence == .none && configuration.options.restoreKey.isEmpty)
    }

    private static let wrong = [
        "preset = h4320p", "preset", "= h720p", "fps = fast", "fps = -1", "bitrate = 5000M", "max-size = 800", "max-size = x",
        "sources = camera",
        "sources =", "cursor = sprite", "allow = somebody", "audio = loud", "colour = blue", "multiple = perhaps", "wait = yes",
        "restore-key = alone", "title = \u{7}",
    ]

    @Test(arguments: wrong) func aWrongLineIsReportedAndLeftOut(line: String) {
        let configuration = read("fps = 10\n\n\(line)\r\nbitrate = 1M\n")
        #expect(configuration.complaints.count == 1)
        #expect(configuration.complaints.first?.hasPrefix("vitrine.conf:3: ") == true, "\(configuration.complaints)")
        #expect(configuration.options.frameRate == 10 && configuration.options.bitrate == 1_000_000)
        #expect(configuration.options.preset == .standard)
    }

    @Test func whatIsWrongIsSaidWithTheLine() {
        let configuration = read("preset = h9000p\nnonsense\ncolour = blue\nallow = nobody\nallow = exe:/a\n")
        let complaints = configuration.complaints
        #expect(complaints.count == 4)
        #expect(complaints[0].hasPrefix("vitrine.conf:1: \"preset = h9000p\" is left out: \"preset\" is \"h9000p\"; there are h360p"))
        #expect(complaints[1] == "vitrine.conf:2: \"nonsense\" is left out: it is not of the form key = value")
        #expect(complaints[2].hasPrefix("vitrine.conf:3: \"colour = blue\" is left out: there is no key \"colour\"; there are preset, "))
        #expect(complaints[3].hasPrefix("vitrine.conf:4: \"allow = nobody\" is left out: "))
        // One wrong line spoils no other.
        #expect(configuration.options.allow == ["exe:/a"])
    }

    @Test func theOrderOfLinesMeansNothing() {
        let configuration = read("restore-key = room\nfps = 5\npreset = h720p\npersist = session\n")
        #expect(configuration.complaints == [])
        #expect(configuration.options.frameRate == 5 && configuration.options.restoreKey == "room")
    }

    @Test func aFileThatIsNotThereIsNoMistake() {
        let configuration = Configuration.read(["/nonexistent/vitrine.conf", "/dev/null/vitrine.conf"])
        #expect(configuration.complaints == [] && configuration.options == TrackOptions())
        #expect(Configuration.read(["/proc"]).complaints.count == 1)
    }
}
