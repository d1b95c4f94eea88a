// SPDX-License-Identifier: MIT
import CLinux
import Glibc
import Loop
import Testing

@testable import Streams

/// A picture that a reader got, with a copy of its samples.
struct ReceivedFrame {
    let flags: UInt32
    let pool: UInt32
    let slot: UInt32
    let sequence: UInt64
    let time: UInt64
    let picture: TestPicture
    let damage: [[UInt32]]

    var isWhole: Bool { damage == [[0, 0, UInt32(picture.size.width), UInt32(picture.size.height)]] }

    func covers(_ x: Int, _ y: Int) -> Bool {
        damage.contains { Int($0[0]) <= x && x < Int($0[0] + $0[2]) && Int($0[1]) <= y && y < Int($0[1] + $0[3]) }
    }
}

/// What a reader heard of the pointer.
struct ReceivedCursor {
    /// The words of the message, without type and flags.
    let words: [Int32]
    let isVisible: Bool
    let descriptor: FileDescriptor?

    init(_ bytes: [UInt8], _ descriptor: FileDescriptor?) {
        let all = bytes.withUnsafeBytes { bytes in
            (0..<(bytes.count / 4)).map { Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4 * $0, as: Int32.self)) }
        }
        #expect(all.count == 12 && (all[1] & 2 != 0) == (descriptor != nil))
        (words, isVisible, self.descriptor) = (Array(all.dropFirst(2)), all[1] & 1 == 1, descriptor)
    }

    var bitmap: [UInt8] {
        guard let descriptor else { return [] }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = pread(descriptor.raw, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }
}

/// Memory that a reader was given.
final class MappedPool {
    let descriptor: FileDescriptor
    let base: UnsafeRawPointer
    let byteCount: Int
    let isTakenBack: Bool

    init?(_ descriptor: FileDescriptor, byteCount: Int, isTakenBack: Bool) {
        guard let base = mmap(nil, byteCount, PROT_READ, MAP_SHARED, descriptor.raw, 0), base != MAP_FAILED else { return nil }
        (self.descriptor, self.byteCount, self.isTakenBack, self.base) = (descriptor, byteCount, isTakenBack, UnsafeRawPointer(base))
    }

    deinit { munmap(UnsafeMutableRawPointer(mutating: base), byteCount) }

    var bytes: [UInt8] { Array(UnsafeRawBufferPointer(start: base, count: byteCount)) }
}

/// The reader's side of `dbus/frames.md`, for a test to do as it pleases.
final class FrameReader {
    private let rig: Rig
    private var socket: FileDescriptor?
    private(set) var stream: ReaderStream?
    private(set) var events: [StreamEvent] = []
    /// All pools that it was given, the newest last; it keeps them.
    private(set) var pools: [MappedPool] = []
    private(set) var isAtEnd = false
    /// What it heard of the pointer.
    private(set) var cursors: [ReceivedCursor] = []

    init(_ rig: Rig, _ options: StreamOptions = StreamOptions(format: .frames)) throws {
        self.rig = rig
        let (stream, socket) = try rig.track.subscribe(options) { [unowned self] in events.append($0) }
        try socket.setNonBlocking()
        (self.stream, self.socket) = (stream, socket)
    }

    var raw: Int32 { socket?.raw ?? -1 }
    var statistics: StreamStatistics { stream?.statistics ?? StreamStatistics() }

    func close() { socket = nil }

    /// The next picture, for which the rig's loop runs; nil at the end, and when none comes in time.
    func next(_ what: Comment = "a frame", sourceLocation: SourceLocation = #_sourceLocation) -> ReceivedFrame? {
        var frame: ReceivedFrame?
        rig.wait(what, { isAtEnd || poll(&frame) }, sourceLocation: sourceLocation)
        return frame
    }

    /// Whether there is a picture by now.
    func poll(_ frame: inout ReceivedFrame?) -> Bool {
        while let message = receive() {
            if message.bytes.isEmpty {
                isAtEnd = true
                return true
            }
            if message.word(0) == 1 {
                guard let descriptor = message.descriptor,
                    let pool = MappedPool(
                        descriptor, byteCount: Int(message.word(12)) * Int(message.long(16)), isTakenBack: message.word(24) & 1 == 1)
                else { return false }
                pools.append(pool)
                continue
            }
            if message.word(0) == 4 {
                cursors.append(ReceivedCursor(message.bytes, message.descriptor))
                continue
            }
            frame = read(message)
            return true
        }
        return false
    }

    @discardableResult
    func release(_ frame: ReceivedFrame) -> Int { say([3, frame.pool, frame.slot]) }

    /// Sends numbers as a message.
    @discardableResult
    func say(_ numbers: [UInt32]) -> Int {
        numbers.withUnsafeBytes { send(raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    private struct Message {
        let bytes: [UInt8]
        let descriptor: FileDescriptor?

        func word(_ offset: Int) -> UInt32 {
            bytes.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) }
        }

        func long(_ offset: Int) -> UInt64 { UInt64(word(offset)) | UInt64(word(offset + 4)) << 32 }
    }

    private struct Passed {
        var header = cmsghdr()
        var descriptor: Int32 = -1
    }

    private func receive() -> Message? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        var passed = Passed()
        let count = buffer.withUnsafeMutableBytes { bytes in
            withUnsafeMutablePointer(to: &passed) { passed in
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var header = msghdr()
                    (header.msg_iov, header.msg_iovlen) = (part, 1)
                    (header.msg_control, header.msg_controllen) = (UnsafeMutableRawPointer(passed), MemoryLayout<Passed>.size)
                    return recvmsg(raw, &header, Int32(MSG_CMSG_CLOEXEC))
                }
            }
        }
        if count < 0 && errno == EAGAIN { return nil }
        #expect(count >= 0, "the socket failed: \(errno)")
        let descriptor = passed.descriptor < 0 ? nil : FileDescriptor(owning: passed.descriptor)
        return Message(bytes: Array(buffer.prefix(max(0, count))), descriptor: descriptor)
    }

    private func read(_ message: Message) -> ReceivedFrame? {
        guard message.word(0) == 2, let pool = pools.last, Int(message.word(8)) == pools.count else { return nil }
        var picture = TestPicture(Int(message.word(32)), Int(message.word(36)))
        func copy(_ offset: UInt64, _ stride: UInt32, _ width: Int, _ height: Int) -> [UInt8] {
            var samples: [UInt8] = []
            for row in 0..<height {
                let start = pool.base + Int(offset) + row * Int(stride)
                samples += Array(UnsafeRawBufferPointer(start: start, count: width))
            }
            return samples
        }
        let (size, chroma) = (picture.size, picture.size.chroma)
        picture.luma = copy(message.long(40), message.word(64), size.width, size.height)
        picture.blue = copy(message.long(48), message.word(68), chroma.width, chroma.height)
        picture.red = copy(message.long(56), message.word(68), chroma.width, chroma.height)
        let rects = (0..<Int(message.word(72))).map { index in (0..<4).map { message.word(80 + 16 * index + 4 * $0) } }
        #expect(message.bytes.count == 80 + 16 * rects.count)
        return ReceivedFrame(
            flags: message.word(4), pool: message.word(8), slot: message.word(12), sequence: message.long(16), time: message.long(24),
            picture: picture, damage: rects)
    }
}
