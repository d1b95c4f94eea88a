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
        let player = Player(command.name, try spawn(command.words, input: stream))
        ended = { player.collect() }
        return player
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
