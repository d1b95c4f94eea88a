// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop

/// The mark in the panel while something is shared.
///
/// It has a bus name of its own, which hosts watch: when that goes, the mark goes.
/// Spec: StatusNotifierItem, see ``Interfaces/item``.
final class StatusItem {
    static let watcher = BusName(static: "org.kde.StatusNotifierWatcher")
    static let watcherPath: ObjectPath = "/StatusNotifierWatcher"
    static let watcherInterface: InterfaceName = "org.kde.StatusNotifierWatcher"

    private static let path: ObjectPath = "/StatusNotifierItem"
    private static let interface: InterfaceName = "org.kde.StatusNotifierItem"

    private let connection: Connection
    private let server: ObjectServer
    private let menu: StatusMenu
    private let name: BusName?
    private let log = Log("indicator")
    /// What has become of the mark.
    enum Outcome {
        case shown
        /// The panel has not answered yet, and people are to be told by other means meanwhile.
        case late
        case refused
    }

    private let onOutcome: (Outcome) -> Void
    /// Runs out when the panel is late to take the mark; once it has, when the mark is announced again.
    private var timer: Timer?
    private var screens: [SharedScreen]
    private var isClosed = false

    /// How long the panel may take to say that it shows the mark before that is late.
    private static let patience = Duration.seconds(5)
    /// The mark is announced so often, with so much time in between: hosts leave one alone that they have. GNOME's extension loses it about every other
    /// time, when the owner of its name becomes known while it is read ("Argument two may not be null").
    private static let announcements = 8
    private static let readingTime = Duration.seconds(3)

    /// Shows it to the hosts that there are.
    ///
    /// - Parameter onOutcome: called when the panel shows it or does not, and when that takes long.
    init(
        _ connection: Connection, _ server: ObjectServer, _ screens: [SharedScreen], trusts: @escaping Indicator.Trust,
        onOutcome: @escaping (Outcome) -> Void, _ act: @escaping (_ key: String, Indicator.Act) -> Void
    ) {
        (self.connection, self.server, self.screens, self.onOutcome) = (connection, server, screens, onOutcome)
        menu = StatusMenu(server, trusts: trusts, act)
        name = BusName("org.kde.StatusNotifierItem-\(getpid())-1")
        menu.export()
        export()
        menu.update(screens)
        register()
    }

    /// Shows other shares.
    func update(_ screens: [SharedScreen]) {
        guard screens != self.screens else { return }
        self.screens = screens
        menu.update(screens)
        // Nothing else changes.
        server.propertiesChanged(StatusItem.path, StatusItem.interface, ["ToolTip"])
        // Hosts listen to this, and not to the bus's own signal.
        server.emit(StatusItem.path, StatusItem.interface, "NewToolTip")
    }

    /// Takes it away.
    func close() {
        isClosed = true
        timer?.cancel()
        if let name { connection.releaseName(name) }
        server.unexport(StatusItem.path)
        menu.unexport()
    }

    private func register() {
        guard let name else { return }
        connection.requestName(name) { [weak self] result in
            guard let self, !isClosed else { return }
            if case .failure(let error) = result { return refused("no name for the mark in the panel: \(error)") }
            connection.call(StatusItem.announcement(of: name), timeout: .seconds(30)) { [weak self] result in
                if case .failure(let error) = result { self?.refused("the panel does not take the mark: \(error)") } else { self?.shown() }
            }
            timer = connection.loop.after(StatusItem.patience) { [weak self] in self?.onOutcome(.late) }
        }
    }

    private static func announcement(of name: BusName) -> MethodCall {
        MethodCall(
            destination: watcher, path: watcherPath, interface: watcherInterface, member: "RegisterStatusNotifierItem",
            arguments: [.string(name.text)])
    }

    private func announceAgain(_ count: Int) {
        guard count > 0, let name else { return }
        timer = connection.loop.after(StatusItem.readingTime) { [weak self] in
            guard let self else { return }
            // The panel has taken it once; what it says now is of no use.
            connection.call(StatusItem.announcement(of: name), timeout: .seconds(30)) { _ in }
            announceAgain(count - 1)
        }
    }

    private func shown() {
        if isClosed { return }
        timer?.cancel()
        announceAgain(StatusItem.announcements - 1)
        onOutcome(.shown)
    }

    private func refused(_ why: String) {
        if isClosed { return }
        timer?.cancel()
        log.warning("\(why); a notification stands in for it")
        onOutcome(.refused)
    }

    private func export() {
        let text = { (text: String) in Property(get: { .string(text) }) }
        let done = { (call: Call) in call.reply() }
        server.export(
            StatusItem.path,
            [
                ExportedInterface(
                    Interfaces.item,
                    // Nothing but the menu does anything: one click on a mark must not end a share.
                    methods: ["ContextMenu": done, "Activate": done, "SecondaryActivate": done, "Scroll": done],
                    properties: [
                        "Category": text("SystemServices"), "Id": text("vitrine"), "Title": text("Vitrine"), "Status": text("Active"),
                        "WindowId": Property(get: { .int32(0) }), "IconName": text(StatusItem.icon),
                        "IconPixmap": Property(get: { .array(of: "(iiay)", []) }), "OverlayIconName": text(""),
                        "AttentionIconName": text(""),
                        "ToolTip": Property(get: { [weak self] in self?.toolTip ?? StatusItem.toolTip("", "") }),
                        "ItemIsMenu": Property(get: { .bool(true) }), "Menu": Property(get: { .objectPath(StatusMenu.path) }),
                    ])
            ])
    }

    private static let icon = "org.vitrine.ScreenShare1-symbolic"

    private var toolTip: Value {
        StatusItem.toolTip(
            screens.allSatisfy(\.isMuted) ? "Screen sharing is muted" : "Your screen is shared",
            screens.map { "\($0.headline)\n\($0.detail)" }.joined(separator: "\n\n"))
    }

    private static func toolTip(_ title: String, _ text: String) -> Value {
        .structure([.string(icon), .array(of: "(iiay)", []), .string(title), .string(text)])
    }
}
