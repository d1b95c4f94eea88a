// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport
import Testing

/// What other implementations of the protocol make of ours.
@Suite(.serialized) struct ForeignToolTests {
    let stage: Stage
    let thing: Thing
    let server: ObjectServer

    init() throws {
        stage = try Stage()
        thing = try Thing()
        server = ObjectServer(stage.service)
        server.export("/org/example/Thing", thing.exported, isObjectManager: true)
        server.export("/org/example/Thing/child/1", thing.exported)
        #expect(stage.request("org.example.Service", stage.service) == nil)
    }

    /// Runs `busctl` while the service answers it.
    private func busctl(_ arguments: String...) throws -> (status: Int32, text: String) {
        try Child(["busctl", "--address=\(stage.bus.addressText)", "--no-pager"] + arguments).finish(on: stage.loop)
    }

    @Test func busctlShowsTheTree() throws {
        let (status, text) = try busctl("tree", "--list", "org.example.Service")
        #expect(status == 0)
        let paths = ["/", "/org", "/org/example", "/org/example/Thing", "/org/example/Thing/child", "/org/example/Thing/child/1"]
        #expect(text.split(separator: "\n").map(String.init) == paths)
    }

    @Test func busctlShowsEveryMember() throws {
        let (status, text) = try busctl("introspect", "org.example.Service", "/org/example/Thing")
        #expect(status == 0)
        let rows = Set(text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") })
        let expected = [
            "org.example.Thing interface - - -", ".Echo method v v -", ".Open method a{sv} oh -", ".Hold method - - -",
            ".Level property u 1 emits-change writable", ".Label property s \"thing\" emits-change", ".Age property t 7 -",
            ".Serial property s \"1\" const", ".Cache property as 1 \"x\" emits-invalidation", ".Happened signal su - -",
            "org.freedesktop.DBus.Properties interface - - -", "org.freedesktop.DBus.ObjectManager interface - - -",
            ".GetManagedObjects method - a{oa{sa{sv}}} -", ".Ping method - - -", ".Introspect method - s -",
        ]
        for row in expected { #expect(rows.contains(row), "\(text)") }
    }

    @Test func busctlReadsWritesAndCalls() throws {
        let thing = ["org.example.Service", "/org/example/Thing", "org.example.Thing"]
        #expect(try busctl("set-property", thing[0], thing[1], thing[2], "Level", "u", "4").status == 0)
        #expect(try busctl("get-property", thing[0], thing[1], thing[2], "Level").text == "u 4\n")
        #expect(try busctl("call", thing[0], thing[1], thing[2], "Add", "uu", "2", "3").text == "u 5\n")
        #expect(
            try busctl("call", thing[0], thing[1], thing[2], "Echo", "v", "(a{sv}ax)", "1", "k", "b", "true", "1", "5").text
                == "v (a{sv}ax) 1 \"k\" b true 1 5\n")
        #expect(try busctl("call", thing[0], thing[1], thing[2], "Add", "u", "2").status != 0)
    }
}
