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
        let flags = UInt32(CLINUX_MFD_CLOEXEC | CLINUX_MFD_ALLOW_SEALING)
        let descriptor = FileDescriptor(owning: try Errno.check { clinux_memfd_create("vitrine-cursor", flags) })
        let count = bitmap.pixels.withUnsafeBytes { write(descriptor.raw, $0.baseAddress, $0.count) }
        guard count == bitmap.pixels.count else { throw count < 0 ? Errno.last : Errno(ENOSPC) }
        try Errno.check {
            clinux_add_seals(descriptor.raw, Int32(CLINUX_SEAL_SHRINK | CLINUX_SEAL_GROW | CLINUX_SEAL_WRITE | CLINUX_SEAL_SEAL))
        }
        self.descriptor = descriptor
    }
}
