// SPDX-License-Identifier: MIT
import DBus
import Loop

/// Whether the desktop's portal is there, and can share a screen.
struct PortalDiagnosis {
    private let bus: BusView
    private static let name: BusName = "org.freedesktop.portal.Desktop"
    private static let backendPrefix = "org.freedesktop.impl.portal."

    init(_ bus: BusView) { self.bus = bus }

    func run(_ report: (Finding) -> Void) throws(Failure) {
        let ran = try bus.hasOwner(Self.name)
        if !ran, !(try bus.activatableNames().contains(Self.name.text)) {
            report(
                Finding(
                    "portal", .missing, "\(Self.name) neither runs nor can be started",
                    "install xdg-desktop-portal and \(Self.backendPackage(Environment.value(of: "XDG_CURRENT_DESKTOP")))"))
            return
        }
        // Asking starts it: the person wants to know whether that works.
        let answer = try bus.call(
            Self.name, "/org/freedesktop/portal/desktop", Agent.properties, "GetAll", [.string("org.freedesktop.portal.ScreenCast")],
            starting: true, timeout: .seconds(60))
        guard let process = try bus.process(of: Self.name) else {
            let detail = if case .failure(let error) = answer { ": \(printable(error.description))" } else { "" }
            report(
                Finding(
                    "portal", .missing, "it could not be started\(detail)", "see its log: journalctl --user -u xdg-desktop-portal"))
            return
        }
        report(Finding("portal", .ok, ran ? "it runs, process \(process)" : "it was started for this look, process \(process)"))
        let variables = try? Self.variables(of: process)
        let desktop = reportEnvironment(variables, report)
        let backends = try bus.names().filter { $0.hasPrefix(Self.backendPrefix) && !$0.hasSuffix(".PermissionStore") }
        let missing = { (check: String, text: String) in
            let installed = PortalBackend.installed { name in variables.map { $0[name] } ?? Environment.value(of: name) }
            return Self.absence(check, text, desktop, installed, running: backends)
        }
        switch answer {
        case .success(let values) where !(values.first?.asOptions ?? [:]).isEmpty:
            reportAbilities(values.first?.asOptions ?? [:], backends, missing, report)
        case .failure(.timedOut), .failure(.remote(StandardError.noReply, _)):
            report(
                Finding(
                    "screen sharing", .missing, "the portal does not answer",
                    "restart it: systemctl --user restart xdg-desktop-portal"))
        case .success, .failure:
            report(missing("screen sharing", "the portal offers no ScreenCast interface"))
        }
    }

    /// Why the portal cannot share screens, and what to do: there is no backend, none for this desktop, or none that lives.
    static func absence(
        _ check: String, _ text: String, _ desktop: String?, _ installed: [PortalBackend], running: [String]
    ) -> Finding {
        let restart = "systemctl --user restart xdg-desktop-portal"
        guard !installed.isEmpty else {
            let remedy = "install \(backendPackage(desktop)), then: \(restart)"
            return Finding(check, .missing, "\(text): no backend that shares screens is installed", remedy)
        }
        let names = installed.map(\.words).joined(separator: ", ")
        guard let backend = installed.first(where: { $0.suits(desktop ?? "") }) else {
            let desktop =
                desktop.map { "no installed backend is for XDG_CURRENT_DESKTOP=\(printable($0))" } ?? "XDG_CURRENT_DESKTOP is not set"
            let remedy =
                "set XDG_CURRENT_DESKTOP to the desktop's own name, or install its backend, or name one in ~/.config/xdg-desktop-portal/portals.conf; "
                + "then: dbus-update-activation-environment --systemd XDG_CURRENT_DESKTOP; \(restart)"
            return Finding(check, .missing, "\(text): \(desktop), there are: \(printable(names))", remedy)
        }
        let name = printable(backend.name)
        let found = running.isEmpty ? "none is on the bus" : "on the bus: \(running.joined(separator: ", "))"
        return Finding(
            check, .missing, "\(text): its backend \(name) was not there or could not share when the portal started (\(found))",
            "when the desktop is up: \(restart); if it stays so: journalctl --user -u xdg-desktop-portal-\(name)")
    }

    private func reportAbilities(
        _ properties: [String: Value], _ backends: [String], _ missing: (_ check: String, _ text: String) -> Finding,
        _ report: (Finding) -> Void
    ) {
        let number = { (name: String) in properties[name]?.asUInt32 ?? 0 }
        let backend =
            backends.isEmpty
            ? "" : "; backends on the bus: \(backends.map { String($0.dropFirst(Self.backendPrefix.count)) }.joined(separator: ", "))"
        report(Finding("screen sharing", .ok, "ScreenCast version \(number("version"))\(backend)"))
        let sources = Self.names(number("AvailableSourceTypes"), ["monitors", "windows", "virtual monitors"])
        if sources.isEmpty {
            report(missing("sources", "the backend offers nothing to share"))
        } else {
            report(Finding("sources", .ok, sources.joined(separator: ", ")))
        }
        let modes = Self.names(number("AvailableCursorModes"), ["hidden", "embedded", "metadata"])
        if modes.isEmpty {
            report(Finding("cursor", .note, "the portal does not say how it shows the cursor; the backend decides"))
        } else {
            report(Finding("cursor", .ok, modes.joined(separator: ", ")))
        }
    }

    /// Says what the portal knows of the desktop, and returns the desktop's name.
    ///
    /// A portal that was started before the compositor had told its display finds no backend, or one that cannot reach the screen.
    private func reportEnvironment(_ variables: [String: String]?, _ report: (Finding) -> Void) -> String? {
        let own = Environment.value(of: "XDG_CURRENT_DESKTOP").flatMap { $0.isEmpty ? nil : $0 }
        guard let variables else {
            report(Finding("portal's environment", .note, "it cannot be read"))
            return own
        }
        let desktop = variables["XDG_CURRENT_DESKTOP"].flatMap { $0.isEmpty ? nil : $0 }
        let display = ["WAYLAND_DISPLAY", "DISPLAY"].first { !(variables[$0] ?? "").isEmpty }
        let lacking = (desktop == nil ? ["XDG_CURRENT_DESKTOP"] : []) + (display == nil ? ["WAYLAND_DISPLAY"] : [])
        let found = [desktop.map { "XDG_CURRENT_DESKTOP=\(printable($0))" }, display.map { "\($0)=\(printable(variables[$0] ?? ""))" }]
        let text = found.compactMap(\.self).joined(separator: ", ")
        if lacking.isEmpty, let own, let desktop, own != desktop {
            report(
                Finding(
                    "portal's environment", .note, "\(text), but this session is XDG_CURRENT_DESKTOP=\(printable(own))",
                    "if the session is right: dbus-update-activation-environment --systemd XDG_CURRENT_DESKTOP; "
                        + "systemctl --user restart xdg-desktop-portal"))
        } else if lacking.isEmpty {
            report(Finding("portal's environment", .ok, text))
        } else {
            let names = lacking.joined(separator: " ")
            report(
                Finding(
                    "portal's environment", .note, (text.isEmpty ? "" : "\(text); ") + "it lacks \(lacking.joined(separator: " and "))",
                    "in the desktop session: dbus-update-activation-environment --systemd \(names); systemctl --user restart xdg-desktop-portal"
                ))
        }
        return desktop ?? own
    }

    /// The environment that a process was started with.
    static func variables(of process: UInt32) throws(Errno) -> [String: String] {
        readVariables(try Files.contents(of: "/proc/\(process)/environ"))
    }

    static func readVariables(_ bytes: [UInt8]) -> [String: String] {
        var variables: [String: String] = [:]
        for entry in bytes.split(separator: 0) {
            let parts = entry.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            variables[String(decoding: parts[0], as: UTF8.self)] = String(decoding: parts[1], as: UTF8.self)
        }
        return variables
    }

    /// The names of the bits that are set.
    static func names(_ bits: UInt32, _ names: [String]) -> [String] {
        names.enumerated().filter { bits & 1 << UInt32($0.offset) != 0 }.map(\.element)
    }

    /// The package that shares the screen of a desktop, from the value of `XDG_CURRENT_DESKTOP`.
    static func backendPackage(_ desktop: String?) -> String {
        let packages = [
            "gnome": "gnome", "ubuntu": "gnome", "kde": "kde", "sway": "wlr", "wlroots": "wlr", "river": "wlr", "wayfire": "wlr",
            "labwc": "wlr",
            "hyprland": "hyprland", "niri": "gnome", "cosmic": "cosmic", "lxqt": "lxqt", "pantheon": "pantheon",
        ]
        for name in (desktop ?? "").lowercased().split(separator: ":") {
            if let package = packages[String(name)] { return "xdg-desktop-portal-\(package)" }
        }
        return "the portal backend of your desktop (such as xdg-desktop-portal-gnome, -kde or -wlr)"
    }
}
