// SPDX-License-Identifier: MIT
import DBus
import Testing

@Suite struct NodeDescriptionTests {
    @Test func everyMemberIsRead() throws {
        let interface = try #require(try InterfaceDescription.parse(Thing.xml).first)
        #expect(interface.name == "org.example.Thing")
        #expect(interface.annotations == ["org.example.Kind": "a <test>"])
        #expect(interface.methods.map(\.name) == ["Echo", "Open", "Add", "Hold", "Drop", "Lie", "Fail"])
        #expect(interface.method("Open")?.inputSignature == "a{sv}" && interface.method("Open")?.outputSignature == "oh")
        #expect(interface.method("Add")?.inputs.map(\.name) == ["left", "right"])
        #expect(interface.signal("Happened")?.signature == "su")
        #expect(interface.property("Level")?.access == .readwrite && interface.property("Secret")?.access == .write)
        #expect(interface.property("Label")?.changes == .announced && interface.property("Age")?.changes == .silent)
        #expect(interface.property("Serial")?.changes == .constant && interface.property("Cache")?.changes == .invalidated)
        #expect(interface.method("None") == nil && interface.property("Cache")?.type == "as")
    }

    @Test func theSourceIsKeptWithItsComments() throws {
        let source = try #require(try InterfaceDescription.parse(Thing.xml).first).source
        #expect(source.hasPrefix("<!-- A thing with a member of every kind. -->") && source.hasSuffix("</interface>"))
        #expect(source.contains("<!-- Opens it;") && !source.contains("licence"))
    }

    @Test func whatOthersSendIsUnderstood() throws {
        let node = try NodeDescription(
            parsing: """
                \u{feff}<?xml version='1.0'?>
                <!DOCTYPE node PUBLIC "-//freedesktop//DTD >" 'x' [ <!ENTITY a "]>"> <!-- b --> ]>
                <node name = "/">
                 <interface name="a&#46;b"><unknown><method name="1"/></unknown><![CDATA[ <interface ]]>
                   <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
                   <property name="P" type='a{sv}' access="read"/>
                   <method name="M"><arg type="s"/><arg type="u" direction="out"/></method></interface>
                 <node name="x"/><node name="y"><interface name="inner"/></node><node/>
                </node><!-- end -->
                """)
        #expect(node.children == ["x", "y"])
        let interface = try #require(node.interfaces.first)
        #expect(node.interfaces.count == 1 && interface.name == "a.b")
        #expect(interface.property("P")?.changes == .silent)
        #expect(interface.method("M")?.inputSignature == "s" && interface.method("M")?.outputSignature == "u")
    }

    @Test(arguments: [
        "", " ", "x", "<", "<node", "<node>", "</node>", "<node/><node/>", "<interface name='a.b'/>", "<node></nod>", "<node a/>",
        "<node a=b/>",
        "<node a='b/>", "<node a='1' a='2'/>", "<node a='&x;'/>", "<node a='&#0;'/>", "<node a='&#xd800;'/>", "<node a='&#99999999999;'/>",
        "<node a='&amp'/>", "<!-- <node/>", "<!DOCTYPE node <node/>", "<![CDATA[<node/>", "<?xml <node/>", "<node><interface/></node>",
        "<node><interface name='a'/></node>", "<node><interface name='a.b'/><interface name='a.b'/></node>", "<node a='1'b='2'/>", "<node/",
        "<node><interface name='a.b'><method name='-'/></interface></node>", "<node><interface name='a.b'><method/></interface></node>",
        "<node><interface name='a.b'><method name='M'><arg type='ss'/></method></interface></node>",
        "<node><interface name='a.b'><method name='M'><arg/></method></interface></node>",
        "<node><interface name='a.b'><method name='M'/><method name='M'/></interface></node>",
        "<node><interface name='a.b'><property name='P' type='s'/></interface></node>",
        "<node><interface name='a.b'><property name='P' type='' access='read'/></interface></node>",
    ])
    func whatIsWrongIsRefused(_ xml: String) { #expect(throws: XMLError.self) { try NodeDescription(parsing: xml) } }

    @Test func errorsSayTheLine() {
        let broken = [
            "<node>\n<interface name='a.b'>\n<method\nname='9'/></interface></node>": "line 3: <method> has the name \"9\".",
            "<node>\n<!--\n-->\n<a>\n</b></node>": "line 5: The end tag </b> closes nothing.",
        ]
        for (xml, message) in broken {
            do throws(XMLError) {
                _ = try NodeDescription(parsing: xml)
                Issue.record("\(xml) was read")
            } catch {
                #expect("\(error)" == message)
            }
        }
    }

    @Test func garbageNeverTraps() {
        // Beginnings, documents with a byte missing, and bytes replaced by those that mean something.
        let bytes = Array(Thing.xml.utf8)
        for index in stride(from: 0, to: bytes.count, by: 5) {
            _ = try? NodeDescription(parsing: String(decoding: bytes[..<index], as: UTF8.self))
            _ = try? NodeDescription(parsing: String(decoding: bytes[..<index] + bytes[(index + 1)...], as: UTF8.self))
        }
        for index in stride(from: 1, to: bytes.count, by: 11) {
            for byte in "<>&'\"/![]-\0\u{1}".utf8 {
                var broken = bytes
                broken[index] = byte
                _ = try? NodeDescription(parsing: String(decoding: broken, as: UTF8.self))
            }
        }
        _ = try? NodeDescription(parsing: String(repeating: "<a>", count: 100_000))
        _ = try? NodeDescription(parsing: "<!" + String(repeating: "]", count: 1_000) + ">" + String(repeating: "<!", count: 1_000))
    }
}
