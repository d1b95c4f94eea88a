// SPDX-License-Identifier: MIT
import DBus
import Loop

/// An object with a member of every kind.
final class Thing {
    static let name: InterfaceName = "org.example.Thing"
    static let xml = """
        <!-- A licence. -->
        <node>
          <!-- A thing with a member of every kind. -->
          <interface name="org.example.Thing">
            <annotation name="org.example.Kind" value="a &lt;test&gt;"/>
            <!-- Gives back what it gets. -->
            <method name="Echo">
              <arg name="value" type="v" direction="in"/>
              <arg name="same" type="v" direction="out"/>
            </method>
            <method name='Open'>
              <!-- Opens it; <arg> and & in a comment mean nothing. -->
              <arg name="options" type="a{sv}" direction="in"/>
              <arg name="path" type="o" direction="out"/>
              <arg name="end" type="h" direction="out"/>
            </method>
            <method name="Add">
              <arg name="left" type="u" direction="in"/>
              <arg name="right" type="u" direction="in"/>
              <arg name="sum" type="u" direction="out"/>
            </method>
            <method name="Hold"/>
            <method name="Drop"/>
            <method name="Lie">
              <arg name="answer" type="s" direction="out"/>
            </method>
            <method name="Fail">
              <arg name="name" type="s" direction="in"/>
              <arg name="message" type="s" direction="in"/>
            </method>
            <signal name="Happened">
              <arg name="what" type="s"/>
              <arg name="count" type="u"/>
            </signal>
            <property name="Level" type="u" access="readwrite"/>
            <property name="Label" type="s" access="read"/>
            <property name="Age" type="t" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <property name="Serial" type="s" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="const"/>
            </property>
            <property name="Cache" type="as" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="invalidates"/>
            </property>
            <property name="Secret" type="s" access="write"/>
            <property name="Broken" type="u" access="read"/>
          </interface>
        </node>
        """

    var level: UInt32 = 1
    var secret = ""
    var held: [Call] = []
    var calls = 0
    /// The interface, alone in a list.
    private(set) var exported: [ExportedInterface] = []

    init() throws {
        let interface = ExportedInterface(
            try InterfaceDescription.parse(Thing.xml)[0],
            methods: [
                "Echo": { [unowned self] call in
                    calls += 1
                    call.reply(call.arguments)
                },
                "Open": { call in
                    guard let pipe = try? FileDescriptor.pipe() else { return call.fail(name: StandardError.failed, message: "no pipe") }
                    call.reply([.objectPath(call.path), .descriptor(pipe.reading)])
                },
                "Add": { call in
                    guard let left = call.arguments[0].asUInt32, let right = call.arguments[1].asUInt32 else { return }
                    call.reply([.uint32(left &+ right)])
                },
                "Hold": { [unowned self] call in held.append(call) },
                "Drop": { _ in },
                "Lie": { call in call.reply([.uint32(1)]) },
                "Fail": { call in call.fail(name: call.arguments[0].asString ?? "", message: call.arguments[1].asString ?? "") },
            ],
            properties: [
                "Level": Property(
                    get: { [unowned self] in .uint32(level) },
                    set: { [unowned self] value, call in
                        guard let new = value.asUInt32, new <= 9 else {
                            return call.fail(name: StandardError.invalidArguments, message: "\(call.member) goes up to 9.")
                        }
                        level = new
                        call.reply()
                    }),
                "Label": Property(get: { .string("thing") }),
                "Age": Property(get: { .uint64(7) }),
                "Serial": Property(get: { .string("1") }),
                "Cache": Property(get: { .strings(["x"]) }),
                "Secret": Property(
                    get: { .string("never read") },
                    set: { [unowned self] value, call in
                        secret = value.asString ?? ""
                        call.reply()
                    }),
                "Broken": Property(get: { .string("no number") }),
            ])
        exported = [interface]
    }
}

/// A call of a thing's method.
func thingCall(_ to: Connection, _ member: MemberName, _ arguments: [Value] = [], at path: ObjectPath = "/org/example/Thing") -> MethodCall
{
    MethodCall(destination: to.uniqueName, path: path, interface: Thing.name, member: member, arguments: arguments)
}
