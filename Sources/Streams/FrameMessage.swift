// SPDX-License-Identifier: MIT
import Encoding
import Frames
import Loop

/// A message of a `frames` stream to its reader, as `dbus/frames.md` lays it out: little-endian numbers at fixed places.
struct FrameMessage {
    /// The newest version of the messages that is spoken here.
    private static let version: UInt32 = 1

    private(set) var bytes: [UInt8] = []
    /// A descriptor that goes with it.
    private(set) var descriptor: FileDescriptor?

    /// From now on pictures come in this pool, and the one before is the reader's to keep.
    ///
    /// - Parameter isTakenBack: whether that is because the reader held on to all slots for too long.
    static func pool(_ pool: SharedPool, isTakenBack: Bool) -> FrameMessage {
        var message = FrameMessage(descriptor: pool.descriptor)
        message.append(1, version, pool.number, UInt32(SharedPool.slotCount))
        message.append(UInt64(pool.slotBytes))
        message.append(isTakenBack ? 1 : 0, 0)
        return message
    }

    /// A picture is in that slot, until the reader releases it.
    static func frame(
        in pool: SharedPool, slot: Int, sequence: UInt64, time: Instant, isPlaceholder: Bool, damage: Damage
    ) -> FrameMessage {
        let (size, offsets) = (pool.size, pool.planeOffsets(slot))
        var rects: [PixelRect] = []
        damage.forEach(in: size) { rects.append($0) }
        var message = FrameMessage()
        message.append(2, isPlaceholder ? 1 : 0, pool.number, UInt32(slot))
        message.append(sequence)
        message.append(UInt64(clamping: time.nanoseconds))
        message.append(UInt32(size.width), UInt32(size.height))
        for offset in [offsets.luma, offsets.blue, offsets.red] { message.append(UInt64(offset)) }
        message.append(UInt32(pool.lumaStride), UInt32(pool.chromaStride), UInt32(rects.count), 0)
        for rect in rects { message.append(UInt32(rect.x), UInt32(rect.y), UInt32(rect.width), UInt32(rect.height)) }
        return message
    }

    /// The pointer is at that place now.
    ///
    /// - Parameter bitmap: goes with it when the reader does not have it.
    static func cursor(_ update: CursorUpdate, _ bitmap: SharedBitmap?) -> FrameMessage {
        var message = FrameMessage(descriptor: bitmap?.descriptor)
        message.append(4, (update.bitmap == nil ? 0 : 1) | (bitmap == nil ? 0 : 2))
        let (area, shown) = (update.area, update.bitmap)
        message.append(UInt32(bitPattern: Int32(clamping: area.x)), UInt32(bitPattern: Int32(clamping: area.y)))
        message.append(UInt32(area.width), UInt32(area.height))
        message.append(UInt32(clamping: shown?.hotspotX ?? 0), UInt32(clamping: shown?.hotspotY ?? 0))
        message.append(UInt32(shown?.size.width ?? 0), UInt32(shown?.size.height ?? 0), UInt32((shown?.size.width ?? 0) * 4), 0)
        return message
    }

    private mutating func append(_ numbers: UInt32...) { for number in numbers { bytes.appendLittleEndian(number) } }

    private mutating func append(_ number: UInt64) { bytes.appendLittleEndian(number) }
}

/// What a reader of frames says: that it needs a slot no more.
struct FrameRelease: Equatable {
    static let byteCount = 12

    let pool: UInt32
    let slot: UInt32

    /// - Parameter bytes: the whole message; nil comes of any other message.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == FrameRelease.byteCount, FrameRelease.number(bytes, 0) == 3 else { return nil }
        (pool, slot) = (FrameRelease.number(bytes, 4), FrameRelease.number(bytes, 8))
    }

    private static func number(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
