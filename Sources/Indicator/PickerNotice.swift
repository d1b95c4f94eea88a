// SPDX-License-Identifier: MIT
public import DBus

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
    public init(_ connection: Connection, who identity: String, title: String) {
        let purpose = title.isEmpty ? "" : " It says: “\(title)”."
        notification = Notification(
            connection,
            Notification.Content(summary: "A program asks to share your screen", body: "\(identity) has opened the picker.\(purpose)"))
    }

    /// Takes it away: the picker is closed.
    public func close() { notification.close() }
}
