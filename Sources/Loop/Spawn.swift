// SPDX-License-Identifier: MIT
public import Glibc

/// Starts a program that `PATH` leads to.
///
/// - Parameters:
///   - words: its name, and its arguments.
///   - input: its standard input; nil is this program's own.
///   - output: its standard output; nil is this program's standard error.
/// - Returns: its process, which the caller waits for.
public func spawn(_ words: [String], input: FileDescriptor? = nil, output: FileDescriptor? = nil) throws(Errno) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
    }
    if let input { posix_spawn_file_actions_adddup2(&actions, input.raw, 0) }
    posix_spawn_file_actions_adddup2(&actions, output?.raw ?? 2, 1)
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
