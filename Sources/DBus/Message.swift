// SPDX-License-Identifier: MIT
import CDBus

/// A message of the library, owned by this object.
///
/// Every name that goes into one was checked by its type: the library ends the program over a wrong one.
final class Message {
    /// What a message is.
    enum Kind { case methodCall, methodReturn, error, signal, other }

    let raw: OpaquePointer

    init(owning raw: OpaquePointer) { self.raw = raw }

    deinit { dbus_message_unref(raw) }

    private convenience init(_ made: OpaquePointer?) throws(DBusError) {
        guard let made else { throw .outOfMemory }
        self.init(owning: made)
    }

    /// Its size as it is sent; of one that was sent, for that gives it its serial number.
    var byteCount: Int {
        var bytes: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        guard dbus_message_marshal(raw, &bytes, &count) != 0 else { return 0 }
        dbus_free(bytes)
        return Int(count)
    }

    static func methodCall(_ call: MethodCall) throws(DBusError) -> Message {
        let message = try Message(
            dbus_message_new_method_call(call.destination.text, call.path.text, call.interface.text, call.member.text))
        dbus_message_set_auto_start(message.raw, call.noAutoStart ? 0 : 1)
        try message.append(call.arguments)
        return message
    }

    static func signal(
        _ path: ObjectPath, _ interface: InterfaceName, _ member: MemberName, _ arguments: [Value], to destination: BusName?
    ) throws(DBusError) -> Message {
        let message = try Message(dbus_message_new_signal(path.text, interface.text, member.text))
        if let destination, dbus_message_set_destination(message.raw, destination.text) == 0 { throw .outOfMemory }
        try message.append(arguments)
        return message
    }

    static func methodReturn(to destination: BusName, serial: UInt32, _ values: [Value]) throws(DBusError) -> Message {
        let message = try reply(DBUS_MESSAGE_TYPE_METHOD_RETURN, to: destination, serial: serial)
        try message.append(values)
        return message
    }

    static func error(to destination: BusName, serial: UInt32, name: InterfaceName, text: String) throws(DBusError) -> Message {
        let message = try reply(DBUS_MESSAGE_TYPE_ERROR, to: destination, serial: serial)
        guard dbus_message_set_error_name(message.raw, name.text) != 0 else { throw .outOfMemory }
        // A string that quotes a peer may contain anything, and an error must get through.
        try message.append([.string(String(text.map { $0 == "\0" ? "\u{fffd}" : $0 }))])
        return message
    }

    private static func reply(_ type: Int32, to destination: BusName, serial: UInt32) throws(DBusError) -> Message {
        let message = try Message(dbus_message_new(type))
        dbus_message_set_no_reply(message.raw, 1)
        guard dbus_message_set_destination(message.raw, destination.text) != 0, dbus_message_set_reply_serial(message.raw, serial) != 0
        else { throw .outOfMemory }
        return message
    }
}

// MARK: - What came

/// The library has checked the header of everything that it received.
extension Message {
    var kind: Kind {
        switch dbus_message_get_type(raw) {
        case DBUS_MESSAGE_TYPE_METHOD_CALL: .methodCall
        case DBUS_MESSAGE_TYPE_METHOD_RETURN: .methodReturn
        case DBUS_MESSAGE_TYPE_ERROR: .error
        case DBUS_MESSAGE_TYPE_SIGNAL: .signal
        default: .other
        }
    }

    var serial: UInt32 { dbus_message_get_serial(raw) }
    var replySerial: UInt32 { dbus_message_get_reply_serial(raw) }
    var wantsReply: Bool {
        get { dbus_message_get_no_reply(raw) == 0 }
        set { dbus_message_set_no_reply(raw, newValue ? 0 : 1) }
    }
    var sender: BusName? { dbus_message_get_sender(raw).map { BusName(validated: String(cString: $0)) } }
    var path: ObjectPath? { dbus_message_get_path(raw).map { ObjectPath(validated: String(cString: $0)) } }
    var interface: InterfaceName? { dbus_message_get_interface(raw).map { InterfaceName(validated: String(cString: $0)) } }
    var member: MemberName? { dbus_message_get_member(raw).map { MemberName(validated: String(cString: $0)) } }
    var signature: Signature { dbus_message_get_signature(raw).map { Signature(validated: String(cString: $0)) } ?? .empty }

    /// The contents of an error message.
    var error: DBusError {
        let name = dbus_message_get_error_name(raw).map { String(cString: $0) } ?? StandardError.failed
        let text = try? arguments().first?.asString
        return .remote(name: name, message: text ?? "")
    }
}
