// SPDX-License-Identifier: MIT
import CLinux
import Encoding
import Frames
import Glibc
import Loop

/// Memory for the pictures of one reader: slots in a memfd that this process alone can write.
///
/// It is sealed before anybody else has it: a reader can map it to read, and neither write it nor change its size, by whatever descriptor.
/// A slot has memory from its first picture on; the lowest free one is used first.
///
/// Thread: the writer's.
final class SharedPool {
    /// One that the reader looks at, one that it compares it with, one on its way, one to write.
    static let slotCount = 4

    let number: UInt32
    /// What its pictures belong to: see ``Packet/period``.
    let period: Int
    let size: PixelSize
    let descriptor: FileDescriptor
    /// Bytes from one slot to the next: whole pages.
    let slotBytes: Int
    private let base: UnsafeMutableRawPointer
    private var slots = Array(repeating: Slot(), count: SharedPool.slotCount)

    private struct Slot {
        /// Whether the reader has it.
        var isHeld = false
        var hasMemory = false
        /// What changed since the picture in it, so that only that has to be copied.
        var stale = Damage.everything
    }

    /// - Throws: when there is no descriptor or no address space for it.
    init(number: UInt32, size: PixelSize, period: Int) throws(Errno) {
        (self.number, self.size, self.period) = (number, size, period)
        slotBytes = (I420Planes.byteCount(size) + 4_095) & ~4_095
        let bytes = slotBytes * SharedPool.slotCount
        let descriptor = try FileDescriptor.makeMemory("vitrine-frames")
        try Errno.check { ftruncate(descriptor.raw, bytes) }
        let mapped = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.raw, 0)
        guard let mapped, mapped != MAP_FAILED else { throw Errno.last }
        (self.descriptor, base) = (descriptor, mapped)
        // What people see on their screens does not belong into a crash report.
        madvise(mapped, bytes, MADV_DONTDUMP)
        // The mapping that is there already may be written for ever; no other.
        try descriptor.seal(CLINUX_SEAL_SHRINK | CLINUX_SEAL_GROW | CLINUX_SEAL_FUTURE_WRITE | CLINUX_SEAL_SEAL)
    }

    deinit { munmap(base, slotBytes * SharedPool.slotCount) }

    var heldCount: Int { slots.count(where: \.isHeld) }
    var hasFreeSlot: Bool { slots.contains { !$0.isHeld } }
    var lumaStride: Int { planes(0).lumaStride }
    var chromaStride: Int { planes(0).chromaStride }

    /// Where the planes of a slot begin, in bytes from the beginning of the memory.
    func planeOffsets(_ slot: Int) -> (luma: Int, blue: Int, red: Int) {
        let planes = planes(slot)
        return (
            luma: UnsafeRawPointer(planes.luma) - UnsafeRawPointer(base), blue: UnsafeRawPointer(planes.blue) - UnsafeRawPointer(base),
            red: UnsafeRawPointer(planes.red) - UnsafeRawPointer(base)
        )
    }

    /// Notes what a packet changes, whether it is drawn here or not.
    func note(_ damage: Damage) {
        for index in slots.indices { slots[index].stale.merge(damage) }
    }

    /// Copies a raw packet's picture into a free slot, which is the reader's from now on.
    ///
    /// - Returns: the slot; nil when none is free.
    /// - Throws: when there is no memory for it.
    func draw(_ packet: Packet) throws(Errno) -> Int? {
        guard let index = slots.firstIndex(where: { !$0.isHeld }) else { return nil }
        if !slots[index].hasMemory {
            // Asked for here: where there is none, writing would be the end of the program.
            let code = posix_fallocate(descriptor.raw, index * slotBytes, slotBytes)
            guard code == 0 else { throw Errno(code) }
            slots[index].hasMemory = true
        }
        packet.bytes.withUnsafeBufferPointer { bytes in
            guard let bytes = bytes.baseAddress else { return }
            // SAFETY: the view's pointers could be written through; it is only copied from.
            let luma = UnsafeMutablePointer(mutating: bytes)
            let blue = luma + size.width * size.height
            let red = blue + size.chroma.width * size.chroma.height
            let source = I420Planes(
                size: size, luma: luma, blue: blue, red: red, lumaStride: size.width, chromaStride: size.chroma.width)
            Conversion.copy(source, into: planes(index), slots[index].stale)
        }
        slots[index].stale = .none
        slots[index].isHeld = true
        return index
    }

    /// Takes a slot back that the reader needs no more.
    ///
    /// - Returns: whether it had it.
    func release(_ slot: UInt32) -> Bool {
        guard slot < SharedPool.slotCount, slots[Int(slot)].isHeld else { return false }
        slots[Int(slot)].isHeld = false
        return true
    }

    private func planes(_ slot: Int) -> I420Planes { I420Planes(size: size, base: base + slot * slotBytes) }
}
