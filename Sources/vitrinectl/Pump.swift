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
    /// What packs the stream anew; nil when the target gets it as it comes.
    private var file: SeekableWebM?
    private var carried: UInt64 = 0

    /// Bytes that have been written.
    var written: UInt64 { file?.written ?? carried }
    /// When the first byte came.
    private(set) var began: Instant?
    /// The stream has ended and all of it is written.
    private(set) var isAtEnd = false
    /// Why nothing can be written any more.
    private(set) var failure: RecordingFault?
    /// Called when the recording wants a key frame.
    var onKeyFrameWish: (() -> Void)?
    private var hasSeenEnd = false
    /// Ends the wait for what may come before something that has come.
    private var settling: Timer?

    /// Whether nothing more will happen.
    var isOver: Bool { isAtEnd || failure != nil }

    private init(_ stream: FileDescriptor, into target: RecordTarget, isSeekable: Bool, on loop: EventLoop) {
        (self.stream, self.target, self.loop) = (stream, target, loop)
        if isSeekable { file = SeekableWebM(into: target) }
        awaitStream()
    }

    /// - Parameter isSeekable: whether the stream is WebM and becomes a seekable file; the target is a regular one then.
    static func start(
        _ stream: FileDescriptor, into target: RecordTarget, isSeekable: Bool, on loop: EventLoop
    ) throws(Failure) -> Pump {
        do throws(Errno) { try stream.setNonBlocking() } catch { throw .ended(.failed, "cannot read the stream: \(error)") }
        return Pump(stream, into: target, isSeekable: isSeekable, on: loop)
    }

    /// Stops carrying, and makes of what was written a whole file. The stream's descriptor closes with this object.
    func finish() {
        cancel()
        settling?.cancel()
        guard var file else { return }
        // Without this the file would be finished twice.
        defer { self.file = nil }
        do throws(RecordingFault) { try file.finish() } catch { failure = failure ?? error }
        carried = file.written
    }

    private func cancel() {
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
        if file != nil { return pack(buffer[..<count]) }
        pending = buffer[..<count]
        flush()
    }

    private func pack(_ bytes: ArraySlice<UInt8>) {
        do throws(RecordingFault) {
            try file?.take(bytes)
        } catch {
            fail(error)
            return
        }
        settleLater()
        guard file?.keyFrameWish.isOpen == true else { return }
        file?.keyFrameWish.close()
        onKeyFrameWish?()
    }

    /// What waits is written when nothing comes for a while: a still screen, and silence.
    private func settleLater() {
        settling?.cancel()
        settling = nil
        guard file?.isWaiting == true else { return }
        settling = loop.after(.milliseconds(Int64(SeekableWebM.patience))) { [unowned self] in
            do throws(RecordingFault) { try file?.settle() } catch { fail(error) }
        }
    }

    private func fail(_ fault: RecordingFault) {
        failure = fault
        cancel()
    }

    private func flush() {
        do throws(Errno) {
            repeat {
                let count = try target.write(pending)
                carried += UInt64(count)
                pending = pending.dropFirst(count)
            } while target.isRegular && !pending.isEmpty
        } catch {
            return fail(.write(error))
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
