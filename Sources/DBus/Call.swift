// SPDX-License-Identifier: MIT

/// A call that somebody made to one of our objects.
///
/// It is answered exactly once, now or later. One that is dropped unanswered answers `Failed` by itself.
public final class Call {
    /// Unicode scalars of an error's text that are sent.
    private static let greatestErrorText = 1_024

    /// The unique name of the caller, as the bus vouches for it.
    public let sender: BusName
    /// The object.
    public let path: ObjectPath
    /// The interface; of a property that is set, the property's.
    public let interface: InterfaceName
    /// The method, or the property that is set.
    public let member: MemberName
    /// The arguments, of exactly the types that the XML names; of a property that is set, its new value.
    public let arguments: [Value]

    private let connection: Connection
    private let outputSignature: Signature
    private let serial: UInt32
    private let isReplyWanted: Bool
    private var isAnswered = false

    fileprivate init(
        _ message: Message, _ connection: Connection, _ sender: BusName, _ path: ObjectPath,
        _ interface: InterfaceName, _ method: InterfaceDescription.Method, _ arguments: [Value]
    ) {
        (self.sender, self.path, self.interface, member, self.arguments) = (sender, path, interface, method.name, arguments)
        (self.connection, outputSignature, serial, isReplyWanted) = (connection, method.outputSignature, message.serial, message.wantsReply)
    }

    /// The call that a `Properties.Set` stands for.
    init(setting property: MemberName, of interface: InterfaceName, to value: Value, by call: Call) {
        (sender, path, self.interface, member, arguments) = (call.sender, call.path, interface, property, [value])
        (connection, outputSignature, serial, isReplyWanted) = (call.connection, .empty, call.serial, call.isReplyWanted)
        call.isAnswered = true
    }

    deinit {
        guard !isAnswered, isReplyWanted else { return }
        log.error("\(interface).\(member) was dropped unanswered.")
        fail(name: StandardError.failed, message: "The call was dropped. This is a mistake in the program that was called.")
    }

    /// Answers with the values that the XML promises. Nothing is sent when the caller wants no reply.
    ///
    /// Other values are our own mistake; the caller gets `Failed` and the log says why.
    public func reply(_ values: [Value] = []) {
        let signature = values.map(\.signature.text).joined()
        guard signature == outputSignature.text else {
            return failByMistake("The answer has the types \"\(signature)\", not \"\(outputSignature)\".")
        }
        do throws(DBusError) {
            try answer { () throws(DBusError) in try Message.methodReturn(to: sender, serial: serial, values) }
        } catch {
            isAnswered = false
            failByMistake("\(error)")
        }
    }

    /// Answers with an error.
    ///
    /// - Parameter name: an interface name, like those of ``StandardError``.
    /// - Parameter message: what was wrong, and what to do about it.
    public func fail(name: String, message: String) {
        // It may quote what a peer sent, of any length; the bus drops who sends too much.
        let scalars = message.unicodeScalars.prefix(Call.greatestErrorText)
        let message = scalars.endIndex == message.endIndex ? message : String(String.UnicodeScalarView(scalars)) + "…"
        guard let errorName = InterfaceName(name) else { return failByMistake("\"\(name)\" is no error name. \(message)") }
        do throws(DBusError) {
            try answer { () throws(DBusError) in try Message.error(to: sender, serial: serial, name: errorName, text: message) }
        } catch {
            log.error("\(interface).\(member) cannot be answered: \(error)")
        }
    }

    private func failByMistake(_ detail: String) {
        log.error("\(interface).\(member): \(detail)")
        fail(name: StandardError.failed, message: "\(detail) This is a mistake in the program that was called.")
    }

    /// - Throws: when the answer cannot be sent, unless that is because nobody is there.
    private func answer(_ make: () throws(DBusError) -> Message) throws(DBusError) {
        guard !isAnswered else { return log.error("\(interface).\(member) was answered twice.") }
        isAnswered = true
        guard isReplyWanted, connection.isConnected else { return }
        try connection.answer(sender, try make())
    }
}

// MARK: - From messages

extension Call {
    /// Makes a call out of a message whose types are those of the method; answers it with an error when they are not.
    static func accept(
        _ message: Message, on connection: Connection, _ interface: InterfaceName, _ method: InterfaceDescription.Method
    ) -> Call? {
        guard let sender = message.sender, let path = message.path else { return nil }
        guard message.signature == method.inputSignature else {
            let names = method.inputs.map(\.name).filter { !$0.isEmpty }.joined(separator: ", ")
            let expected = "\"\(method.inputSignature)\"" + (names.isEmpty ? "" : " (\(names))")
            refuse(
                message, on: connection, StandardError.invalidArguments,
                "\(interface).\(method.name) takes \(expected), not \"\(message.signature)\".")
            return nil
        }
        do throws(DBusError) {
            return Call(message, connection, sender, path, interface, method, try message.arguments())
        } catch {
            refuse(message, on: connection, StandardError.limitsExceeded, "\(error)")
            return nil
        }
    }

    /// Answers a message that is no call to any of our methods.
    static func refuse(_ message: Message, on connection: Connection, _ name: String, _ text: String) {
        guard message.wantsReply, let sender = message.sender, let name = InterfaceName(name) else { return }
        do throws(DBusError) {
            try connection.answer(sender, try Message.error(to: sender, serial: message.serial, name: name, text: text))
        } catch {
            log.debug("A call of \(sender) could not be refused: \(error)")
        }
    }
}
