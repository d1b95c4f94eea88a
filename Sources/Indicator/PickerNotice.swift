// SPDX-License-Identifier: MIT
public import DBus
import Loop

/// The notification that says which program wants the screen, for the time that its picker is open.
///
/// The desktop's picker names Vitrine, whoever asked: before one that a sandboxed program or a stranger opens, the person is told who it was.
public final class PickerNotice {
    private let notification: Notification

    /// Shows it.
    ///
    /// - Parameters:
    ///   - identity: as the agent found it out, never as the program says.
    ///   - title: what the program says that it is for; may be empty.
    ///   - trusts: says whose word about the notification is the person's.
    public init(_ connection: Connection, who identity: String, title: String, trusts: @escaping Indicator.Trust) {
        let purpose = title.isEmpty ? "" : " It says: \(quoted(title))."
        let content = Notification.Content(
            summary: "A program asks to share your screen", body: "\(identity.asPlainText) has opened the picker.\(purpose)")
        notification = Notification(connection, content, trusts: trusts)
    }

    /// Takes it away: the picker is closed.
    public func close() { notification.close() }
}
