// SPDX-License-Identifier: MIT
public import DBus
import Loop

/// What people see while something is shared: a mark in the panel with a menu, where a panel shows such; else a notification with a button to stop.
///
/// Desktops that show every share themselves get neither, unless the person asked for it. What only listens, or is being chosen, shows nothing.
///
/// Thread: the connection's loop.
public final class Indicator {
    /// When it is shown.
    public enum Mode: String, CaseIterable, Sendable {
        /// Where the desktop has no indicator of its own.
        case auto
        case always
        case never
    }

    /// Finds out whether a client of the bus may speak for the person, and for the desktop.
    public typealias Trust = (_ client: BusName, _ answer: @escaping (Bool) -> Void) -> Void

    /// What the person does to a share.
    public enum Act: Equatable, Sendable {
        case mute(Bool)
        case stop
    }

    /// Shells that mark every screen that is shared.
    private static let shells = [BusName(static: "org.gnome.Shell"), BusName(static: "org.kde.plasmashell")]

    /// When it is shown.
    public var mode = Mode.auto {
        didSet { if mode != oldValue { update() } }
    }

    private let connection: Connection
    private let server: ObjectServer
    private let act: (_ key: String, Act) -> Void
    private let trusts: Trust
    private let log = Log("indicator")
    private var screens: [SharedScreen] = []
    private var shells: Set<BusName> = []
    private var hasHost = false
    /// Whether the panel that there is did not take the mark, ...
    private var isRefused = false
    /// ... or has not said yet that it does.
    private var isLate = false
    private var item: StatusItem?
    /// Who owns the names of the desktop at present, whether that one is believed or not.
    private var owners: [BusName: BusName] = [:]
    private var notification: Notification?
    /// Those whose notification the person has closed.
    private var dismissed: Set<String> = []

    /// - Parameters:
    ///   - trusts: says whose clicks are the person's.
    ///   - act: does what the person wants to the share of that key.
    public init(
        _ connection: Connection, _ server: ObjectServer, trusts: @escaping Trust, act: @escaping (_ key: String, Act) -> Void
    ) {
        (self.connection, self.server, self.trusts, self.act) = (connection, server, trusts, act)
        for shell in Indicator.shells {
            follow(shell) { [weak self] isThere in
                if isThere { self?.shells.insert(shell) } else { self?.shells.remove(shell) }
                self?.update()
            }
        }
        follow(StatusItem.watcher) { [weak self] isThere in
            self?.setHost(false)
            if isThere { self?.askForHost() }
        }
        for signal in ["StatusNotifierHostRegistered", "StatusNotifierHostUnregistered"] as [MemberName] {
            let rule = MatchRule(
                sender: StatusItem.watcher, path: StatusItem.watcherPath, interface: StatusItem.watcherInterface, member: signal)
            // It may not be the only one that there was.
            connection.subscribe(rule) { [weak self] _ in self?.askForHost() }
        }
    }

    /// Follows a name of the desktop's. Anybody who finds one free may take it: a program in a sandbox is not believed.
    private func follow(_ name: BusName, _ changed: @escaping (_ isThere: Bool) -> Void) {
        connection.watchName(name) { [weak self] owner in
            self?.owners[name] = owner
            guard let self, let owner else { return changed(false) }
            trusts(owner) { [weak self] isTrusted in
                guard let self, owners[name] == owner else { return }
                if !isTrusted { log.warning("\(name) belongs to a program in a sandbox, which is not believed") }
                changed(isTrusted)
            }
        }
    }

    /// Shows these shares, and no others.
    public func show(_ screens: [SharedScreen]) {
        guard screens != self.screens else { return }
        self.screens = screens
        dismissed.formIntersection(screens.map(\.key))
        update()
    }

    private func setHost(_ hasHost: Bool) {
        guard hasHost != self.hasHost else { return }
        // Another panel may take what the last one did not.
        (self.hasHost, isRefused) = (hasHost, false)
        update()
    }

    private func askForHost() {
        guard let watcher = owners[StatusItem.watcher] else { return }
        let call = MethodCall(
            destination: watcher, path: StatusItem.watcherPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
            arguments: [.string(StatusItem.watcherInterface.text), .string("IsStatusNotifierHostRegistered")])
        trusts(watcher) { [weak self] isTrusted in
            guard isTrusted else { return }
            self?.connection.call(call, timeout: .seconds(30)) { [weak self] result in
                guard let self, self.owners[StatusItem.watcher] == watcher, case .success(let values) = result else { return }
                self.setHost(values.first?.asVariant?.asBool ?? false)
            }
        }
    }

    private func update() {
        let isWanted = !screens.isEmpty && (mode == .always || mode == .auto && shells.isEmpty)
        if !isWanted { isRefused = false }
        let hasMark = hasHost && !isRefused
        updateItem(isWanted && hasMark)
        updateNotification(isWanted && (!hasMark || isLate) && !screens.allSatisfy { dismissed.contains($0.key) })
    }

    private func updateItem(_ isShown: Bool) {
        guard isShown else {
            item?.close()
            (item, isLate) = (nil, false)
            return
        }
        if let item { return item.update(screens) }
        let note = { [weak self] (outcome: StatusItem.Outcome) in
            guard let self else { return }
            (isRefused, isLate) = (outcome == .refused, outcome == .late)
            update()
        }
        item = StatusItem(connection, server, screens, trusts: trusts, onOutcome: note, act)
    }

    private func updateNotification(_ isShown: Bool) {
        guard isShown else {
            notification?.close()
            notification = nil
            return
        }
        // How many read changes too often for something that pops up.
        let content = Notification.Content(
            summary: screens.allSatisfy(\.isMuted) ? "Screen sharing is muted" : "Your screen is shared",
            body: screens.map(\.headline).joined(separator: "\n"), actions: [("stop", "Stop sharing")])
        if let notification { return notification.update(content) }
        let notification = Notification(connection, content, trusts: trusts)
        notification.onAction = { [weak self] key in
            guard let self, key == "stop" else { return }
            for screen in screens { act(screen.key, .stop) }
        }
        notification.onDismissed = { [weak self] in
            guard let self else { return }
            dismissed.formUnion(screens.map(\.key))
            self.notification?.close()
            self.notification = nil
        }
        self.notification = notification
    }
}
