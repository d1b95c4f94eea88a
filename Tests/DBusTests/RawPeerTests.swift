// SPDX-License-Identifier: MIT
import DBus
import Testing

/// Calls that the libraries do not make, but that the protocol allows.
@Suite(.serialized) struct RawPeerTests {
    let stage: Stage
    let thing: Thing
    let server: ObjectServer
    let peer: RawPeer

    init() throws {
        stage = try Stage()
        thing = try Thing()
        server = ObjectServer(stage.service)
        server.export("/thing", thing.exported)
        peer = try RawPeer(stage.bus.addressText, on: stage.loop)
    }

    private func call(_ interface: String?, _ member: String, at path: String = "/thing", flags: UInt8 = 0) -> UInt32 {
        peer.call(stage.service.uniqueName.text, path, interface, member, flags: flags)
    }

    @Test func aCallWithoutInterfaceFindsItsMember() {
        let ping = call(nil, "Ping")
        let hold = call(nil, "Hold")
        let missing = call(nil, "Missing")
        let add = call(nil, "Add")
        let gone = call(nil, "Hold", at: "/gone")
        stage.wait { peer.answers.contains { $0.serial == gone } && thing.held.count == 1 }
        thing.held.removeFirst().reply()
        stage.wait { peer.answers.contains { $0.serial == hold } }
        #expect(peer.answers.contains(.init(kind: .reply, serial: ping, errorName: nil)))
        #expect(peer.answers.contains(.init(kind: .reply, serial: hold, errorName: nil)))
        #expect(peer.answers.contains(.init(kind: .error, serial: missing, errorName: StandardError.unknownMethod)))
        #expect(peer.answers.contains(.init(kind: .error, serial: add, errorName: StandardError.invalidArguments)))
        #expect(peer.answers.contains(.init(kind: .error, serial: gone, errorName: StandardError.unknownObject)))
    }

    @Test func whoWantsNoReplyGetsNone() {
        let flags = RawPeer.noReplyExpected
        let silent = [
            call("org.example.Thing", "Hold", flags: flags), call("org.example.Thing", "Missing", flags: flags),
            call("org.example.Thing", "Drop", flags: flags), call("org.example.Thing", "Lie", flags: flags),
            call("org.example.Thing", "Add", flags: flags), call("org.example.Thing", "Hold", at: "/gone", flags: flags),
        ]
        stage.wait { !thing.held.isEmpty }
        thing.held.removeFirst().reply()
        let ping = call("org.freedesktop.DBus.Peer", "Ping")
        stage.wait { peer.answers.contains { $0.serial == ping } }
        #expect(!peer.answers.contains { $0.serial.map(silent.contains) ?? false })
    }
}
