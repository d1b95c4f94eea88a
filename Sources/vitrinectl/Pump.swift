// SPDX-License-Identifier: MIT
import Glibc
import Loop

/// Carries a stream from the agent's descriptor to a target, for as long as both go on.
final class Pump {
    private let loop: EventLoop
    private let stream: FileDescriptor
    private let target: RecordTarget
    private var buffer = [UInt8](repeating: 0, count: 1 << 18)
    private var pending: ArraySlice<UInt8> = []
    private var watch: Watch?

    /// Bytes that have been written.
    private(set) var written: UInt64 = 0
    /// When the first byte came.
    private(set) var began: Instant?
    /// The stream has ended and all of it is written.
    private(set) var isAtEnd = false
    /// Why nothing can be written any more.
    private(set) var failure: Errno?
    private var hasSeenEnd = false

    /// Whether nothing more will happen.
    var isOver: Bool { isAtEnd || failure != nil }

    init(_ stream: FileDescriptor, into target: RecordTarget, on loop: EventLoop) throws(Errno) {
        (self.stream, self.target, self.loop) = (stream, target, loop)
        try stream.setNonBlocking()
        awaitStream()
    }

    /// Stops carrying. The stream's descriptor closes with this object.
    func cancel() {
        watch?.cancel()
        watch = nil
    }

    // A descriptor that is not wanted is not watched at all: one that has hung up would wake the loop for ever.
    private func awaitStream() {
        cancel()
        watch = loop.watch(stream.raw, for: .read) { [unowned self] _ in readStream() }
    }

    private func awaitTarget() {
        cancel()
        watch = loop.watch(target.raw, for: .write) { [unowned self] _ in flush() }
    }

    private func readStream() {
        let count = read(stream.raw, &buffer, buffer.count)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        if count <= 0 {
            hasSeenEnd = true
            finishIfDone()
            return
        }
        began = began ?? Instant.now
        pending = buffer[..<count]
        flush()
    }

    private func flush() {
        do throws(Errno) {
            repeat {
                let count = try target.write(pending)
                written += UInt64(count)
                pending = pending.dropFirst(count)
            } while target.isRegular && !pending.isEmpty
        } catch {
            failure = error
            cancel()
            return
        }
        if !pending.isEmpty { return awaitTarget() }
        finishIfDone()
        if !isAtEnd { awaitStream() }
    }

    private func finishIfDone() {
        guard hasSeenEnd, pending.isEmpty else { return }
        isAtEnd = true
        cancel()
    }
}
