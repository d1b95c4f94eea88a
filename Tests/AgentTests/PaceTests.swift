// SPDX-License-Identifier: MIT
import Frames
import Testing

@testable import Agent

@Suite struct PaceTests {
    /// After which windows a lower preset is suggested; each is what came, what of it was coalesced, and whether an encoder ran.
    private func suggestions(_ windows: [(received: UInt64, coalesced: UInt64, isEncoding: Bool)]) -> [Int] {
        var statistics = FrameStatistics()
        (statistics.received, statistics.coalesced) = (1_000, 900)
        var rule = PaceRule(statistics)
        var found: [Int] = []
        for (index, window) in windows.enumerated() {
            statistics.received += window.received
            statistics.coalesced += window.coalesced
            if rule.windowEnded(statistics, encoderIsRunning: window.isEncoding) { found.append(index) }
        }
        return found
    }

    @Test func threeSlowWindowsInARowAreTooMany() {
        #expect(suggestions([(300, 31, true), (300, 31, true)]) == [])
        #expect(suggestions([(300, 31, true), (300, 31, true), (300, 31, true)]) == [2])
    }

    @Test func aTenthIsNotTooMany() {
        #expect(suggestions([(300, 30, true), (300, 30, true), (300, 30, true), (300, 30, true)]) == [])
        #expect(suggestions([(0, 0, true), (0, 0, true), (0, 0, true)]) == [])
    }

    @Test func aWindowThatKeepsUpBeginsAnew() {
        #expect(suggestions([(300, 299, true), (300, 299, true), (300, 3, true), (300, 299, true), (300, 299, true)]) == [])
        #expect(suggestions([(300, 99, true), (300, 3, true), (300, 99, true), (300, 99, true), (300, 99, true)]) == [4])
    }

    @Test func withoutAnEncoderNothingIsTooHigh() {
        #expect(suggestions([(300, 299, false), (300, 299, false), (300, 299, false)]) == [])
        #expect(suggestions([(300, 299, true), (300, 299, true), (300, 299, false), (300, 299, true), (300, 299, true)]) == [])
    }

    @Test func itIsSaidAgainAfterAsManyWindows() {
        let slow: (UInt64, UInt64, Bool) = (300, 100, true)
        #expect(suggestions([slow, slow, slow, slow, slow, slow, slow]) == [2, 5])
    }

    /// The preset, what is sent, at most so many frames a second, and the preset that is suggested.
    private static let lower: [(String, PixelSize, UInt32, String?)] = [
        ("h1080p", PixelSize(width: 1920, height: 1080), 30, "h720p"),
        ("native", PixelSize(width: 3840, height: 2160), 60, "h2160p"),
        // Fewer pixels than most presets allow: only fewer frames help, or a preset that is smaller yet.
        ("native", PixelSize(width: 640, height: 360), 60, "h2160p"),
        ("h2160p", PixelSize(width: 1280, height: 720), 30, "h480p"),
        ("h1440p", PixelSize(width: 1280, height: 720), 0, "h1080p"),
        ("h720p", PixelSize(width: 320, height: 200), 30, "h480p"),
        ("h480p", PixelSize(width: 320, height: 200), 10, nil),
        ("h360p", PixelSize(width: 640, height: 360), 15, nil),
    ]

    @Test(arguments: lower) func whatIsSuggestedHelps(_ name: String, _ size: PixelSize, _ frameRate: UInt32, _ expected: String?) throws {
        #expect(try Preset.named(name).lower(than: size, frameRate)?.name == expected)
    }
}
