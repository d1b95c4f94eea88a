// SPDX-License-Identifier: MIT
import Glibc

/// What a program wrote and how it ended.
struct ToolResult {
    let status: Int32
    let output: [UInt8]
    let errors: String
    var text: String { String(decoding: output, as: UTF8.self) }
    var lines: [Substring] { text.split(separator: "\n") }
}

/// A file that goes when the test is over.
final class TemporaryFile {
    let path: String

    init(_ bytes: [UInt8] = [], suffix: String = "") {
        var template = Array("/tmp/vitrine-test-XXXXXX\(suffix)".utf8CString)
        let descriptor = mkstemps(&template, Int32(suffix.utf8.count))
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        close(descriptor)
    }

    deinit { unlink(path) }

    var bytes: [UInt8] {
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return all }
            all.append(contentsOf: chunk[..<count])
        }
    }
}

/// Runs a program found in PATH and waits for it.
func run(_ arguments: [String]) -> ToolResult {
    let (output, errors) = (TemporaryFile(), TemporaryFile())
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, errors.path, O_WRONLY, 0)
    var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for argument in argv { free(argument) } }
    var process = pid_t()
    guard posix_spawnp(&process, arguments[0], &actions, nil, &argv, environ) == 0 else {
        return ToolResult(status: -1, output: [], errors: "no \(arguments[0])")
    }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return ToolResult(status: status, output: output.bytes, errors: String(decoding: errors.bytes, as: UTF8.self))
}

/// Threads of this process whose names begin so.
func threads(named prefix: String) -> [String] {
    taskIDs().compactMap { task in
        let name = firstLine("/proc/self/task/\(task)/comm")
        return name.hasPrefix(prefix) ? task : nil
    }
}

/// How often the threads went to sleep by themselves so far: each wake-up ends in one more.
func wakeUps(of threads: [String]) -> Int {
    threads.reduce(0) { sum, task in
        let status = String(decoding: contents("/proc/self/task/\(task)/status"), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") } ?? ""
        return sum + (Int(line.split(separator: "\t").last ?? "") ?? 0)
    }
}

/// Descriptors that this process has open.
func openDescriptorCount() -> Int { entries("/proc/self/fd").count }

func taskIDs() -> [String] { entries("/proc/self/task") }

private func entries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if !name.hasPrefix(".") { names.append(name) }
    }
    return names
}

private func firstLine(_ path: String) -> Substring {
    String(decoding: contents(path), as: UTF8.self).split(separator: "\n").first ?? ""
}

private func contents(_ path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 8_192)
    let count = read(descriptor, &bytes, bytes.count)
    return Array(bytes.prefix(max(0, count)))
}
