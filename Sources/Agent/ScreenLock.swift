// SPDX-License-Identifier: MIT
import DBus
import Loop

/// Whether nobody sees the screen: the session is locked, or the machine goes to sleep. Told by logind, on the machine's bus.
///
/// Where there has been no logind nothing is known, and nothing is hidden. Once it has said that nobody sees the screen, that holds until it says
/// otherwise: a logind that goes away says nothing.
/// Source: [org.freedesktop.login1](https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html).
final class ScreenLock {
    private(set) var isLocked = false {
        didSet { if isLocked != oldValue { onChange() } }
    }

    private static let service = BusName(static: "org.freedesktop.login1")
    private static let manager: InterfaceName = "org.freedesktop.login1.Manager"
    private static let session: InterfaceName = "org.freedesktop.login1.Session"
    private static let properties: InterfaceName = "org.freedesktop.DBus.Properties"
    private static let path: ObjectPath = "/org/freedesktop/login1"

    private let loop: EventLoop
    private let log = Log("lock")
    private let onChange: () -> Void
    private var connection: Connection?
    private var isServed = false
    /// The session that is listened to.
    private var followed: (path: ObjectPath, changes: Subscription)?
    private var hasLocked = false { didSet { update() } }
    private var isFallingAsleep = false { didSet { update() } }

    /// Connects to the machine's bus, which blocks until it has answered: for the program's start.
    init(on loop: EventLoop, onChange: @escaping () -> Void) {
        (self.loop, self.onChange) = (loop, onChange)
        connect()
    }

    /// Asks again how it is: what logind did not know when it was asked last it may know now.
    func ask() {
        if connection == nil { connect() }
        guard let connection, isServed else { return }
        findSession(connection)
        read("PreparingForSleep", of: ScreenLock.path, ScreenLock.manager, connection) { [weak self] in self?.isFallingAsleep = $0 }
    }

    private func connect() {
        do throws(DBusError) {
            let connection = try Connection.open(.system, on: loop)
            self.connection = connection
            connection.onDisconnect = { [weak self] in
                self?.logindLeft()
                self?.connection = nil
            }
            watch(connection)
        } catch {
            log.debug("nothing is known of locks: \(error)")
        }
    }

    private func watch(_ connection: Connection) {
        let listen = { (member: MemberName, handler: @escaping (Signal) -> Void) in
            let rule = MatchRule(sender: ScreenLock.service, path: ScreenLock.path, interface: ScreenLock.manager, member: member)
            connection.subscribe(rule, handler)
        }
        listen("PrepareForSleep") { [weak self] signal in
            guard let self, let begins = signal.arguments.first?.asBool else { return }
            log.info(begins ? "the machine goes to sleep" : "the machine is awake")
            isFallingAsleep = begins
        }
        listen("SessionNew") { [weak self] _ in self?.ask() }
        listen("SessionRemoved") { [weak self] _ in self?.ask() }
        connection.watchName(ScreenLock.service) { [weak self] owner in
            self?.logindLeft()
            self?.isServed = owner != nil
            self?.ask()
        }
    }

    private func logindLeft() {
        followed?.changes.cancel()
        followed = nil
        isServed = false
        if isLocked { log.warning("logind has left while nobody saw the screen: nobody sees it until logind says otherwise") }
    }

    /// The caller's session, or that of its user's display: a service of the user has none of its own.
    private func findSession(_ connection: Connection) {
        let call = MethodCall(
            destination: ScreenLock.service, path: ScreenLock.path, interface: ScreenLock.manager, member: "GetSession",
            arguments: [.string("auto")])
        connection.call(call, timeout: .seconds(30)) { [weak self] result in
            switch result {
            case .success(let values): if let path = values.first?.asObjectPath { self?.follow(path, connection) }
            case .failure(let error): self?.log.debug("logind knows no session of this user: \(error)")
            }
        }
    }

    private func follow(_ path: ObjectPath, _ connection: Connection) {
        if followed?.path != path {
            followed?.changes.cancel()
            let rule = MatchRule(
                sender: ScreenLock.service, path: path, interface: ScreenLock.properties, member: "PropertiesChanged",
                argument0: ScreenLock.session.text)
            let changes = connection.subscribe(rule) { [weak self] signal in
                guard signal.arguments.count > 1, let changed = signal.arguments[1].asOptions else { return }
                if let locked = changed["LockedHint"]?.asBool { self?.note(locked) }
            }
            followed = (path, changes)
        }
        read("LockedHint", of: path, ScreenLock.session, connection) { [weak self] in self?.note($0) }
    }

    private func read(
        _ property: String, of path: ObjectPath, _ interface: InterfaceName, _ connection: Connection,
        _ completion: @escaping (Bool) -> Void
    ) {
        let call = MethodCall(
            destination: ScreenLock.service, path: path, interface: ScreenLock.properties, member: "Get",
            arguments: [.string(interface.text), .string(property)])
        connection.call(call, timeout: .seconds(30)) { result in
            guard case .success(let values) = result, let value = values.first?.asVariant?.asBool else { return }
            completion(value)
        }
    }

    private func update() { isLocked = hasLocked || isFallingAsleep }

    private func note(_ locked: Bool) {
        if locked != hasLocked { log.info("the session is \(locked ? "locked" : "unlocked")") }
        hasLocked = locked
    }
}
