// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// Anonymous pages for pixels: page aligned, zeroed, left out of core dumps, resident only where they were written.
///
/// SAFETY: `@unchecked` because of the raw pointer. Who may use the memory is decided by its owner: a slot's state under the pool's lock.
final class PixelMemory: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    let byteCount: Int

    /// - Throws: when the kernel has no such memory.
    init(byteCount: Int) throws(Errno) {
        let whole = PixelMemory.wholePages(byteCount)
        let mapped = mmap(nil, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let mapped, mapped != MAP_FAILED else { throw Errno.last }
        // What people see on their screens does not belong into a crash report.
        madvise(mapped, whole, MADV_DONTDUMP)
        (base, self.byteCount) = (mapped, whole)
    }

    static func wholePages(_ byteCount: Int) -> Int { (max(1, byteCount) + 4_095) & ~4_095 }

    deinit { munmap(base, byteCount) }

    /// Gives the pages back: they read as zeroes from now on.
    func wipe() { madvise(base, byteCount, MADV_DONTNEED) }
}
