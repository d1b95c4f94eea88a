// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// Where a recording goes: a file, a named pipe or device, or standard output.
final class RecordTarget {
    /// For messages.
    let name: String
    /// Writes to a regular file are taken as never blocking; before others the loop waits until they can be written to.
    let isRegular: Bool
    let isStandardOutput: Bool
    /// The descriptor to wait for.
    var raw: Int32 { file?.raw ?? 1 }

    /// Nil for standard output, which is not ours to close.
    private let file: FileDescriptor?
    private let path: String
    private let isNew: Bool
    private var hasBegun = false
    /// Nothing of this recording is in it.
    private(set) var isEmpty = true

    /// A pipe that polls writable takes so much without blocking, whatever else is in it (`PIPE_BUF`).
    private static let safeLength = 4_096

    /// Opens the target without touching what is in it.
    ///
    /// - Parameters:
    ///   - path: `-` is standard output.
    ///   - keepsExisting: whether a file that exists is an error.
    init(_ path: String, keepsExisting: Bool) throws(Failure) {
        self.path = path
        isStandardOutput = path == "-"
        guard !isStandardOutput else {
            if Terminal.isTerminal(1) {
                throw .ended(.usage, "a stream cannot be shown on a terminal: send standard output to a file or a program, or name a file")
            }
            (name, file, isNew) = ("standard output", nil, false)
            isRegular = Self.isRegular(1)
            return
        }
        name = printable(path)
        do throws(Errno) {
            (file, isNew) = try Self.openFile(path, keepsExisting: keepsExisting)
        } catch {
            switch error.code {
            case EEXIST: throw .ended(.failed, "\(name) exists, and --no-clobber was given")
            case ENXIO: throw .ended(.failed, "nobody reads the named pipe \(name): start its reader first")
            default: throw .ended(.failed, "cannot write \(name): \(error)")
            }
        }
        isRegular = file.map { Self.isRegular($0.raw) } ?? false
    }

    private static func openFile(_ path: String, keepsExisting: Bool) throws(Errno) -> (FileDescriptor, isNew: Bool) {
        do throws(Errno) {
            let raw = try Errno.check { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666) }
            return (FileDescriptor(owning: raw), true)
        } catch {
            if error.code != EEXIST || keepsExisting { throw error }
        }
        let raw = try Errno.check { open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o666) }
        return (FileDescriptor(owning: raw), false)
    }

    private static func isRegular(_ raw: Int32) -> Bool {
        var status = stat()
        return fstat(raw, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Writes the beginning of `bytes`; before the first ones the file is emptied.
    ///
    /// - Returns: how many were written; 0: none just now.
    func write(_ bytes: ArraySlice<UInt8>) throws(Errno) -> Int {
        if !hasBegun {
            hasBegun = true
            if isRegular, let file { try Errno.check { ftruncate(file.raw, 0) } }
        }
        let chunk = Array(isRegular ? bytes : bytes.prefix(Self.safeLength))
        do throws(Errno) {
            let count = try Errno.check { Glibc.write(raw, chunk, chunk.count) }
            isEmpty = isEmpty && count == 0
            return count
        } catch {
            if error.code == EAGAIN { return 0 }
            throw error
        }
    }

    /// Writes over bytes that were written before, and may be filled in later: of a regular file only.
    func overwrite(_ bytes: [UInt8], at position: UInt64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            let rest = Array(bytes[done...])
            let offset = off_t(position) + off_t(done)
            done += try Errno.check { pwrite(raw, rest, rest.count, offset) }
        }
    }

    /// Takes away what stands behind a position: of a regular file only.
    func cut(to position: UInt64) {
        // What cannot be taken away stays, and is skipped by who reads.
        guard let length = off_t(exactly: position), ftruncate(raw, length) == 0 else { return }
        lseek(raw, length, SEEK_SET)
        isEmpty = length == 0
    }

    /// Removes a file that was made for this recording and got nothing.
    func discardIfEmpty() {
        if isNew, isEmpty { unlink(path) }
    }
}
