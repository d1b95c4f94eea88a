// SPDX-License-Identifier: MIT
import DBus
import Loop
import Testing

@Suite struct ValueTests {
    @Test func signaturesAreThoseOfTheContents() {
        #expect(Value.options(["a": .bool(true)]).signature == "a{sv}")
        #expect(Value.structure([.int32(1), .array(of: "u", [])]).signature == "(iau)")
        #expect(Value.array(of: "a{sv}", []).signature == "aa{sv}")
        #expect(Value.variant(.string("")).signature == "v")
    }

    @Test func descriptorsAreEqualByIdentity() throws {
        let (reading, writing) = try FileDescriptor.pipe()
        #expect(Value.descriptor(reading) == .descriptor(reading))
        #expect(Value.descriptor(reading) != .descriptor(writing))
        #expect(Value.int32(1) != .uint32(1))
        #expect(Value.array(of: "s", []) != .array(of: "u", []))
        #expect(Value.options(["b": .byte(1), "a": .byte(2)]) == .options(["a": .byte(2), "b": .byte(1)]))
    }

    @Test func accessorsAnswerOnlyTheirOwnType() {
        #expect(Value.uint32(7).asUInt32 == 7 && Value.int32(7).asUInt32 == nil)
        #expect(Value.bool(true).asBool == true && Value.uint32(1).asBool == nil)
        #expect(Value.string("x").asString == "x" && Value.objectPath("/x").asString == nil)
        #expect(Value.strings(["a", "b"]).asStrings == ["a", "b"] && Value.array(of: "u", []).asStrings == nil)
        #expect(Value.objectPaths(["/a"]).asObjectPaths == ["/a"])
        #expect(Value.structure([.byte(1)]).asStructure == [.byte(1)])
        #expect(Value.variant(.byte(1)).asVariant == .byte(1))
        #expect(Value.uint64(1).asUInt64 == 1 && Value.int64(1).asUInt64 == nil)
    }

    @Test func optionsAreTakenOutOfTheirVariants() {
        #expect(Value.options(["a": .uint32(1), "b": .variant(.bool(true))]).asOptions == ["a": .uint32(1), "b": .variant(.bool(true))])
        let twice = ["x", "y"].map { Value.Entry(key: .string("a"), value: .variant(.string($0))) }
        #expect(Value.dictionary(key: "s", value: "v", twice).asOptions == ["a": .string("y")])
        #expect(Value.dictionary(key: "s", value: "s", []).asOptions == nil)
    }

    @Test func textIsOneLineForPeople() {
        let value = Value.structure([
            .string("it's\n\u{1b}[31m\u{202e}ü"), .array(of: "y", [.byte(1), .byte(2)]), .options(["wait": .bool(true)]), .objectPath("/a"),
        ])
        #expect(value.text == #"('it\'s\n\u{1b}[31m\u{202e}ü', [1, 2], {'wait': <true>}, '/a')"#)
        #expect(Value.structure([.double(0.5)]).text == "(0.5,)")
        #expect("\(Value.int64(-3)) \(Value.signature("a{sv}"))" == "-3 'a{sv}'")
    }

    @Test func matchRulesSpeakTheBussLanguage() {
        let rule = MatchRule(
            sender: "org.example", path: "/a", interface: "org.example.I", member: "M", argument0: "it's")
        #expect(rule.text == #"type='signal',sender='org.example',path='/a',interface='org.example.I',member='M',arg0='it'\''s'"#)
        #expect(MatchRule(pathNamespace: "/a").text == "type='signal',path_namespace='/a'")
        #expect(MatchRule().text == "type='signal'")
    }
}
