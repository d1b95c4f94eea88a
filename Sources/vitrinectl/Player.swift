// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// A program that runs and shows a stream.
final class Player {
    /// How it ended.
    enum End: Equatable {
        case exited(Int32)
        case killed(Int32)
    }

    /// For messages.
    let name: String
    /// Nil while it runs.
    private(set) var end: End?
    private let process: pid_t

    private init(_ name: String, _ process: pid_t) { (self.name, self.process) = (name, process) }

    /// Starts the command with the stream as its standard input; what it says goes to standard error.
    static func start(_ command: PlayerCommand, showing stream: FileDescriptor, on loop: EventLoop) throws(Errno) -> Player {
        // Before it starts, so that an end at once is not missed.
        var ended: (() -> Void)?
        try loop.onSignals([SIGCHLD]) { _ in ended?() }
        let player = Player(command.name, try spawn(command.words, stream))
        ended = { player.collect() }
        return player
    }

    private static func spawn(_ words: [String], _ stream: FileDescriptor) throws(Errno) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_adddup2(&actions, stream.raw, 0)
        posix_spawn_file_actions_adddup2(&actions, 2, 1)
        // It is not to inherit which signals this program takes out of a descriptor, or ignores.
        var none = sigset_t(), ignored = sigset_t()
        sigemptyset(&none)
        sigemptyset(&ignored)
        sigaddset(&ignored, SIGPIPE)
        sigaddset(&ignored, SIGXFSZ)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &ignored)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let error = posix_spawnp(&process, words[0], &actions, &attributes, arguments, environ)
        if error != 0 { throw Errno(error) }
        return process
    }

    private func collect() {
        var status: Int32 = 0
        guard end == nil, waitpid(process, &status, WNOHANG) == process else { return }
        let signal = status & 0x7F
        end = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal)
    }

    /// Asks it to end.
    func terminate() { signal(SIGTERM) }
    /// Ends it.
    func kill() { signal(SIGKILL) }

    private func signal(_ number: Int32) {
        // Its number stays taken until its end was collected.
        if end == nil { Glibc.kill(process, number) }
    }
}
