// SPDX-License-Identifier: MIT
public import Glibc
public import Loop

/// A child process, of a program in PATH, whose output can be read.
public struct Child {
    /// Whom to wait for, once: `finish` does.
    public let id: pid_t
    /// The reading end; the child alone holds the other one.
    public let output: FileDescriptor

    /// - Parameter descriptor: the child's number of what is read here.
    public init(_ arguments: [String], output descriptor: Int32 = 1) throws(Errno) {
        let (reading, writing) = try FileDescriptor.pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // What becomes another number is not closed by the exec.
        posix_spawn_file_actions_adddup2(&actions, writing.raw, descriptor)
        // The bus complains where it may not raise its limit of descriptors.
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // The test's thread may block signals; the child must not inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var strings = arguments.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var id: pid_t = 0
        let code = withExtendedLifetime(writing) { posix_spawnp(&id, arguments[0], &actions, &attributes, &strings, environ) }
        guard code == 0 else { throw Errno(code) }
        (self.id, output) = (id, reading)
    }

    /// Reads everything while the loop runs, then collects the exit status.
    public func finish(on loop: EventLoop) throws -> (status: Int32, text: String) {
        try output.setNonBlocking()
        var text: [UInt8] = []
        var isAtEnd = false
        let watch = loop.watch(output.raw, for: .read) { _ in
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let count = read(self.output.raw, &bytes, bytes.count)
            if count > 0 { text += bytes[..<count] } else { isAtEnd = true }
        }
        defer { watch.cancel() }
        _ = loop.run(until: { isAtEnd }, timeout: .seconds(60))
        var status: Int32 = -1
        waitpid(id, &status, 0)
        return (status, String(decoding: text, as: UTF8.self))
    }
}
