// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// Who a client of the bus is, from the bus's credentials and `/proc`, never from what it says.
struct Identity: Equatable, Sendable {
    /// `app:ID`, `unit:NAME`, `exe:PATH`; `unknown:` when the process cannot be inspected.
    let name: String
    let processID: UInt32
    /// Whether the client lives in its own root or user namespace, or cannot be inspected.
    let isSandboxed: Bool

    /// Nobody that could be looked at: counts as sandboxed.
    static func unknown(processID: UInt32 = 0) -> Identity {
        Identity(name: "unknown:", processID: processID, isSandboxed: true)
    }

    /// Whether the name says who it is to others: a path in a sandbox is the sandbox's own word.
    var isTellingName: Bool { !isSandboxed || name.hasPrefix("app:") }

    /// Inspects a process.
    ///
    /// Its start time is read before and after: a process that ended meanwhile, whose number another one may have got, is unknown.
    ///
    /// - Parameters:
    ///   - processID: as the bus knows it; 0 is unknown.
    ///   - descriptor: the process itself, where the bus gives it: while it lives nobody else has its number.
    static func inspect(processID: UInt32, descriptor: FileDescriptor? = nil) -> Identity {
        let process = "/proc/\(processID)"
        guard processID != 0, let started = startTime(process) else { return unknown(processID: processID) }
        let identity = look(process, processID)
        guard startTime(process) == started, descriptor.map(isAlive) ?? true else { return unknown(processID: processID) }
        return identity
    }

    /// Whether the process of a `pidfd_open(2)` descriptor, which becomes readable when it ends, has not ended.
    private static func isAlive(_ process: FileDescriptor) -> Bool {
        var entry = pollfd(fd: process.raw, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    private static func look(_ process: String, _ processID: UInt32) -> Identity {
        // AppArmor's label of a snap is snap.NAME.PROGRAM, possibly followed by its mode. The kernel says it, not the sandbox.
        if let label = Files.text(of: "\(process)/attr/current"), let snap = snapName(label) {
            return Identity(name: "app:\(snap)", processID: processID, isSandboxed: true)
        }
        guard let program = Files.target(of: "\(process)/exe"),
            let space = Files.target(of: "\(process)/ns/user"), let ownSpace = Files.target(of: "/proc/self/ns/user")
        else { return unknown(processID: processID) }
        // Who has a user namespace has file systems of its own making, which may never answer: its root is not asked then.
        if space != ownSpace { return sandboxed(processID, program) }
        guard let root = Files.identity(of: "\(process)/root"), let ownRoot = Files.identity(of: "/proc/self/root")
        else { return unknown(processID: processID) }
        if root != ownRoot { return sandboxed(processID, program) }
        // A proxy speaks for somebody in a sandbox, also where it lies outside itself.
        if program.hasSuffix("/xdg-dbus-proxy") { return Identity(name: "exe:\(program)", processID: processID, isSandboxed: true) }
        if let groups = Files.text(of: "\(process)/cgroup"), let unit = userUnit(groups) {
            return Identity(name: "unit:\(unit)", processID: processID, isSandboxed: false)
        }
        return Identity(name: "exe:\(program)", processID: processID, isSandboxed: false)
    }

    /// What lives in a sandbox: the application that Flatpak started there, else nobody in particular.
    private static func sandboxed(_ processID: UInt32, _ program: String) -> Identity {
        let name = FlatpakInstance.of(processID).map { "app:\($0.application)" } ?? "exe:\(program)"
        return Identity(name: name, processID: processID, isSandboxed: true)
    }

    /// Clock ticks from the boot to the process's start: the 22nd field of `/proc/PID/stat`, counted behind the name in brackets.
    private static func startTime(_ process: String) -> Substring? {
        guard let text = Files.text(of: "\(process)/stat"), let bracket = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: bracket)...].split(separator: " ")
        return fields.count > 19 ? fields[19] : nil
    }

    static func snapName(_ label: String) -> String? {
        let parts = label.split(separator: "\n").first?.split(separator: " ").first?.split(separator: ".") ?? []
        return parts.count >= 3 && parts[0] == "snap" ? String(parts[1]) : nil
    }

    /// The service of the user's service manager: `…/user@UID.service/…/NAME.service`. A scope's name holds a process number and names nobody.
    static func userUnit(_ groups: String) -> String? {
        for line in groups.split(separator: "\n") {
            let parts = line.split(separator: "/")
            guard let manager = parts.firstIndex(where: { $0.hasPrefix("user@") && $0.hasSuffix(".service") }) else { continue }
            if let unit = parts[(manager + 1)...].last, unit.hasSuffix(".service") { return String(unit) }
        }
        return nil
    }
}
