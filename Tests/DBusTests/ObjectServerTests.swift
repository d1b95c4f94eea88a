// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport
import Testing

@Suite(.serialized) struct ObjectServerTests {
    static let path: ObjectPath = "/org/example/Thing"
    let stage: Stage
    let thing: Thing
    let server: ObjectServer

    init() throws {
        stage = try Stage()
        thing = try Thing()
        server = ObjectServer(stage.service)
        server.export(Self.path, thing.exported)
    }

    private func call(_ interface: InterfaceName, _ member: MemberName, _ arguments: [Value] = [], at path: ObjectPath = Self.path)
        throws(DBusError) -> [Value]
    {
        try stage.client.callAndWait(
            MethodCall(destination: stage.service.uniqueName, path: path, interface: interface, member: member, arguments: arguments))
    }

    private func properties(_ member: MemberName, _ arguments: Value..., at path: ObjectPath = Self.path) throws(DBusError) -> [Value] {
        try call("org.freedesktop.DBus.Properties", member, arguments, at: path)
    }

    /// Expects an error of that name whose text contains all of the words.
    private func expect(
        _ name: String, _ words: String..., location: SourceLocation = #_sourceLocation, _ body: () throws(DBusError) -> [Value]
    ) {
        guard case .remote(let found, let message) = failure(body) else {
            Issue.record("no error", sourceLocation: location)
            return
        }
        #expect(found == name, sourceLocation: location)
        for word in words { #expect(message.contains(word), sourceLocation: location) }
    }

    // MARK: Methods

    @Test func callsReachTheirHandlers() throws {
        #expect(try call(Thing.name, "Add", [.uint32(2), .uint32(3)]) == [.uint32(5)])
        let opened = try call(Thing.name, "Open", [.options(["a": .bool(true)])])
        #expect(opened[checked: 0] == .objectPath(Self.path) && opened[checked: 1]?.asDescriptor != nil)
    }

    @Test func callersAreKnown() throws {
        stage.client.call(thingCall(stage.service, "Hold")) { _ in }
        stage.wait { !thing.held.isEmpty }
        let held = thing.held.removeFirst()
        #expect(held.sender == stage.client.uniqueName && held.path == Self.path && held.interface == Thing.name)
        #expect(held.member == "Hold" && held.arguments.isEmpty)
        held.reply()
    }

    @Test func wrongArgumentsAreNamed() {
        expect(StandardError.invalidArguments, "Add", "\"uu\"", "left, right", "\"us\"") { () throws(DBusError) in
            try call(Thing.name, "Add", [.uint32(1), .string("2")])
        }
        expect(StandardError.invalidArguments, "\"uu\"", "\"\"") { () throws(DBusError) in try call(Thing.name, "Add") }
        expect(StandardError.invalidArguments, "\"\"") { () throws(DBusError) in try call(Thing.name, "Hold", [.byte(1)]) }
        expect(StandardError.invalidArguments, "\"v\"", "\"(v)\"") { () throws(DBusError) in
            try call(Thing.name, "Echo", [.structure([.variant(.byte(1))])])
        }
        #expect(thing.calls == 0)
    }

    @Test func whatIsUnknownIsNamed() {
        expect(StandardError.unknownObject, "/org/example/Gone") { () throws(DBusError) in
            try call(Thing.name, "Hold", at: "/org/example/Gone")
        }
        expect(StandardError.unknownInterface, "org.example.Other", "org.example.Thing") { () throws(DBusError) in
            try call("org.example.Other", "Hold")
        }
        expect(StandardError.unknownMethod, "Missing", "Echo, Open") { () throws(DBusError) in try call(Thing.name, "Missing") }
        expect(StandardError.unknownInterface, "Introspectable") { () throws(DBusError) in try call(Thing.name, "Hold", at: "/org") }
        expect(StandardError.unknownObject) { () throws(DBusError) in
            try call("org.freedesktop.DBus.Introspectable", "Introspect", at: "/com")
        }
        server.unexport(Self.path)
        expect(StandardError.unknownObject) { () throws(DBusError) in try call(Thing.name, "Hold") }
        expect(StandardError.unknownObject) { () throws(DBusError) in
            try call("org.freedesktop.DBus.Introspectable", "Introspect", at: "/")
        }
    }

    @Test func ourOwnMistakesAreAnswered() {
        expect(StandardError.failed, "\"u\"", "\"s\"", "mistake") { () throws(DBusError) in try call(Thing.name, "Lie") }
        expect(StandardError.failed, "dropped") { () throws(DBusError) in try call(Thing.name, "Drop") }
        expect(StandardError.failed, "no error name", "because") { () throws(DBusError) in
            try call(Thing.name, "Fail", [.string("not a name"), .string("because")])
        }
        stage.client.call(thingCall(stage.service, "Hold")) { _ in }
        stage.wait { !thing.held.isEmpty }
        thing.held[0].fail(name: StandardError.failed, message: "a\0b")
        thing.held[0].reply()
        thing.held.removeAll()
        #expect(failure { () throws(DBusError) in try call(Thing.name, "Drop") } != nil)
    }

    @Test func aNulInAnErrorIsReplaced() {
        var result: Result<[Value], DBusError>?
        stage.client.call(thingCall(stage.service, "Hold")) { result = $0 }
        stage.wait { !thing.held.isEmpty }
        thing.held.removeFirst().fail(name: StandardError.failed, message: "a\0b")
        stage.wait { result != nil }
        #expect(result == .failure(.remote(name: StandardError.failed, message: "a\u{fffd}b")))
    }

    @Test func heldCallsAreAnsweredInAnyOrder() {
        var answers: [Int] = []
        for number in 0..<3 { stage.client.call(thingCall(stage.service, "Hold")) { _ in answers.append(number) } }
        stage.wait { thing.held.count == 3 }
        while let call = thing.held.popLast() { call.reply() }
        stage.wait { answers.count == 3 }
        #expect(answers == [2, 1, 0])
    }

    // MARK: Properties

    @Test func propertiesAreRead() throws {
        #expect(try properties("Get", .string("org.example.Thing"), .string("Label")) == [.variant(.string("thing"))])
        #expect(try properties("Get", .string(""), .string("Label")) == [.variant(.string("thing"))])
        let all: [String: Value] = [
            "Level": .uint32(1), "Label": .string("thing"), "Age": .uint64(7), "Serial": .string("1"), "Cache": .strings(["x"]),
        ]
        #expect(try properties("GetAll", .string("org.example.Thing")) == [.options(all)])
        #expect(try properties("GetAll", .string("")) == [.options(all)])
        #expect(try properties("GetAll", .string("org.freedesktop.DBus.Peer")) == [.options([:])])
    }

    @Test func propertiesAreWritten() throws {
        #expect(try properties("Set", .string("org.example.Thing"), .string("Level"), .variant(.uint32(5))) == [])
        #expect(thing.level == 5)
        _ = try properties("Set", .string(""), .string("Secret"), .variant(.string("x")))
        #expect(thing.secret == "x")
        expect(StandardError.invalidArguments, "Level goes up to 9") { () throws(DBusError) in
            try properties("Set", .string("org.example.Thing"), .string("Level"), .variant(.uint32(10)))
        }
        expect(StandardError.invalidArguments, "\"u\"", "\"i\"") { () throws(DBusError) in
            try properties("Set", .string("org.example.Thing"), .string("Level"), .variant(.int32(5)))
        }
        expect(StandardError.invalidArguments, "\"u\"", "\"v\"") { () throws(DBusError) in
            try properties("Set", .string("org.example.Thing"), .string("Level"), .variant(.variant(.uint32(5))))
        }
        expect(StandardError.propertyReadOnly, "Label") { () throws(DBusError) in
            try properties("Set", .string("org.example.Thing"), .string("Label"), .variant(.string("x")))
        }
        #expect(thing.level == 5)
    }

    @Test func wrongPropertiesAreNamed() {
        expect(StandardError.unknownProperty, "'Missing'", "Level, Label") { () throws(DBusError) in
            try properties("Get", .string("org.example.Thing"), .string("Missing"))
        }
        expect(StandardError.unknownProperty, "'not a name'") { () throws(DBusError) in
            try properties("Set", .string(""), .string("not a name"), .variant(.byte(1)))
        }
        for member in ["Get", "Set", "GetAll"] as [MemberName] {
            let rest: [MemberName: [Value]] = ["Get": [.string("Level")], "Set": [.string("Level"), .variant(.uint32(1))], "GetAll": []]
            expect(StandardError.unknownInterface, "'org.example.Other'") { () throws(DBusError) in
                try call("org.freedesktop.DBus.Properties", member, [.string("org.example.Other")] + (rest[member] ?? []))
            }
        }
        expect(StandardError.accessDenied, "Secret") { () throws(DBusError) in
            try properties("Get", .string("org.example.Thing"), .string("Secret"))
        }
        expect(StandardError.failed, "Broken") { () throws(DBusError) in
            try properties("Get", .string("org.example.Thing"), .string("Broken"))
        }
        expect(StandardError.invalidArguments, "\"ss\"", "\"s\"") { () throws(DBusError) in
            try properties("Get", .string("org.example.Thing"))
        }
    }

    @Test func changesAreAnnouncedOnce() {
        var seen: [[Value]] = []
        let rule = MatchRule(sender: stage.service.uniqueName, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged")
        _ = stage.subscribe(stage.client, rule) { seen.append($0.arguments) }
        thing.level = 3
        server.propertiesChanged(Self.path, Thing.name, ["Level", "Age", "Serial", "Cache", "Label", "Broken", "Missing"])
        server.propertiesChanged(Self.path, Thing.name, ["Age", "Serial"])
        server.propertiesChanged(Self.path, "org.example.Other", ["Level"])
        server.propertiesChanged("/gone", Thing.name, ["Level"])
        stage.settle()
        #expect(
            seen == [
                [.string("org.example.Thing"), .options(["Level": .uint32(3), "Label": .string("thing")]), .strings(["Cache"])]
            ])
    }

    @Test func signalsAreCheckedAgainstTheDescription() {
        var seen: [[Value]] = []
        _ = stage.subscribe(stage.client, MatchRule(interface: Thing.name)) { seen.append($0.arguments) }
        server.emit(Self.path, Thing.name, "Happened", [.string("x"), .uint32(1)])
        server.emit(Self.path, Thing.name, "Happened", [.string("x")])
        server.emit(Self.path, Thing.name, "Happened", [.string("\0"), .uint32(1)])
        server.emit(Self.path, Thing.name, "Missing")
        server.emit("/gone", Thing.name, "Happened", [.string("x"), .uint32(1)])
        server.emit(Self.path, Thing.name, "Happened", [.string("y"), .uint32(2)], to: stage.client.uniqueName)
        server.emit(Self.path, Thing.name, "Happened", [.string("z"), .uint32(3)], to: stage.service.uniqueName)
        stage.settle()
        #expect(seen == [[.string("x"), .uint32(1)], [.string("y"), .uint32(2)]])
    }

    // MARK: The tree

    @Test func everyPathIsIntrospected() throws {
        server.export("/org/example/Thing/child/1", thing.exported)
        server.export("/org/example/Thing/child/2", [], isObjectManager: true)
        func node(_ path: ObjectPath) throws -> NodeDescription {
            let answer = try call("org.freedesktop.DBus.Introspectable", "Introspect", at: path)
            return try NodeDescription(parsing: try #require(answer.first?.asString))
        }
        let standard: [InterfaceName] = [
            "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Peer",
        ]
        #expect(try node("/").children == ["org"] && node("/").interfaces.map(\.name) == Array(standard[1...]))
        #expect(try node("/org/example/Thing").children == ["child"])
        #expect(try node("/org/example/Thing").interfaces.map(\.name) == [Thing.name] + standard)
        #expect(try node("/org/example/Thing/child").children == ["1", "2"])
        #expect(try node("/org/example/Thing/child/1").interfaces.first?.source == InterfaceDescription.parse(Thing.xml).first?.source)
        #expect(try node("/org/example/Thing/child/2").interfaces.map(\.name) == standard + ["org.freedesktop.DBus.ObjectManager"])
        #expect(try node("/org/example/Thing/child/2").children == [])
    }

    @Test func documentationKeepsItsNamespace() throws {
        let xml = """
            <node xmlns:doc="http://www.freedesktop.org/dbus/1.0/doc.dtd">
              <interface name="org.example.Told"><doc:doc><doc:para>What it is.</doc:para></doc:doc></interface>
            </node>
            """
        let description = try #require(try InterfaceDescription.parse(xml).first)
        server.export("/told", [ExportedInterface(description, methods: [:])])
        let text = try call("org.freedesktop.DBus.Introspectable", "Introspect", at: "/told").first?.asString ?? ""
        #expect(text.contains("<node xmlns:doc=\"http://www.freedesktop.org/dbus/1.0/doc.dtd\">"))
        #expect(text.contains("  <interface name=\"org.example.Told\"><doc:doc><doc:para>What it is.</doc:para></doc:doc></interface>\n"))
    }

    @Test func anyPathAnswersPeer() throws {
        #expect(try call("org.freedesktop.DBus.Peer", "Ping") == [])
        #expect(try call("org.freedesktop.DBus.Peer", "Ping", at: "/nowhere") == [])
        #expect(try call("org.freedesktop.DBus.Peer", "GetMachineId", at: "/org").first?.asString?.utf8.count == 32)
    }

    @Test func objectManagersListWhatIsBelow() throws {
        let manager: ObjectPath = "/org/example/Manager"
        let name: InterfaceName = "org.freedesktop.DBus.ObjectManager"
        var seen: [String] = []
        _ = stage.subscribe(stage.client, MatchRule(sender: stage.service.uniqueName, interface: name)) { signal in
            seen.append("\(signal.member) \(signal.path) \(signal.arguments[0].asObjectPath ?? "/")")
            if signal.member == "InterfacesRemoved" { #expect(signal.arguments[1] == .strings(["org.example.Thing"])) }
        }
        server.export(manager, [], isObjectManager: true)
        server.export("/org/example/Manager/a/b", thing.exported)
        server.export("/org/example/Manager/inner", thing.exported, isObjectManager: true)
        server.export("/org/example/Manager/inner/c", thing.exported)
        server.export("/org/example/Managers", thing.exported)
        let objects = try call(name, "GetManagedObjects", at: manager).first
        guard case .dictionary(key: "o", value: "a{sa{sv}}", let entries) = objects else {
            Issue.record("\(String(describing: objects))")
            return
        }
        #expect(entries.map(\.key) == [.objectPath("/org/example/Manager/a/b"), .objectPath("/org/example/Manager/inner")])
        guard case .dictionary(_, _, let interfaces) = entries.first?.value else { return }
        #expect(interfaces.first?.key == .string("org.example.Thing"))
        #expect(interfaces.first?.value.asOptions?["Level"] == .uint32(1) && interfaces.first?.value.asOptions?["Age"] == .uint64(7))
        server.unexport("/org/example/Manager/a/b")
        server.unexport("/org/example/Manager/a/b")
        server.unexport("/org/example/Manager/inner/c")
        stage.settle()
        #expect(
            seen == [
                "InterfacesAdded /org/example/Manager /org/example/Manager/a/b",
                "InterfacesAdded /org/example/Manager /org/example/Manager/inner",
                "InterfacesAdded /org/example/Manager/inner /org/example/Manager/inner/c",
                "InterfacesRemoved /org/example/Manager /org/example/Manager/a/b",
                "InterfacesRemoved /org/example/Manager/inner /org/example/Manager/inner/c",
            ])
    }
}
