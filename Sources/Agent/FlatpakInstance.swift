// SPDX-License-Identifier: MIT
import Loop

/// A Flatpak application that runs, as Flatpak itself keeps it in the user's runtime folder, where its sandbox does not reach.
///
/// Anybody may make a sandbox with any `/.flatpak-info` in its root: what that says is worth nothing by itself. What is worth something is
/// the folder of the instance, `.flatpak/ID`: `info` is the sandbox's `/.flatpak-info`, `bwrapinfo.json` says with which process it began,
/// and `.ref` is locked for as long as it runs. The lock may come just after the program: Flatpak itself takes an instance for running that is not
/// three seconds old.
///
/// Source: [flatpak-instance.c](https://github.com/flatpak/flatpak/blob/main/common/flatpak-instance.c),
/// [flatpak-run-dbus.c](https://github.com/flatpak/flatpak/blob/main/common/flatpak-run-dbus.c).
struct FlatpakInstance {
    /// The application's id, `org.example.App`.
    let application: String

    private let folder: String

    /// What an instance file says.
    struct Info: Equatable {
        var application: String
        /// The instance's number; nil in files that Flatpak has not made.
        var instance: String?
    }

    /// The instance that a sandboxed process belongs to, or is the bus proxy of; nil when it is not known to belong to any.
    ///
    /// - Parameters:
    ///   - process: its number.
    ///   - runtime: the user's runtime folder.
    static func of(_ process: UInt32, runtime: String? = Environment.value(of: "XDG_RUNTIME_DIR")) -> FlatpakInstance? {
        guard let runtime, runtime.hasPrefix("/"), let own = Namespace(.pid, of: "self"), let space = Namespace(.pid, of: "\(process)")
        else { return nil }
        let folder = runtime + "/.flatpak"
        return space == own ? proxied(process, folder) : around(space, own, folder)
    }

    /// The instance that a process runs in: the innermost whose process numbers it shares. No file of the sandbox is read.
    private static func around(_ space: Namespace, _ own: Namespace, _ folder: String) -> FlatpakInstance? {
        let instances = ((try? Files.names(in: folder)) ?? []).sorted().compactMap { FlatpakInstance($0, in: folder) }
        let spaces = instances.map(\.space)
        for outer in space.withParents where outer != own {
            if let index = spaces.firstIndex(where: { $0 == outer }) { return instances[index] }
        }
        return nil
    }

    /// The instance that a process outside of any is the proxy of: Flatpak gives it a root of its own with the instance's file in it.
    ///
    /// It is started from outside of a sandbox: it has the agent's own process numbers, and no user namespace but the agent's or one that was
    /// made from that. A program in a sandbox has neither again.
    private static func proxied(_ process: UInt32, _ folder: String) -> FlatpakInstance? {
        guard let own = Namespace(.user, of: "self"), let users = Namespace(.user, of: "\(process)"),
            users == own || users.parent == own,
            let info = Files.ownText(of: "/proc/\(process)/root/.flatpak-info").flatMap(parse),
            let id = info.instance, let instance = FlatpakInstance(id, in: folder), instance.application == info.application
        else { return nil }
        return instance
    }

    /// An instance that runs; nil when there is none of this number.
    private init?(_ id: String, in folder: String) {
        self.folder = "\(folder)/\(id)"
        // Folders of applications lie beside those of instances, and their programs may write there.
        guard FlatpakInstance.isNumber(id), let info = Files.ownText(of: self.folder + "/info").flatMap(FlatpakInstance.parse),
            info.instance == id, Files.isLocked(self.folder + "/.ref") || Files.isYoung(self.folder + "/.ref", seconds: 3)
        else { return nil }
        application = info.application
    }

    /// The process numbers of the process that the sandbox began with.
    private var space: Namespace? {
        Files.ownText(of: folder + "/bwrapinfo.json").flatMap(FlatpakInstance.child).flatMap { Namespace(.pid, of: $0) }
    }

    /// `"child-pid": NUMBER` in a JSON object.
    static func child(_ json: String) -> String? {
        let parts = json.split(separator: "\"", omittingEmptySubsequences: false)
        guard let key = parts.firstIndex(of: "child-pid"), key + 1 < parts.count else { return nil }
        let number = parts[key + 1].drop { " \t\n:".contains($0) }.prefix { $0.isASCII && $0.isNumber }
        return number.isEmpty ? nil : String(number)
    }

    /// `name=` in the section `[Application]`, `instance-id=` in `[Instance]`.
    static func parse(_ info: String) -> Info? {
        var section: Substring = ""
        var (name, instance): (String?, String?)
        for line in info.split(separator: "\n") {
            if line.hasPrefix("[") { section = line }
            if section == "[Application]", name == nil, line.hasPrefix("name=") { name = String(line.dropFirst(5)) }
            if section == "[Instance]", instance == nil, line.hasPrefix("instance-id=") { instance = String(line.dropFirst(12)) }
        }
        // Anything else is no application's name, and would be shown to people.
        guard let name, !name.isEmpty, name.utf8.count <= 255, name.utf8.allSatisfy(isPartOfName) else { return nil }
        return Info(application: name, instance: instance)
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static func isNumber(_ id: String) -> Bool {
        !id.isEmpty && id.utf8.count <= 20 && id.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    }
}
