// SPDX-License-Identifier: MIT
import DBus
import Loop

/// One notification of the desktop, from when it is shown until it is closed, by this side or by the person.
///
/// Nobody waits for it, and a desktop without notifications has none. It stays until it is closed.
///
/// Thread: the connection's loop.
/// Spec: https://specifications.freedesktop.org/notification-spec/latest/
final class Notification {
    /// What it says.
    struct Content: Equatable {
        var summary: String
        /// May hold what programs said: it is escaped here.
        var body: String
        /// Key and label of each button.
        var actions: [(key: String, label: String)] = []

        static func == (left: Content, right: Content) -> Bool {
            left.summary == right.summary && left.body == right.body && left.actions.map(\.key) == right.actions.map(\.key)
                && left.actions.map(\.label) == right.actions.map(\.label)
        }
    }

    /// The person has pressed a button.
    var onAction: ((_ key: String) -> Void)?
    /// The person, or the desktop, has closed it.
    var onClosed: (() -> Void)?

    private static let service = BusName(static: "org.freedesktop.Notifications")
    private static let path: ObjectPath = "/org/freedesktop/Notifications"
    private static let interface: InterfaceName = "org.freedesktop.Notifications"

    private let connection: Connection
    private let log = Log("notice")
    private var subscriptions: [Subscription] = []
    private var id: UInt32?
    private var content: Content
    private var isAsking = false
    private var isClosed = false

    /// Shows it.
    init(_ connection: Connection, _ content: Content) {
        (self.connection, self.content) = (connection, content)
        listen("ActionInvoked") { [weak self] arguments in
            if arguments.count > 1, let key = arguments[1].asString { self?.onAction?(key) }
        }
        listen("NotificationClosed") { [weak self] _ in
            self?.id = nil
            self?.isClosed = true
            self?.onClosed?()
        }
        ask()
    }

    /// Says something else.
    func update(_ content: Content) {
        guard content != self.content, !isClosed else { return }
        self.content = content
        // An answer that is still to come is followed by what is new.
        if !isAsking { ask() }
    }

    /// Takes it away.
    func close() {
        isClosed = true
        for subscription in subscriptions { subscription.cancel() }
        subscriptions = []
        remove()
    }

    private func listen(_ signal: MemberName, _ handler: @escaping ([Value]) -> Void) {
        let rule = MatchRule(sender: Self.service, path: Self.path, interface: Self.interface, member: signal)
        subscriptions.append(
            connection.subscribe(rule) { [weak self] signal in
                guard let self, let id, signal.arguments.first?.asUInt32 == id else { return }
                handler(signal.arguments)
            })
    }

    private func ask() {
        isAsking = true
        let shown = content
        let arguments: [Value] = [
            .string("Vitrine"), .uint32(id ?? 0), .string("org.vitrine.ScreenShare1"), .string(shown.summary), .string(escaped(shown.body)),
            .strings(shown.actions.flatMap { [$0.key, $0.label] }),
            .options(["urgency": .byte(1), "desktop-entry": .string("org.vitrine.ScreenShare1"), "resident": .bool(true)]),
            // It does not go by itself.
            .int32(0),
        ]
        let call = MethodCall(destination: Self.service, path: Self.path, interface: Self.interface, member: "Notify", arguments: arguments)
        // Kept until the answer: one that is shown after it was closed has to go too.
        connection.call(call, timeout: .seconds(30)) { [self] result in
            isAsking = false
            switch result {
            case .success(let values):
                id = values.first?.asUInt32
                if isClosed { remove() } else if content != shown { ask() }
            case .failure(let error):
                // It is not tried again at each change.
                if !isClosed { log.info("the desktop shows no notifications: \(error)") }
                isClosed = true
            }
        }
    }

    private func remove() {
        guard let id else { return }
        self.id = nil
        connection.send(
            MethodCall(
                destination: Self.service, path: Self.path, interface: Self.interface, member: "CloseNotification", arguments: [.uint32(id)]
            ))
    }
}

/// The body of a notification may be markup.
private func escaped(_ text: String) -> String {
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
