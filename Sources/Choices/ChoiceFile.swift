// SPDX-License-Identifier: MIT
import Glibc
public import Loop

/// The remembered choices of one user: a file that only this user can read, replaced as a whole at each change.
///
/// The agent writes it, `vitrinectl forget` does too; the folder is locked meanwhile; nobody waits for a lock that
/// another one holds. Nothing of it is kept in memory: what was forgotten is
/// forgotten at once. It is small and read at each start of a share, never while one runs.
///
/// Source: [XDG Base Directory](https://specifications.freedesktop.org/basedir-spec/latest/), `XDG_STATE_HOME`.
public struct ChoiceFile: Sendable {
    /// More are not kept: the oldest go first.
    public static let greatestCount = 256

    private let folder: String
    private var path: String { folder + "/choices" }

    /// The file in a folder of its own.
    public init(folder: String) { self.folder = folder }

    /// The user's: below `XDG_STATE_HOME`, else below `HOME`; nil when neither says where.
    public static var ofUser: ChoiceFile? {
        if let state = Environment.value(of: "XDG_STATE_HOME"), state.hasPrefix("/") { return ChoiceFile(folder: state + "/vitrine") }
        guard let home = Environment.value(of: "HOME"), home.hasPrefix("/") else { return nil }
        return ChoiceFile(folder: home + "/.local/state/vitrine")
    }

    /// All choices, the one that was used last at the end. None when there is no file; lines that are damaged are passed over.
    public func choices() throws(Errno) -> [Choice] {
        do throws(Errno) {
            _ = try openFolder()
        } catch {
            if error.code == ENOENT { return [] }
            throw error
        }
        return try read()
    }

    private func read() throws(Errno) -> [Choice] {
        var status = stat()
        if lstat(path, &status) != 0 {
            if errno == ENOENT { return [] }
            throw Errno.last
        }
        // Neither a link, nor what another user has made.
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { throw Errno(EPERM) }
        let bytes = try Files.contents(of: path)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap(Choice.init(line:))
    }

    /// Changes the choices, and replaces the file in one step: whoever reads it sees all of the old or all of the new.
    public func change(_ body: (inout [Choice]) -> Void) throws(Errno) {
        try makeFolder()
        let lock = try openFolder()
        try Errno.check { flock(lock.raw, LOCK_EX | LOCK_NB) }
        let before = try read()
        var after = before
        body(&after)
        // A folder without a file is of no use, also one that was made just now.
        defer { if after.isEmpty { rmdir(folder) } }
        if after == before { return }
        if after.isEmpty {
            try Errno.check { unlink(path) }
        } else {
            try replace(with: after.suffix(ChoiceFile.greatestCount).map { $0.line + "\n" }.joined())
        }
        // The name is on the disk too.
        fsync(lock.raw)
    }

    private func replace(with text: String) throws(Errno) {
        let new = path + ".new"
        // Left behind by a crash; the folder is ours and locked.
        unlink(new)
        let file = FileDescriptor(owning: try Errno.check { open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) })
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = try Errno.check { rest.withUnsafeBytes { write(file.raw, $0.baseAddress, $0.count) } }
            rest = rest.dropFirst(count)
        }
        try Errno.check { fsync(file.raw) }
        try Errno.check { rename(new, path) }
    }

    /// Makes the folder and those above it, for this user alone.
    private func makeFolder() throws(Errno) {
        var prefix = ""
        for part in folder.split(separator: "/") {
            prefix += "/" + part
            if mkdir(prefix, 0o700) == 0 || errno == EEXIST { continue }
            throw Errno.last
        }
    }

    /// The folder, which is this user's own, for nobody else, and no link to somewhere else.
    private func openFolder() throws(Errno) -> FileDescriptor {
        let opened = FileDescriptor(owning: try Errno.check { open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) })
        var status = stat()
        try Errno.check { fstat(opened.raw, &status) }
        guard status.st_uid == geteuid() else { throw Errno(EPERM) }
        // What others may look into is closed to them.
        if status.st_mode & 0o077 != 0 { try Errno.check { fchmod(opened.raw, 0o700) } }
        return opened
    }
}
