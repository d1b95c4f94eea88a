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

    /// Finds out whether a client of the bus may act for the person.
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
    private var screens: [SharedScreen] = []
    private var shells: Set<BusName> = []
    private var hasHost = false
    private var item: StatusItem?
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
            connection.watchName(shell) { [weak self] owner in
                if owner == nil { self?.shells.remove(shell) } else { self?.shells.insert(shell) }
                self?.update()
            }
        }
        connection.watchName(StatusItem.watcher) { [weak self] owner in
            self?.setHost(false)
            if owner != nil { self?.askForHost() }
        }
        let rule = MatchRule(
            sender: StatusItem.watcher, path: StatusItem.watcherPath, interface: StatusItem.watcherInterface,
            member: "StatusNotifierHostRegistered")
        connection.subscribe(rule) { [weak self] _ in self?.setHost(true) }
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
        self.hasHost = hasHost
        update()
    }

    private func askForHost() {
        let call = MethodCall(
            destination: StatusItem.watcher, path: StatusItem.watcherPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
            arguments: [.string(StatusItem.watcherInterface.text), .string("IsStatusNotifierHostRegistered")])
        connection.call(call, timeout: .seconds(30)) { [weak self] result in
            guard case .success(let values) = result, values.first?.asVariant?.asBool ?? false else { return }
            self?.setHost(true)
        }
    }

    private func update() {
        let isWanted = !screens.isEmpty && (mode == .always || mode == .auto && shells.isEmpty)
        updateItem(isWanted && hasHost)
        updateNotification(isWanted && !hasHost && !screens.allSatisfy { dismissed.contains($0.key) })
    }

    private func updateItem(_ isShown: Bool) {
        guard isShown else {
            item?.close()
            item = nil
            return
        }
        if let item { item.update(screens) } else { item = StatusItem(connection, server, screens, trusts: trusts, act) }
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
        let notification = Notification(connection, content)
        notification.onAction = { [weak self] key in
            guard let self, key == "stop" else { return }
            for screen in screens { act(screen.key, .stop) }
        }
        notification.onClosed = { [weak self] in
            guard let self else { return }
            dismissed.formUnion(screens.map(\.key))
            self.notification = nil
        }
        self.notification = notification
    }
}
