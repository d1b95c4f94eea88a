// SPDX-License-Identifier: MIT
import DBus
import Testing

@Suite struct NameTests {
    @Test(arguments: ["/", "/a", "/a/b_9", "/0/1", "/" + String(repeating: "x", count: 5_000)])
    func objectPathsAreAccepted(_ text: String) { #expect(ObjectPath(text)?.text == text) }

    @Test(arguments: ["", "a", "//", "/a/", "/a//b", "/a-b", "/ä", "/a\0", "/a.b", " /a"])
    func wrongObjectPathsAreRefused(_ text: String) { #expect(ObjectPath(text) == nil) }

    @Test(arguments: [":1.42", ":1.0", "org.example", "org.example-x.Thing_1", "_a.b", ":a.9b", "org.-a"])
    func busNamesAreAccepted(_ text: String) { #expect(BusName(text)?.text == text) }

    @Test(arguments: ["", ":", ":1", "org", "org.", ".org", "org..a", "org.1a", "1.a", "org.a/b", "org.ä", "a.b\0"])
    func wrongBusNamesAreRefused(_ text: String) { #expect(BusName(text) == nil) }

    @Test(arguments: ["org.example", "a.b.c1", "_._"])
    func interfaceNamesAreAccepted(_ text: String) { #expect(InterfaceName(text)?.text == text) }

    @Test(arguments: ["", "org", "org.a-b", "org.1", "1.a", "org.", ":1.2", "a.b "])
    func wrongInterfaceNamesAreRefused(_ text: String) { #expect(InterfaceName(text) == nil) }

    @Test(arguments: ["Get", "_x", "a1"])
    func memberNamesAreAccepted(_ text: String) { #expect(MemberName(text)?.text == text) }

    @Test(arguments: ["", "1a", "a.b", "a-b", "a b", "ä", "a\0"])
    func wrongMemberNamesAreRefused(_ text: String) { #expect(MemberName(text) == nil) }

    @Test func namesHaveAtMost255Bytes() {
        let (fits, tooLong) = (String(repeating: "a", count: 253), String(repeating: "a", count: 254))
        #expect(BusName("b.\(fits)") != nil && BusName("b.\(tooLong)") == nil)
        #expect(InterfaceName("b.\(fits)") != nil && InterfaceName("b.\(tooLong)") == nil)
        #expect(MemberName("bc\(fits)") != nil && MemberName("bc\(tooLong)") == nil)
    }

    @Test func objectPathsHaveFamilies() {
        let path: ObjectPath = "/a/b"
        #expect(path.parent == "/a" && path.parent?.parent == "/" && ObjectPath.root.parent == nil)
        #expect(path.appending("c") == "/a/b/c" && ObjectPath.root.appending("c") == "/c")
        #expect(path.appending("") == nil && path.appending("x-y") == nil)
        #expect(path.isInside("/a") && path.isInside(path) && path.isInside("/"))
        #expect(!path.isInside("/a/bc") && !ObjectPath("/a/bc").isInside(path))
    }
}

@Suite struct SignatureTests {
    @Test(arguments: ["", "y", "a{sv}", "(iiuu)", "a(iiuu)", "aa{sv}", "a{oa{sa{sv}}}", "ybnqiuxtdsoghv", "((i)(s(v)))", "a{s(uuuu)}"])
    func signaturesAreAccepted(_ text: String) { #expect(Signature(text)?.text == text) }

    @Test(arguments: [
        "a", "(", ")", "()", "(i", "{sv}", "a{s}", "a{vs}", "a{svv}", "a{(i)s}", "z", "a{sv", "e", "r", "i\0", "a{as}", "(a)",
    ])
    func wrongSignaturesAreRefused(_ text: String) { #expect(Signature(text) == nil) }

    @Test func containersNestAtMost32Deep() {
        func arrays(_ count: Int) -> String { String(repeating: "a", count: count) + "y" }
        func structures(_ count: Int) -> String { String(repeating: "(", count: count) + "y" + String(repeating: ")", count: count) }
        #expect(Signature(arrays(32)) != nil && Signature(arrays(33)) == nil)
        #expect(Signature(structures(32)) != nil && Signature(structures(33)) == nil)
        #expect(Signature(String(repeating: "y", count: 255)) != nil && Signature(String(repeating: "y", count: 256)) == nil)
    }

    @Test func completeTypesAreTakenApart() {
        #expect(Signature("sa{sv}(iu)aav").completeTypes == ["s", "a{sv}", "(iu)", "aav"])
        #expect(Signature.empty.completeTypes == [] && !Signature.empty.isSingle)
        #expect(Signature("a{sv}").isSingle && !Signature("ss").isSingle)
    }
}
