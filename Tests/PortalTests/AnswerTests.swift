// SPDX-License-Identifier: MIT
import DBus
import Testing

@testable import Portal

/// What is read from a portal's answers, and how little of it may be there.
@Suite struct AnswerTests {
    @Test func readsAllOfAStream() throws {
        let value = MachineRig.streams([
            (
                44,
                [
                    "pipewire-serial": .uint64(4_294_967_296), "id": .string("0"), "position": .structure([.int32(-1920), .int32(0)]),
                    "size": .structure([.int32(1920), .int32(1080)]), "source_type": .uint32(2), "mapping_id": .string("map"),
                ]
            )
        ])
        var expected = CastStream(node: 44)
        expected.serial = 4_294_967_296
        expected.id = "0"
        expected.position = CastStream.Position(x: -1920, y: 0)
        expected.logicalSize = CastStream.LogicalSize(width: 1920, height: 1080)
        expected.sourceType = .window
        expected.mappingID = "map"
        #expect(try CastStream.list(from: value).get() == [expected])
    }

    @Test func whatIsMissingOrWrongIsNil() throws {
        let wrong: [String: Value] = [
            "pipewire-serial": .uint32(1), "id": .string(""), "position": .structure([.int32(1)]),
            "size": .structure([.int32(0), .int32(1)]), "source_type": .int32(1), "mapping_id": .uint32(1), "else": .bool(true),
        ]
        let streams = try CastStream.list(from: MachineRig.streams([(1, [:]), (2, wrong)])).get()
        #expect(streams == [CastStream(node: 1), CastStream(node: 2)])
    }

    @Test func readsProperties() {
        let read = { PortalProperties([.options($0)]) }
        let all: [String: Value] = ["version": .uint32(4), "AvailableSourceTypes": .uint32(7), "AvailableCursorModes": .uint32(3)]
        #expect(read(all) == PortalProperties(version: 4, sourceTypes: SourceTypes(rawValue: 7), cursorModes: CursorModes(rawValue: 3)))
        #expect(read(["version": .uint32(1)]) == PortalProperties(version: 1, sourceTypes: [], cursorModes: []))
        #expect(read(["version": .uint32(4), "AvailableSourceTypes": .string("7")])?.sourceTypes == [])
        #expect(read([:]) == nil)
        #expect(read(["version": .uint32(0)]) == nil)
        #expect(read(["version": .int32(4)]) == nil)
        #expect(PortalProperties([]) == nil)
        #expect(PortalProperties([.string("4")]) == nil)
    }

    // Faults: B42 B43
    @Test func tokensArePathElementsAndNeverTheSame() {
        let tokens = (0..<1_000).map { _ in HandleToken().text }
        #expect(Set(tokens).count == tokens.count)
        for token in tokens { #expect(token.count == 40 && ObjectPath("/\(token)") != nil) }
    }

    @Test func namesForPeople() {
        #expect(SourceTypes([.monitor, .window]).description == "monitor or window")
        #expect(SourceTypes(rawValue: 8).description == "nothing")
        #expect(CursorModes(rawValue: 0).description == "none")
        #expect(CursorMode.allCases.map(\.description) == ["hidden", "embedded", "metadata"])
    }
}
