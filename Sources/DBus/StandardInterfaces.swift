// SPDX-License-Identifier: MIT
import CDBus

/// The interfaces of the bus's specification that every object of a server has.
///
/// Spec: <https://dbus.freedesktop.org/doc/dbus-specification.html#standard-interfaces>
struct StandardInterfaces {
    static let peerName: InterfaceName = "org.freedesktop.DBus.Peer"
    static let propertiesName: InterfaceName = "org.freedesktop.DBus.Properties"
    static let objectManagerName: InterfaceName = "org.freedesktop.DBus.ObjectManager"

    let peer: ExportedInterface
    let introspectable: ExportedInterface
    let properties: ExportedInterface
    let objectManager: ExportedInterface

    /// What every object has.
    var ofObjects: [ExportedInterface] { [properties, introspectable, peer] }
    /// What a path has that only leads to objects.
    var ofPaths: [ExportedInterface] { [introspectable, peer] }

    /// - Parameter server: the one that these interfaces are a part of.
    init(_ server: ObjectServer) {
        peer = ExportedInterface(
            described("Peer"), methods: ["Ping": { $0.reply() }, "GetMachineId": getMachineID])
        introspectable = ExportedInterface(
            described("Introspectable"),
            methods: ["Introspect": { [unowned server] call in call.reply([.string(introspection(of: call.path, in: server))]) }])
        properties = ExportedInterface(
            described("Properties"),
            methods: [
                "Get": { [unowned server] call in getProperty(call, server) },
                "GetAll": { [unowned server] call in getAllProperties(call, server) },
                "Set": { [unowned server] call in setProperty(call, server) },
            ])
        objectManager = ExportedInterface(
            described("ObjectManager"),
            methods: ["GetManagedObjects": { [unowned server] call in call.reply([server.managedObjects(of: call.path)]) }])
    }
}

// MARK: - Peer and Introspectable

private func getMachineID(_ call: Call) {
    guard let text = dbus_try_get_local_machine_id(nil) else {
        return call.fail(name: StandardError.failed, message: "This machine has no identity: /etc/machine-id cannot be read.")
    }
    defer { dbus_free(text) }
    call.reply([.string(String(cString: text))])
}

private func introspection(of path: ObjectPath, in server: ObjectServer) -> String {
    let interfaces = server.objects[path]?.all ?? server.standard.ofPaths
    let namespaces = interfaces.reduce(into: [String: String]()) { all, exported in
        all.merge(exported.description.namespaces) { first, _ in first }
    }
    let attributes = namespaces.sorted { $0.key < $1.key }.map { " \($0.key)=\"\(escapedForXML($0.value))\"" }.joined()
    let children = server.children(of: path).map { "  <node name=\"\($0)\"/>\n" }.joined()
    return """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
          "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
        <node\(attributes)>
        \(interfaces.map { "  \($0.description.source)\n" }.joined())\(children)</node>

        """
}

// MARK: - Properties

/// What a call to Properties is about.
private func findProperty(
    _ call: Call, _ server: ObjectServer
) -> (exported: ExportedInterface, property: InterfaceDescription.Property)? {
    guard let interface = call.arguments[0].asString, let text = call.arguments[1].asString,
        let candidates = findInterfaces(call, server, interface)
    else { return nil }
    if let name = MemberName(text) {
        for exported in candidates {
            if let property = exported.description.property(name) { return (exported, property) }
        }
    }
    let owner = interface.isEmpty ? "No interface of \(call.path)" : "The interface \(interface)"
    let names = candidates.flatMap { $0.description.properties.map(\.name) }
    call.fail(
        name: StandardError.unknownProperty,
        message: "\(owner) has \(interface.isEmpty ? "a" : "no") property \(Value.string(text)). \(list("There is", names))")
    return nil
}

/// The interfaces that a name stands for, all of them for an empty one; answers the call when there are none.
private func findInterfaces(_ call: Call, _ server: ObjectServer, _ name: String) -> [ExportedInterface]? {
    let all = server.objects[call.path]?.all ?? []
    if name.isEmpty { return all }
    let found = all.filter { $0.name.text == name }
    guard found.isEmpty else { return found }
    call.fail(
        name: StandardError.unknownInterface,
        message: "The object \(call.path) has no interface \(Value.string(name)). \(list("It has", all.map(\.name)))")
    return nil
}

private func getProperty(_ call: Call, _ server: ObjectServer) {
    guard let (exported, property) = findProperty(call, server) else { return }
    guard property.access != .write else {
        return call.fail(name: StandardError.accessDenied, message: "The property \(exported.name).\(property.name) can only be written.")
    }
    refresh([exported.properties[property.name]?.refresh]) {
        guard let value = exported.value(of: property) else {
            return call.fail(
                name: StandardError.failed,
                message:
                    "The property \(exported.name).\(property.name) has no proper value. This is a mistake in the program that was called.")
        }
        call.reply([.variant(value)])
    }
}

/// Brings values up to date, one after the other.
private func refresh(_ all: [((@escaping () -> Void) -> Void)?], _ completion: @escaping () -> Void) {
    guard let first = all.first else { return completion() }
    let rest = { refresh(Array(all.dropFirst()), completion) }
    if let first { first(rest) } else { rest() }
}

private func getAllProperties(_ call: Call, _ server: ObjectServer) {
    guard let interface = call.arguments[0].asString, let found = findInterfaces(call, server, interface) else { return }
    refresh(found.flatMap { $0.properties.values.compactMap(\.refresh) }) {
        let values = found.reduce(into: [String: Value]()) { all, exported in all.merge(exported.values) { first, _ in first } }
        call.reply([.options(values)])
    }
}

private func setProperty(_ call: Call, _ server: ObjectServer) {
    guard let (exported, property) = findProperty(call, server), let value = call.arguments[2].asVariant else { return }
    guard property.access != .read, let set = exported.properties[property.name]?.set else {
        return call.fail(name: StandardError.propertyReadOnly, message: "The property \(exported.name).\(property.name) can only be read.")
    }
    guard value.signature == property.type else {
        return call.fail(
            name: StandardError.invalidArguments,
            message: "The property \(exported.name).\(property.name) has the type \"\(property.type)\", not \"\(value.signature)\".")
    }
    set(value, Call(setting: property.name, of: exported.name, to: value, by: call))
}

// MARK: - Descriptions

private func described(_ name: String) -> InterfaceDescription {
    guard let description = standardDescriptions.first(where: { $0.name.text == "org.freedesktop.DBus.\(name)" }) else {
        preconditionFailure("no description of \(name)")
    }
    return description
}

private let standardDescriptions: [InterfaceDescription] = {
    do throws(XMLError) {
        return try InterfaceDescription.parse(standardXML)
    } catch {
        preconditionFailure("the standard interfaces: \(error)")
    }
}()

private let standardXML = """
    <node>
      <interface name="org.freedesktop.DBus.Properties">
        <method name="Get">
          <arg name="interface_name" type="s" direction="in"/>
          <arg name="property_name" type="s" direction="in"/>
          <arg name="value" type="v" direction="out"/>
        </method>
        <method name="GetAll">
          <arg name="interface_name" type="s" direction="in"/>
          <arg name="properties" type="a{sv}" direction="out"/>
        </method>
        <method name="Set">
          <arg name="interface_name" type="s" direction="in"/>
          <arg name="property_name" type="s" direction="in"/>
          <arg name="value" type="v" direction="in"/>
        </method>
        <signal name="PropertiesChanged">
          <arg name="interface_name" type="s"/>
          <arg name="changed_properties" type="a{sv}"/>
          <arg name="invalidated_properties" type="as"/>
        </signal>
      </interface>
      <interface name="org.freedesktop.DBus.Introspectable">
        <method name="Introspect">
          <arg name="xml_data" type="s" direction="out"/>
        </method>
      </interface>
      <interface name="org.freedesktop.DBus.Peer">
        <method name="Ping"/>
        <method name="GetMachineId">
          <arg name="machine_uuid" type="s" direction="out"/>
        </method>
      </interface>
      <interface name="org.freedesktop.DBus.ObjectManager">
        <method name="GetManagedObjects">
          <arg name="objects" type="a{oa{sa{sv}}}" direction="out"/>
        </method>
        <signal name="InterfacesAdded">
          <arg name="object" type="o"/>
          <arg name="interfaces" type="a{sa{sv}}"/>
        </signal>
        <signal name="InterfacesRemoved">
          <arg name="object" type="o"/>
          <arg name="interfaces" type="as"/>
        </signal>
      </interface>
    </node>
    """
