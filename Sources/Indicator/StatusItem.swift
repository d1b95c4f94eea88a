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
    private let onRefused: () -> Void
    private var screens: [SharedScreen]
    private var isClosed = false

    /// How long the panel may take to say that it shows the mark.
    private static let patience = Duration.seconds(5)

    /// Shows it to the hosts that there are.
    ///
    /// - Parameter onRefused: called when nobody shows it.
    init(
        _ connection: Connection, _ server: ObjectServer, _ screens: [SharedScreen], trusts: @escaping Indicator.Trust,
        onRefused: @escaping () -> Void, _ act: @escaping (_ key: String, Indicator.Act) -> Void
    ) {
        (self.connection, self.server, self.screens, self.onRefused) = (connection, server, screens, onRefused)
        menu = StatusMenu(server, trusts: trusts, act)
        name = BusName("org.kde.StatusNotifierItem-\(getpid())-1")
        menu.export()
        export()
        menu.update(screens)
        register()
    }

    /// Shows other shares.
    func update(_ screens: [SharedScreen]) {
        self.screens = screens
        menu.update(screens)
        server.propertiesChanged(StatusItem.path, StatusItem.interface, ["ToolTip", "IconName"])
        // Hosts listen to these, and not to the bus's own signal.
        for signal in ["NewToolTip", "NewIcon"] as [MemberName] { server.emit(StatusItem.path, StatusItem.interface, signal) }
    }

    /// Takes it away.
    func close() {
        isClosed = true
        if let name { connection.releaseName(name) }
        server.unexport(StatusItem.path)
        menu.unexport()
    }

    private func register() {
        guard let name else { return }
        connection.requestName(name) { [weak self] result in
            guard let self, !isClosed else { return }
            if case .failure(let error) = result { return refused("no name for the mark in the panel: \(error)") }
            let call = MethodCall(
                destination: StatusItem.watcher, path: StatusItem.watcherPath, interface: StatusItem.watcherInterface,
                member: "RegisterStatusNotifierItem", arguments: [.string(name.text)])
            connection.call(call, timeout: StatusItem.patience) { [weak self] result in
                if case .failure(let error) = result { self?.refused("the panel does not take the mark: \(error)") }
            }
        }
    }

    private func refused(_ why: String) {
        if isClosed { return }
        log.warning("\(why); a notification stands in for it")
        onRefused()
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
                        "WindowId": Property(get: { .int32(0) }), "IconName": Property(get: { [weak self] in .string(self?.icon ?? "") }),
                        "IconPixmap": Property(get: { .array(of: "(iiay)", []) }), "OverlayIconName": text(""),
                        "AttentionIconName": text(""),
                        "ToolTip": Property(get: { [weak self] in self?.toolTip ?? StatusItem.toolTip("", "") }),
                        "ItemIsMenu": Property(get: { .bool(true) }), "Menu": Property(get: { .objectPath(StatusMenu.path) }),
                    ])
            ])
    }

    private var icon: String { "org.vitrine.ScreenShare1-symbolic" }

    private var toolTip: Value {
        StatusItem.toolTip(
            screens.allSatisfy(\.isMuted) ? "Screen sharing is muted" : "Your screen is shared",
            screens.map { "\($0.headline)\n\($0.detail)" }.joined(separator: "\n\n"))
    }

    private static func toolTip(_ title: String, _ text: String) -> Value {
        .structure([.string("org.vitrine.ScreenShare1-symbolic"), .array(of: "(iiay)", []), .string(title), .string(text)])
    }
}
