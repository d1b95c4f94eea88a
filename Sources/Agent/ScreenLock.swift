// SPDX-License-Identifier: MIT
import DBus
import Loop

/// Whether nobody sees the screen: the session is locked, or the machine goes to sleep. Told by logind, on the machine's bus.
///
/// Where there is no logind nothing is known, and nothing is hidden.
/// Source: [org.freedesktop.login1](https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html).
final class ScreenLock {
    private(set) var isLocked = false {
        didSet { if isLocked != oldValue { onChange() } }
    }

    private static let service = BusName(static: "org.freedesktop.login1")
    private static let manager: InterfaceName = "org.freedesktop.login1.Manager"
    private static let session: InterfaceName = "org.freedesktop.login1.Session"
    private static let path: ObjectPath = "/org/freedesktop/login1"

    private let log = Log("lock")
    private let onChange: () -> Void
    private var connection: Connection?
    private var hint: Subscription?
    private var hasLocked = false { didSet { update() } }
    private var isFallingAsleep = false { didSet { update() } }

    /// Connects to the machine's bus, which blocks until it has answered: for the program's start.
    init(on loop: EventLoop, onChange: @escaping () -> Void) {
        self.onChange = onChange
        do throws(DBusError) {
            let connection = try Connection.open(.system, on: loop)
            self.connection = connection
            // What is not heard of any more is not known.
            connection.onDisconnect = { [weak self] in self?.forget() }
            watch(connection)
        } catch {
            log.debug("nothing is known of locks: \(error)")
        }
    }

    private func watch(_ connection: Connection) {
        connection.subscribe(
            MatchRule(sender: ScreenLock.service, path: ScreenLock.path, interface: ScreenLock.manager, member: "PrepareForSleep")
        ) { [weak self] signal in
            guard let self, let begins = signal.arguments.first?.asBool else { return }
            log.info(begins ? "the machine goes to sleep" : "the machine is awake")
            isFallingAsleep = begins
        }
        connection.watchName(ScreenLock.service) { [weak self] owner in
            guard let self else { return }
            forget()
            if owner != nil { findSession(connection) }
        }
    }

    private func forget() {
        hint?.cancel()
        hint = nil
        (hasLocked, isFallingAsleep) = (false, false)
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
        hint?.cancel()
        let rule = MatchRule(
            sender: ScreenLock.service, path: path, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged",
            argument0: ScreenLock.session.text)
        hint = connection.subscribe(rule) { [weak self] signal in
            guard signal.arguments.count > 1, let changed = signal.arguments[1].asOptions else { return }
            if let locked = changed["LockedHint"]?.asBool { self?.note(locked) }
        }
        let call = MethodCall(
            destination: ScreenLock.service, path: path, interface: "org.freedesktop.DBus.Properties", member: "Get",
            arguments: [.string(ScreenLock.session.text), .string("LockedHint")])
        connection.call(call, timeout: .seconds(30)) { [weak self] result in
            guard case .success(let values) = result, let locked = values.first?.asVariant?.asBool else { return }
            self?.note(locked)
        }
    }

    private func update() { isLocked = hasLocked || isFallingAsleep }

    private func note(_ locked: Bool) {
        if locked != hasLocked { log.info("the session is \(locked ? "locked" : "unlocked")") }
        hasLocked = locked
    }
}
