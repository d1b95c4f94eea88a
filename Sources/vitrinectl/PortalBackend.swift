// SPDX-License-Identifier: MIT
import Loop

/// A backend of the portal that is installed and can share a screen, as its `.portal` file says.
///
/// Spec: portals.conf(5) and [Backends](https://flatpak.github.io/xdg-desktop-portal/docs/writing-a-new-backend.html).
struct PortalBackend: Equatable {
    let name: String
    /// The desktops that it is for, in lower case.
    let desktops: [String]

    /// Reads a file; nil when the backend cannot share a screen.
    init?(name: String, text: String) {
        var values: [String: [String]] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1)
            if parts.count == 2 { values[String(parts[0])] = parts[1].split(separator: ";").map(String.init) }
        }
        guard values["Interfaces", default: []].contains("org.freedesktop.impl.portal.ScreenCast") else { return nil }
        (self.name, desktops) = (name, values["UseIn", default: []].map { $0.lowercased() })
    }

    /// Whether it is for a desktop, which may have several names with colons between them.
    func suits(_ desktop: String) -> Bool { desktop.lowercased().split(separator: ":").contains { desktops.contains(String($0)) } }

    /// `gnome`, or `wlr (for sway, river)`.
    var words: String { desktops.isEmpty || desktops == [name] ? name : "\(name) (for \(desktops.joined(separator: ", ")))" }

    /// Those that are installed, where a portal with this environment looks for them; each once.
    static func installed(_ variable: @escaping (String) -> String?) -> [PortalBackend] {
        var backends: [String: PortalBackend] = [:]
        for folder in folders(variable) {
            for file in (try? Files.names(in: folder)) ?? [] where file.hasSuffix(".portal") {
                let name = String(file.dropLast(".portal".count))
                guard backends[name] == nil, let bytes = try? Files.contents(of: "\(folder)/\(file)") else { continue }
                backends[name] = PortalBackend(name: name, text: String(decoding: bytes, as: UTF8.self))
            }
        }
        return backends.values.sorted { $0.name < $1.name }
    }

    private static func folders(_ variable: @escaping (String) -> String?) -> [String] {
        let filled = { (name: String) in variable(name).flatMap { $0.isEmpty ? nil : $0 } }
        if let folder = filled("XDG_DESKTOP_PORTAL_DIR") { return [folder] }
        let own = filled("XDG_DATA_HOME") ?? filled("HOME").map { $0 + "/.local/share" }
        let shared = (filled("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share").split(separator: ":").map(String.init)
        return ([own].compactMap(\.self) + shared).map { $0 + "/xdg-desktop-portal/portals" }
    }
}
