// SPDX-License-Identifier: MIT
import Glibc
import Loop
import Synchronization

/// A PipeWire daemon and session manager of a test's own, in a directory of their own.
///
/// All processes end with the object, and also when the test program dies: each hangs on a pipe.
final class PrivatePipeWire: Sendable {
    struct Failure: Error { let text: String }

    /// A program that runs for as long as the pipe is open.
    private struct Child: Sendable {
        let process: pid_t
        /// The writing end, closed by ``end()``.
        let lifeline: Int32

        func end() {
            close(lifeline)
            waitpid(process, nil, 0)
        }
    }

    private let directory: String
    private let daemon: Mutex<Child?>
    private let others: Mutex<[Child]>

    private var socketPath: String { directory + "/pipewire-0" }

    /// Starts everything and waits until the daemon listens.
    ///
    /// - Parameter hasManager: without one nothing links streams to nodes.
    init(hasManager: Bool = true) throws {
        var template = Array("/tmp/vtpw-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure(text: "no temporary directory") }
        directory = String(cString: made)
        others = Mutex([])
        daemon = Mutex(try Self.spawn(["pipewire"], directory))
        try wait("the daemon's socket") { access(socketPath, R_OK) == 0 }
        guard hasManager else { return }
        // WirePlumber does not start without a bus.
        let bus = try Self.spawn(
            ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=unix:path=\(directory)/bus"], directory)
        try wait("the bus's socket") { access(directory + "/bus", R_OK) == 0 }
        let manager = try Self.spawn(["wireplumber"], directory)
        others.withLock { $0 = [bus, manager] }
    }

    deinit {
        killDaemon()
        for child in others.withLock({ $0 }) { child.end() }
    }

    /// Kills the daemon, as a crash would; its socket goes with it.
    func killDaemon() {
        daemon.withLock { child in
            child?.end()
            child = nil
        }
    }

    /// A new connection, like the one that the portal hands out.
    func connect() throws -> FileDescriptor {
        let descriptor = FileDescriptor(
            owning: try Errno.check { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) })
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketPath.utf8.prefix($0.count - 1)) }
        try Errno.check {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor.raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        return descriptor
    }

    private func wait(_ what: String, _ condition: () -> Bool) throws {
        let deadline = Instant.now + .seconds(20)
        while !condition() {
            guard Instant.now < deadline else { throw Failure(text: "waited in vain for \(what)") }
            usleep(10_000)
        }
    }

    /// Starts a program under a shell that ends it, or ends with it.
    private static func spawn(_ words: [String], _ directory: String) throws -> Child {
        let (reading, writing) = try FileDescriptor.pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, reading.raw, 0)
        if getenv("VITRINE_TEST_VERBOSE") == nil {
            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        }
        // Who ends the test program may end its whole process group: the shell outlives that, and tidies up.
        let script = "trap '' TERM INT HUP; \"$@\" & child=$!; cat > /dev/null; kill -9 $child; wait; rm -rf \"$HOME\""
        let environment = [
            "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=\(directory)", "XDG_RUNTIME_DIR=\(directory)", "XDG_CONFIG_HOME=\(directory)",
            "XDG_STATE_HOME=\(directory)", "DBUS_SESSION_BUS_ADDRESS=unix:path=\(directory)/bus",
            "DBUS_SYSTEM_BUS_ADDRESS=unix:path=\(directory)/none",
        ]
        var arguments: [UnsafeMutablePointer<CChar>?] = (["sh", "-c", script, "sh"] + words).map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, "/bin/sh", &actions, nil, &arguments, &variables)
        guard code == 0 else { throw Failure(text: "\(words[0]): \(Errno(code))") }
        return Child(process: process, lifeline: try writing.duplicateRaw())
    }
}
