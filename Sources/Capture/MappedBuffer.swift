// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Glibc
import Loop

/// The memory of one of the producer's buffers, mapped to read.
///
/// PipeWire could map it too, but its mappings have gone stale across renegotiations, and newer versions want a flag that older producers do not
/// set. Thread: capture. It lives from `add_buffer` to `remove_buffer`; no other thread ever sees it.
final class MappedBuffer {
    let memory: BufferMemory
    /// What can be read of it: no more than the producer declared, and no more than there is.
    let bytes: UnsafeRawBufferPointer
    /// Some of the memory was gone while it was read; there are only zeroes now.
    private(set) var isBroken = false
    private let mapping: UnsafeMutableRawBufferPointer?
    private let descriptor: Int32

    /// - Throws: when it is no memory that can be read.
    init(_ data: spa_data) throws(CaptureError) {
        descriptor = Int32(truncatingIfNeeded: data.fd)
        switch spa_data_type(data.type) {
        case SPA_DATA_MemPtr:
            guard let pointer = data.data else { throw .unusableMemory("a buffer without an address") }
            (memory, mapping, bytes) = (.pointer, nil, UnsafeRawBufferPointer(start: pointer, count: Int(data.maxsize)))
        case SPA_DATA_MemFd, SPA_DATA_DmaBuf:
            memory = data.type == SPA_DATA_DmaBuf.rawValue ? .dmaBuf : .sharedMemory
            let size = try MappedBuffer.size(descriptor)
            let offset = Int(data.mapoffset)
            // A DMA-BUF's `maxsize` is not filled in by all producers.
            let declared = data.maxsize == 0 && memory == .dmaBuf ? Int(UInt32.max) : Int(data.maxsize)
            let count = min(declared, size - offset)
            guard count > 0 else { throw .unusableMemory("a buffer of \(size) bytes, of which those from \(offset) on are promised") }
            let start = offset & ~4_095
            let length = offset - start + count
            guard let base = mmap(nil, length, PROT_READ, MAP_SHARED, descriptor, off_t(start)), base != MAP_FAILED else {
                throw .unusableMemory("mapping a \(memory.rawValue) buffer: \(Errno.last)")
            }
            mapping = UnsafeMutableRawBufferPointer(start: base, count: length)
            bytes = UnsafeRawBufferPointer(start: base + (offset - start), count: count)
        default:
            throw .unusableMemory("memory of an unknown type \(data.type)")
        }
    }

    deinit {
        if let mapping { munmap(mapping.baseAddress, mapping.count) }
    }

    /// Runs `body` while the memory may be read.
    ///
    /// - Returns: nil when some of the memory was gone.
    func read<Result>(_ body: () -> Result) -> Result? {
        if isBroken { return nil }
        synchronize(starts: true)
        defer { synchronize(starts: false) }
        guard let result = FaultGuard.reading(bytes, body) else {
            isBroken = true
            return nil
        }
        return result
    }

    /// Tells the graphics driver that the CPU reads. That some memory is no DMA-BUF at all, or needs no such thing, is no error.
    ///
    /// Spec: [DMA_BUF_IOCTL_SYNC](https://docs.kernel.org/driver-api/dma-buf.html#cpu-access-to-dma-buffer-objects)
    private func synchronize(starts: Bool) {
        guard memory == .dmaBuf else { return }
        let (sync, reads, end): (UInt, UInt64, UInt64) = (0x4008_6200, 1, 1 << 2)
        var flags = starts ? reads : reads | end
        while ioctl(descriptor, sync, &flags) < 0 && (errno == EINTR || errno == EAGAIN) {}
    }

    /// The size of the file; that of a DMA-BUF is where its end is.
    private static func size(_ descriptor: Int32) throws(CaptureError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unusableMemory("a buffer without a descriptor: \(Errno.last)") }
        if status.st_size > 0 { return status.st_size }
        let end = lseek(descriptor, 0, SEEK_END)
        return max(0, Int(end))
    }
}
