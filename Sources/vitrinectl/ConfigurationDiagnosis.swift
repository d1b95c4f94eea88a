// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// What is wrong with `vitrine.conf`, which the agent alone can read: it is asked as a program, since the one that runs tells it to its log.
enum ConfigurationDiagnosis {
    /// One a wrong line; nothing where there is no agent to ask.
    static func findings() -> [Finding] {
        guard let complaints = try? complaints() else { return [] }
        if complaints.isEmpty { return [Finding("vitrine.conf", .ok, "no line of it is wrong")] }
        let remedy = "mend the line or take it out: 'man vitrine.conf' has the keys and their values"
        return complaints.map { Finding("vitrine.conf", .note, printable($0), remedy) }
    }

    private static func complaints() throws(Errno) -> [String] {
        let (process, reading) = try start()
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 12)
        while true {
            let count = try Errno.check { read(reading.raw, &chunk, chunk.count) }
            if count == 0 { break }
            text += chunk.prefix(count)
        }
        var status: Int32 = 0
        try Errno.check { waitpid(process, &status, 0) }
        // Another exit code is an agent that does not know the question.
        guard status & 0x7F == 0, [0, 1].contains(status >> 8) else { throw Errno(ENOSYS) }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// The agent's process, and what it writes.
    private static func start() throws(Errno) -> (pid_t, FileDescriptor) {
        // The one that was installed together with this program, else any.
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlink("/proc/self/exe", &path, path.count)
        let own = String(decoding: path.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        let beside = own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + "vitrine-agent"
        let program = access(String(beside), X_OK) == 0 ? String(beside) : "vitrine-agent"
        // Our own writing end is closed on return: else there would be no end to read.
        let (reading, writing) = try FileDescriptor.pipe()
        return (try spawn([program, "--check-configuration"], output: writing), reading)
    }
}
