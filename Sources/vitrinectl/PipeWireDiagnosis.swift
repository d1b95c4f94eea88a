// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// Whether PipeWire and its session manager are there.
enum PipeWireDiagnosis {
    static func findings() -> [Finding] { [socketFinding(), managerFinding()] }

    /// Where PipeWire's clients look for it; nil when the environment does not say.
    ///
    /// <https://docs.pipewire.org/page_man_pipewire_1.html>
    static func socketPath(_ variable: @escaping (String) -> String?) -> String? {
        let filled = { (name: String) in variable(name).flatMap { $0.isEmpty ? nil : $0 } }
        let name = filled("PIPEWIRE_REMOTE") ?? "pipewire-0"
        if name.hasPrefix("/") { return name }
        guard let directory = filled("PIPEWIRE_RUNTIME_DIR") ?? filled("XDG_RUNTIME_DIR") ?? filled("USERPROFILE") else { return nil }
        return "\(directory)/\(name)"
    }

    private static func socketFinding() -> Finding {
        guard let path = socketPath(Environment.value) else {
            return Finding("PipeWire", .missing, "XDG_RUNTIME_DIR is not set", "run it inside the desktop session")
        }
        do throws(Errno) {
            try Files.probeSocket(path)
            return Finding("PipeWire", .ok, printable(path))
        } catch {
            return Finding(
                "PipeWire", .missing, "nobody answers at \(printable(path)): \(error)",
                "install pipewire and start it: systemctl --user enable --now pipewire.socket pipewire.service")
        }
    }

    private static func managerFinding() -> Finding {
        let remedy = "install wireplumber and start it: systemctl --user enable --now wireplumber.service"
        guard let processes = try? Files.names(in: "/proc") else {
            return Finding("PipeWire session manager", .note, "running processes cannot be listed")
        }
        // The kernel cuts names to 15 bytes.
        let managers = ["wireplumber", "pipewire-media-"]
        for process in processes.compactMap(UInt32.init) {
            guard let bytes = try? Files.contents(of: "/proc/\(process)/comm") else { continue }
            let name = String(decoding: bytes, as: UTF8.self).prefix { $0 != "\n" }
            if managers.contains(String(name)), belongsHere(process) {
                return Finding("PipeWire session manager", .ok, "\(name), process \(process)")
            }
        }
        return Finding("PipeWire session manager", .missing, "none runs, so that streams are not connected", remedy)
    }

    /// Whether a process looks for the same PipeWire as this one. Another user's cannot be read, and one that has ended says nothing.
    private static func belongsHere(_ process: UInt32) -> Bool {
        guard let variables = try? PortalDiagnosis.variables(of: process) else { return false }
        return socketPath { variables[$0] }.map { $0 == socketPath(Environment.value) } ?? false
    }
}
