// SPDX-License-Identifier: MIT
import DBus
import Loop

/// The notification that says which program wants the screen, for the time that its picker is open.
///
/// The desktop's picker names Vitrine, whoever asked: before one that a sandboxed program or a stranger opens, the person is told who it was.
/// Nobody waits for it, and a desktop without notifications has none.
///
/// Spec: https://specifications.freedesktop.org/notification-spec/latest/
final class PickerNotice {
    private static let service = BusName(static: "org.freedesktop.Notifications")
    private static let path: ObjectPath = "/org/freedesktop/Notifications"
    private static let interface: InterfaceName = "org.freedesktop.Notifications"

    private let connection: Connection
    private let log = Log("notice")
    private var id: UInt32?
    private var isClosed = false

    /// Shows it.
    ///
    /// - Parameter identity: as the agent found it out, never as the program says.
    init(_ connection: Connection, who identity: Identity, title: String) {
        self.connection = connection
        let program = Self.escaped(identity.name)
        let purpose = title.isEmpty ? "" : " It says: “\(Self.escaped(title))”."
        let arguments: [Value] = [
            .string("Vitrine"), .uint32(0), .string("org.vitrine.ScreenShare1"), .string("A program asks to share your screen"),
            .string("\(program) has opened the picker.\(purpose)"), .array(of: "s", []),
            .options(["urgency": .byte(1), "desktop-entry": .string("org.vitrine.ScreenShare1"), "transient": .bool(true)]),
            .int32(0),
        ]
        let call = MethodCall(destination: Self.service, path: Self.path, interface: Self.interface, member: "Notify", arguments: arguments)
        // Kept until the answer: one that is shown after the picker was closed has to go too.
        connection.call(call, timeout: .seconds(30)) { [self] result in
            switch result {
            case .success(let values):
                id = values.first?.asUInt32
                if isClosed { remove() }
            case .failure(let error): log.info("the person was not told that \(identity.name) opened the picker: \(error)")
            }
        }
    }

    /// Takes it away: the picker is closed.
    func close() {
        isClosed = true
        remove()
    }

    private func remove() {
        guard let id else { return }
        self.id = nil
        connection.send(
            MethodCall(
                destination: Self.service, path: Self.path, interface: Self.interface, member: "CloseNotification", arguments: [.uint32(id)]
            ))
    }

    /// The body of a notification may be markup.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.append(character)
            }
        }
        return result
    }
}
