// SPDX-License-Identifier: MIT
import DBus

/// The menu of the status notifier: for each share what it is, and what can be done about it.
///
/// Spec: com.canonical.dbusmenu, see ``Interfaces/menu``.
final class StatusMenu {
    static let path: ObjectPath = "/StatusNotifierItem/Menu"
    private static let interface: InterfaceName = "com.canonical.dbusmenu"

    private struct Entry {
        let id: Int32
        var properties: [String: Value]
        var act: (() -> Void)?
    }

    private let server: ObjectServer
    private let act: (_ key: String, Indicator.Act) -> Void
    private let trusts: Indicator.Trust
    /// The numbers of each share's items begin here: no share ever gets those of another one.
    private var bases: [String: Int32] = [:]
    private var lastBase: Int32 = 1
    private var entries: [Entry] = []
    private var revision: UInt32 = 1

    init(_ server: ObjectServer, trusts: @escaping Indicator.Trust, _ act: @escaping (_ key: String, Indicator.Act) -> Void) {
        (self.server, self.trusts, self.act) = (server, trusts, act)
    }

    func export() {
        server.export(
            StatusMenu.path,
            [
                ExportedInterface(
                    Interfaces.menu,
                    methods: [
                        "GetLayout": { [weak self] in self?.getLayout($0) },
                        "GetGroupProperties": { [weak self] in self?.getGroupProperties($0) },
                        "GetProperty": { [weak self] in self?.getProperty($0) },
                        "Event": { [weak self] in self?.handleEvent($0) },
                        "EventGroup": { [weak self] in self?.handleEventGroup($0) },
                        "AboutToShow": { $0.reply([.bool(false)]) },
                        "AboutToShowGroup": { $0.reply([.array(of: "i", []), .array(of: "i", [])]) },
                    ],
                    properties: [
                        "Version": Property(get: { .uint32(3) }), "TextDirection": Property(get: { .string("ltr") }),
                        "Status": Property(get: { .string("normal") }), "IconThemePath": Property(get: { .array(of: "s", []) }),
                    ])
            ])
    }

    func unexport() { server.unexport(StatusMenu.path) }

    /// Shows these shares.
    func update(_ screens: [SharedScreen]) {
        entries = []
        for (index, screen) in screens.enumerated() {
            // A click on a menu that is being replaced must not mean another item.
            let base = bases[screen.key] ?? lastBase
            if bases[screen.key] == nil {
                bases[screen.key] = base
                lastBase &+= 8
            }
            if index > 0 { entries.append(Entry(id: base, properties: ["type": .string("separator")])) }
            append(base + 1, screen.headline)
            append(base + 2, screen.detail)
            append(base + (screen.isMuted ? 5 : 3), screen.isMuted ? "Show again" : "Mute") { [act] in
                act(screen.key, .mute(!screen.isMuted))
            }
            append(base + 4, "Stop sharing") { [act] in act(screen.key, .stop) }
        }
        revision &+= 1
        server.emit(StatusMenu.path, StatusMenu.interface, "LayoutUpdated", [.uint32(revision), .int32(0)])
    }

    private func append(_ id: Int32, _ label: String, _ act: (() -> Void)? = nil) {
        // A single underscore marks a key to press.
        let text = label.split(separator: "_", omittingEmptySubsequences: false).joined(separator: "__")
        entries.append(Entry(id: id, properties: ["label": .string(text), "enabled": .bool(act != nil)], act: act))
    }

    // MARK: - Methods

    private func getLayout(_ call: Call) {
        let parent = call.arguments[0].asInt32 ?? 0
        if parent == 0 {
            let children = entries.map { Value.variant(StatusMenu.node($0, [])) }
            let root = Entry(id: 0, properties: ["children-display": .string("submenu")])
            return call.reply([.uint32(revision), StatusMenu.node(root, call.arguments[1].asInt32 == 0 ? [] : children)])
        }
        guard let entry = entries.first(where: { $0.id == parent }) else { return noItem(parent, call) }
        call.reply([.uint32(revision), StatusMenu.node(entry, [])])
    }

    private func getGroupProperties(_ call: Call) {
        let wanted = Set((call.arguments[0].asArray ?? []).compactMap(\.asInt32))
        let found = entries.filter { wanted.isEmpty || wanted.contains($0.id) }
        call.reply([.array(of: "(ia{sv})", found.map { .structure([.int32($0.id), .options($0.properties)]) })])
    }

    private func getProperty(_ call: Call) {
        let (id, name) = (call.arguments[0].asInt32 ?? 0, call.arguments[1].asString ?? "")
        guard let value = entries.first(where: { $0.id == id })?.properties[name] else { return noItem(id, call) }
        call.reply([.variant(value)])
    }

    private func handleEvent(_ call: Call) {
        let id = call.arguments[0].asInt32 ?? 0
        guard let entry = entries.first(where: { $0.id == id }) else { return noItem(id, call) }
        call.reply()
        guard call.arguments[1].asString == "clicked", let act = entry.act else { return }
        perform([act], call)
    }

    /// Anybody on the bus can send a click: only those who may stop and mute by a call may do it here.
    private func perform(_ acts: [() -> Void], _ call: Call) {
        trusts(call.sender) { isTrusted in if isTrusted { for act in acts { act() } } }
    }

    private func handleEventGroup(_ call: Call) {
        var (acts, missing): ([() -> Void], [Int32]) = ([], [])
        for event in call.arguments[0].asArray ?? [] {
            guard let fields = event.asStructure, fields.count == 4, let id = fields[0].asInt32 else { continue }
            guard let entry = entries.first(where: { $0.id == id }) else {
                missing.append(id)
                continue
            }
            if fields[1].asString == "clicked", let act = entry.act { acts.append(act) }
        }
        call.reply([.array(of: "i", missing.map(Value.int32))])
        perform(acts, call)
    }

    private func noItem(_ id: Int32, _ call: Call) {
        call.fail(name: StandardError.invalidArguments, message: "The menu has no item \(id) any more.")
    }

    private static func node(_ entry: Entry, _ children: [Value]) -> Value {
        .structure([.int32(entry.id), .options(entry.properties), .array(of: "v", children)])
    }
}
