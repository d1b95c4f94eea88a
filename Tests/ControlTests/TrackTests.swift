// SPDX-License-Identifier: MIT
import Contract
import DBus
import Testing

@testable import vitrinectl

@Suite struct TrackTests {
    private static let source: [String: Value] = [
        "type": .uint32(1), "id": .string("0x1"), "pixel-size": .structure([.uint32(1920), .uint32(1080)]), "node": .uint32(42),
    ]
    private static let active = Track(
        path: Agent.desktopTrack,
        properties: [
            "State": .string("active"), "IsCapturing": .bool(true), "IsBroadcastActive": .bool(true), "Muted": .bool(true),
            "Preset": .string("h1080p"), "Size": .structure([.uint32(1280), .uint32(720)]),
            "Sources": .array(of: "a{sv}", [.options(source)]), "Title": .string("Talk\u{1B}"), "StartedAt": .uint64(5),
            "Subscriptions": .objectPaths(["/a/b"]),
        ])

    @Test func theInterfacesAreTheContracts() {
        for interface in [Agent.interface, Agent.trackInterface, Agent.subscriptionInterface] {
            #expect((Contract.agentXML + Contract.trackXML + Contract.subscriptionXML).contains("<interface name=\"\(interface)\">"))
        }
    }

    @Test func propertiesAreRead() {
        let track = Self.active
        #expect(track.isActive && track.isMuted && !track.isPaused)
        #expect(track.name == "desktop")
        #expect(track.sharedThing == "monitor, 1920x1080")
        #expect(track.size?.description == "1280x720")
    }

    @Test func whatIsAbsentIsNothing() {
        let track = Track(path: "/a/7", properties: [:])
        #expect(track.state == "idle")
        #expect(track.size == nil && track.sources.isEmpty && track.statistics.isEmpty)
        #expect(Track(path: "/a/7", properties: ["Size": .structure([.uint32(0), .uint32(0)])]).size == nil)
        // A peer that sends another type is as good as one that sends nothing.
        #expect(Track(path: "/a/7", properties: ["Size": .string("x"), "Sources": .bool(true), "State": .uint32(1)]).state == "idle")
    }

    @Test func changesAreTakenOver() {
        var track = Self.active
        track.apply(["State": .string("listening"), "Muted": .bool(false)])
        #expect(track.state == "listening" && !track.isMuted)
        #expect(track.preset == "h1080p")
    }

    @Test func oneLineAChange() {
        #expect(StatusReport.line(Self.active, isAnythingShared: false, event: .changed) == "active, monitor, 1920x1080, muted, 1 reader")
        #expect(StatusReport.line(nil, isAnythingShared: false, event: nil) == "idle (the agent does not run)")
        #expect(StatusReport.line(Self.active, isAnythingShared: false, event: .started) == nil)
        #expect(
            StatusReport.line(Self.active, isAnythingShared: false, event: .finished(reason: "ended-by-desktop", detail: ""))
                == "finished: The share was ended in the desktop (ended-by-desktop).")
    }

    @Test func jsonHasTheSameMembersEachTime() throws {
        func names(_ json: JSON) -> [String] {
            guard case .object(let members) = json else { return [] }
            return members.map(\.name)
        }
        let full = StatusReport.json(
            Agent.desktopTrack, Self.active, isAnythingShared: false, event: .finished(reason: "stopped", detail: "x"))
        #expect(names(full) == names(StatusReport.json(Agent.desktopTrack, nil, isAnythingShared: false, event: nil)))
        #expect(full.text.contains(#""event":"finished","reason":"stopped","detail":"x""#))
        #expect(full.text.contains(#""sources":[{"id":"0x1","node":42,"pixel-size":[1920,1080],"type":"monitor"}]"#))
        #expect(full.text.contains(#""title":"Talk\u001b""#))
        #expect(full.text.contains(#""state":"active","capturing":true,"broadcasting":true"#))
    }

    @Test func tracksAreNamedByWordNumberOrPath() throws {
        #expect(try Agent.trackPath("desktop", verb: "stats") == Agent.desktopTrack)
        #expect(try Agent.trackPath("12", verb: "stats") == "/org/vitrine/ScreenShare1/track/12")
        #expect(try Agent.trackPath("/org/vitrine/ScreenShare1/track/3", verb: "stats") == "/org/vitrine/ScreenShare1/track/3")
        for wrong in ["", "a/b", "/a/b", "/org/vitrine/ScreenShare1", "/a//b", "x y"] {
            #expect(throws: Failure.self) { try Agent.trackPath(wrong, verb: "stats") }
        }
    }

    @Test func partsOutsideOfTheSourceAreKnown() {
        func track(_ crop: Region, _ masks: [Region], sources: Int = 1) -> Track {
            Track(
                path: "/a/7",
                properties: [
                    "Sources": .array(of: "a{sv}", Array(repeating: .options(Self.source), count: sources)), "Crop": crop.value,
                    "Masks": .array(of: "(iiuu)", masks.map(\.value)),
                ])
        }
        let beside = Region(x: 1920, y: 0, width: 9, height: 9), above = Region(x: 0, y: -9, width: 9, height: 9)
        let touching = Region(x: 1919, y: 1079, width: .max, height: .max), far = Region(x: .max, y: .min, width: .max, height: .max)
        #expect(track(beside, []).isCropOutside && !track(touching, []).isCropOutside && !track(.none, []).isCropOutside)
        #expect(track(.none, [beside, touching, above, far]).masksOutside == [beside, above, far])
        // Where each of several sources lies is not told.
        #expect(!track(beside, [], sources: 2).isCropOutside && track(.none, [beside], sources: 2).masksOutside.isEmpty)
        #expect(!track(beside, [], sources: 0).isCropOutside)
    }

    @Test func theDesktopTrackIsFirstAndNumbersAreNumbers() {
        let paths: [ObjectPath] = ["/t/10", "/t/9", Agent.desktopTrack, "/t/9/subscription/1"]
        var objects: [ObjectPath: [String: [String: Value]]] = [:]
        for path in paths {
            objects[path] = [path == "/t/9/subscription/1" ? Agent.subscriptionInterface.text : Agent.trackInterface.text: [:]]
        }
        #expect(ListVerb.tracks(in: objects).map(\.path) == [Agent.desktopTrack, "/t/9", "/t/10"])
    }

    @Test func countersComeInTheContractsOrder() {
        let sorted = StatsReport.sorted(["zebra": 1, "coalesced": 2, "received": 3, "apple": 4])
        #expect(sorted.map(\.name) == ["received", "coalesced", "apple", "zebra"])
    }
}
