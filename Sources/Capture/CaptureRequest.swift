// SPDX-License-Identifier: MIT
public import Composition
public import Frames
public import Loop

/// One stream that is to be captured: what the portal granted, and where its frames go.
public struct CaptureRequest: Sendable {
    /// Chosen by the caller; never used again. Every event carries it.
    public var id: UInt64
    /// The portal's PipeWire connection, of OpenPipeWireRemote. It is duplicated: it stays the caller's, and one connection serves one request.
    public var remote: FileDescriptor
    /// The node that the portal named.
    public var node: UInt32
    /// The node's serial, where the portal gave one: unlike the number it is never used again.
    public var serial: UInt64?
    /// Where the frames go.
    public var pool: FramePool
    /// The most frames a second that the source is asked for; nil is as many as it has.
    public var maxFrameRate: UInt32?
    /// What of the source is shown.
    public var view: CaptureView
    /// Whether the source was asked for its pointer beside the pixels. Else nothing is read of it.
    public var hasCursor: Bool
    /// The request whose pictures go into the same pool until this one has its first: from that moment on, none of them does. Close it first
    /// then; when this one is closed first, that one goes on.
    public var replaces: UInt64?
    /// Gets all events of this request, in order.
    public var events: Inbox<CaptureEvent>

    /// A request for one stream.
    public init(
        id: UInt64, remote: FileDescriptor, node: UInt32, serial: UInt64? = nil, pool: FramePool, maxFrameRate: UInt32? = nil,
        view: CaptureView = CaptureView(), hasCursor: Bool = false, replaces: UInt64? = nil, events: Inbox<CaptureEvent>
    ) {
        (self.id, self.remote, self.node, self.serial, self.pool) = (id, remote, node, serial, pool)
        (self.maxFrameRate, self.view, self.hasCursor, self.replaces, self.events) = (maxFrameRate, view, hasCursor, replaces, events)
    }
}

/// Several streams of one portal connection, composed into one picture.
public struct CompositionRequest: Sendable {
    /// Chosen by the caller; never used again, and no ``CaptureRequest``'s. Events of the picture as a whole carry it.
    public var id: UInt64
    /// The streams: each into a pool of its own, without view and predecessor. Their events carry their own ids. All have the first one's connection.
    public var sources: [CaptureRequest]
    /// What each source is taken to measure before its first picture, where that is known.
    public var expectedSizes: [PixelSize?]
    /// Where the composed picture goes.
    public var pool: FramePool
    /// What of the composed picture is shown.
    public var view: CaptureView
    /// How the sources lie in it.
    public var layout: Layout
    /// The request whose pictures go into the same pool until the first one of this: see ``CaptureRequest/replaces``.
    public var replaces: UInt64?
    /// Gets all events of the picture, in order.
    public var events: Inbox<CaptureEvent>

    /// A request for several streams.
    public init(
        id: UInt64, sources: [CaptureRequest], expectedSizes: [PixelSize?], pool: FramePool, view: CaptureView = CaptureView(),
        layout: Layout = .grid, replaces: UInt64? = nil, events: Inbox<CaptureEvent>
    ) {
        (self.id, self.sources, self.expectedSizes, self.pool) = (id, sources, expectedSizes, pool)
        (self.view, self.layout, self.replaces, self.events) = (view, layout, replaces, events)
    }
}

/// How a producer hands over its pixels.
public enum BufferMemory: String, Sendable {
    /// Shared memory with a descriptor.
    case sharedMemory = "MemFd"
    /// Memory that PipeWire mapped.
    case pointer = "MemPtr"
    /// Linear memory of a graphics device.
    case dmaBuf = "DmaBuf"
}

/// What was negotiated with a source, as far as people may want to see it.
public struct StreamFormat: Equatable, Sendable {
    /// Of the picture in the pool: after transform and crop.
    public var size: PixelSize
    /// Of the source, upright: what crop and masks refer to.
    public var sourceSize: PixelSize
    /// The order of a pixel's bytes; ``PixelFormat/name`` is PipeWire's name.
    public var pixelFormat: PixelFormat
    /// Bytes from one row of the source to the next.
    public var strideBytes: Int
    /// The kind of memory.
    public var memory: BufferMemory
}

/// Why a request came to nothing.
public enum CaptureError: Error, Equatable, Sendable, CustomStringConvertible {
    /// PipeWire's library could not be started.
    case libraryFailed(String)
    /// The portal's descriptor leads nowhere.
    case cannotConnect(Errno)
    /// The node that the portal named is not there.
    case nodeMissing(node: UInt32)
    /// The source has no format that can be read; these are its own.
    case noCommonFormat(offered: [String])
    /// No format was agreed on in time; these are the source's, as far as known.
    case negotiationTimedOut(offered: [String])
    /// The source's memory cannot be read.
    case unusableMemory(String)
    /// PipeWire says that the stream failed.
    case streamFailed(String)

    /// What is wrong, and what to do about it.
    public var description: String {
        switch self {
        case .libraryFailed(let text):
            "PipeWire's library cannot start (\(text)): is libspa-0.2-modules installed?"
        case .cannotConnect(let errno):
            "the portal's PipeWire connection cannot be used (\(errno)): is PipeWire running?"
        case .nodeMissing(let node):
            "the source is gone: PipeWire has no node \(node) any more; choose it again"
        case .noCommonFormat(let offered):
            "the source offers only \(offered.joined(separator: ", ")); needed is RGB of four bytes a pixel, in shared memory or linear DMA-BUF"
        case .negotiationTimedOut(let offered) where offered.isEmpty:
            "PipeWire negotiated no format with the source: does a session manager (WirePlumber) run?"
        case .negotiationTimedOut(let offered):
            "PipeWire negotiated no format with the source, which offers \(offered.joined(separator: ", ")); does a session manager (WirePlumber) run?"
        case .unusableMemory(let text):
            "the source's pictures lie in memory that cannot be read: \(text)"
        case .streamFailed(let text):
            "PipeWire ended the stream: \(text)"
        }
    }
}

/// What happened to a request. Events of one request come in order; `closed` is the last.
public enum CaptureEvent: Equatable, Sendable {
    /// The picture has another size, or the source's memory another layout. Comes before the first frame of that kind is announced.
    case formatChanged(id: UInt64, StreamFormat)
    /// A composed picture has another size; comes before the first one of that size is announced.
    ///
    /// - Parameters:
    ///   - size: of the picture in the pool.
    ///   - whole: of all sources together, which crop and masks refer to.
    case composed(id: UInt64, size: PixelSize, whole: PixelSize)
    /// The first picture is in the pool. Once.
    case firstFrame(id: UInt64)
    /// The source stopped for a while: minimised, locked. The last picture stays.
    case paused(id: UInt64)
    /// The source goes on.
    case resumed(id: UInt64)
    /// No picture shows any more what ``CaptureThread/setView(_:_:)`` hides. The answer to each of its calls.
    case viewChanged(id: UInt64)
    /// The source is gone: window closed, monitor unplugged, sharing ended. Once, and no more frames come.
    case sourceRemoved(id: UInt64)
    /// PipeWire is gone. Once, and no more frames come.
    case disconnected(id: UInt64)
    /// The request came to nothing, or broke. Once, and no more frames come.
    case failed(id: UInt64, CaptureError)
    /// Everything of the request is gone, its descriptor is closed. The answer to ``CaptureThread/close(_:)``.
    case closed(id: UInt64)
}
