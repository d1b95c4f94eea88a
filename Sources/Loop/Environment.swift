// SPDX-License-Identifier: MIT
import CLinux
import Glibc

/// What the program was started with, and its standard error.
public enum Environment {
    /// The value of a variable; nil when it is not set.
    public static func value(of name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Has the allocator give large blocks back to the system as soon as they are freed.
    ///
    /// By itself glibc learns from each freed one to keep the next: megabytes of an encoder that ended would stay. Call it before there are threads.
    public static func returnFreedBlocks() { _ = clinux_set_mmap_threshold(128 * 1024) }

    /// Gives the pages to the system that hold only small blocks which were freed, of all threads; it may take some milliseconds.
    ///
    /// glibc keeps them for the next one that asks, a heap for each thread: after threads that ended, as many heaps as there ever were at once stay.
    public static func returnFreedPages() { _ = clinux_trim_heap() }

    /// Keeps what the program holds in memory out of core dumps: a screen is nobody's debugging aid.
    ///
    /// Not by `PR_SET_DUMPABLE`: nobody could look at the process in `/proc` then, and the desktop portal must, to know who asks.
    public static func forbidCoreDumps() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        // A handler that is fed through a pipe may disregard the limit: it finds no memory in the dump then.
        let file = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = write(file, "0", 1)
        close(file)
    }

    /// Lets the program have more open files than its session gives to each by default: every reader and every picture on its way takes some.
    public static func raiseFileLimit() {
        let greatest: rlim_t = 65_536
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, greatest) else { return }
        limit.rlim_cur = min(limit.rlim_max, greatest)
        setrlimit(kind, &limit)
    }

    /// Writes to standard error, as it is.
    public static func complain(_ text: String) {
        var bytes = Array(text.utf8)
        bytes.withUnsafeMutableBytes { buffer in _ = write(2, buffer.baseAddress, buffer.count) }
    }
}
