// SPDX-License-Identifier: MIT
import CLinux
import Encoding
import Glibc
import Loop

/// A pointer's bitmap in memory that nobody can write any more, for all readers that draw it.
final class SharedBitmap {
    let bitmap: CursorUpdate.Bitmap
    let descriptor: FileDescriptor

    /// - Throws: when there is no descriptor or memory for it.
    init(_ bitmap: CursorUpdate.Bitmap) throws(Errno) {
        self.bitmap = bitmap
        let descriptor = try FileDescriptor.makeMemory("vitrine-cursor")
        let count = bitmap.pixels.withUnsafeBytes { write(descriptor.raw, $0.baseAddress, $0.count) }
        guard count == bitmap.pixels.count else { throw count < 0 ? Errno.last : Errno(ENOSPC) }
        try descriptor.seal(CLINUX_SEAL_SHRINK | CLINUX_SEAL_GROW | CLINUX_SEAL_WRITE | CLINUX_SEAL_SEAL)
        self.descriptor = descriptor
    }
}
