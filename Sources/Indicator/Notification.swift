// SPDX-License-Identifier: MIT
import DBus
import Loop

/// One notification of the desktop, from when it is shown until it is closed, by this side or by the person.
///
/// Nobody waits for it, and a desktop without notifications has none. It stays until it is closed: one that another program closes is shown
/// again, one that the desktop takes away comes back when it has something else to say.
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

    /// Why one is closed: the numbers of the specification.
    private enum Reason {
        static let dismissed: UInt32 = 2
        static let closedByACall: UInt32 = 3
    }

    /// The person has pressed a button.
    var onAction: ((_ key: String) -> Void)?
    /// The person has closed it.
    var onDismissed: (() -> Void)?

    private static let service = BusName(static: "org.freedesktop.Notifications")
    private static let path: ObjectPath = "/org/freedesktop/Notifications"
    private static let interface: InterfaceName = "org.freedesktop.Notifications"
    /// How soon one that another program has closed is shown again: whoever closes it again and again costs little.
    private static let returnDelay = Duration.seconds(2)

    private let connection: Connection
    private let trusts: Indicator.Trust
    private let log = Log("notice")
    private var subscriptions: [Subscription] = []
    /// Who shows notifications; nil while nobody does, or nothing is known yet.
    private var server: BusName?
    private var id: UInt32?
    private var content: Content
    private var isAsking = false
    private var isClosed = false
    private var hasFailed = false
    private var returning: Timer?

    /// Shows it.
    ///
    /// - Parameter trusts: says whose word about it is the person's.
    init(_ connection: Connection, _ content: Content, trusts: @escaping Indicator.Trust) {
        (self.connection, self.content, self.trusts) = (connection, content, trusts)
        listen("ActionInvoked") { [weak self] arguments in
            if arguments.count > 1, let key = arguments[1].asString { self?.onAction?(key) }
        }
        listen("NotificationClosed") { [weak self] arguments in self?.wasClosed(arguments.count > 1 ? arguments[1].asUInt32 : nil) }
        ask()
        subscriptions.append(connection.watchName(Self.service) { [weak self] owner in self?.follow(owner) })
    }

    /// Says something else.
    func update(_ content: Content) {
        guard content != self.content, !isClosed else { return }
        self.content = content
        // An answer that is still to come is followed by what is new. What failed is not tried again at each change.
        if !isAsking, !hasFailed { ask() }
    }

    /// Takes it away.
    func close() {
        isClosed = true
        returning?.cancel()
        for subscription in subscriptions { subscription.cancel() }
        subscriptions = []
        remove()
    }

    private func listen(_ signal: MemberName, _ handler: @escaping ([Value]) -> Void) {
        let rule = MatchRule(sender: Self.service, path: Self.path, interface: Self.interface, member: signal)
        subscriptions.append(
            connection.subscribe(rule) { [weak self] signal in
                guard let self, let id, let sender = signal.sender, signal.arguments.first?.asUInt32 == id else { return }
                // The name may be taken by anybody who finds it free.
                trusts(sender) { [weak self] isTrusted in if isTrusted, self?.id == id { handler(signal.arguments) } }
            })
    }

    private func wasClosed(_ reason: UInt32?) {
        id = nil
        switch reason {
        case Reason.dismissed:
            isClosed = true
            onDismissed?()
        case Reason.closedByACall:
            returning = connection.loop.after(Self.returnDelay) { [weak self] in
                guard let self, !isClosed, !isAsking, id == nil else { return }
                ask()
            }
        // It has expired, or the desktop has its own reasons.
        default: break
        }
    }

    /// Another program shows notifications now, and knows nothing of this one; or nobody does.
    private func follow(_ owner: BusName?) {
        let before = server
        server = owner
        if owner == nil, !isAsking { hasFailed = true }
        if owner != before, !isAsking { id = nil }
        guard owner != nil, owner != before, !isClosed, !isAsking, before != nil || hasFailed else { return }
        ask()
    }

    private func ask() {
        (isAsking, hasFailed) = (true, false)
        let (shown, asked) = (content, server)
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
                if isClosed { return }
                log.info("the desktop shows no notifications: \(error)")
                hasFailed = true
                // It may have left while it was asked, and another one may be there already.
                if let server, server != asked, asked != nil { ask() }
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

/// The body of a notification may be markup. Scalars, since one character may be made of a sign of markup and of what is written over it.
private func escaped(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        switch scalar {
        case "&": result.append(contentsOf: "&amp;".unicodeScalars)
        case "<": result.append(contentsOf: "&lt;".unicodeScalars)
        case ">": result.append(contentsOf: "&gt;".unicodeScalars)
        default: result.append(scalar)
        }
    }
    return String(result)
}
