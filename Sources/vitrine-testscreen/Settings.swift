// SPDX-License-Identifier: MIT

/// How the backend answers one step of the portal's conversation.
enum Answer: String, CaseIterable {
    /// Response 0.
    case ok
    /// Response 1: the user said no.
    case cancel
    /// Response 2.
    case fail
    /// A D-Bus error instead of a response.
    case error
    /// None, until `Answer` is called or the portal closes the request.
    case never
}

/// What a well-formed answer to Start is spoiled with.
enum Fault: String, CaseIterable {
    case none
    /// The key `streams` is missing.
    case noStreams = "no-streams"
    /// `streams` is a string.
    case wrongType = "wrong-type"
    /// The node is 0xffffffff.
    case invalidNode = "invalid-node"
    /// The node is a number that no node has.
    case deadNode = "dead-node"
    /// The node is gone before the answer is sent.
    case vanishedNode = "vanished-node"
}

/// What the backend does with a choice that it is asked to remember or to restore.
enum Persistence: String, CaseIterable {
    /// Remembers; a restored choice opens no picker and is answered at once.
    case honour
    /// Remembers, but the picker opens all the same.
    case ask
    /// Never returns anything to remember.
    case refuse
}

/// How `maxFramerate` is offered.
enum RateOffer: String, CaseIterable {
    case range, fixed, zero, absent
}

/// Which memory the buffers are.
enum Memory: String, CaseIterable {
    /// Allocated here, one memfd a buffer.
    case memfd
    /// Allocated by PipeWire, in shared memory of its own.
    case memptr
    /// Offered as DMA-BUF alone. There is none behind it.
    case dmabuf
}

/// What the damage metadata say.
enum DamageReport: String, CaseIterable {
    /// Exactly what changed.
    case exact
    /// Nothing: not offered.
    case absent
    /// The whole picture, always.
    case full
    /// No region at all, although something changed.
    case empty
    /// A rectangle far bigger than the picture.
    case huge
    /// Rectangles at places that do not exist.
    case garbage
}

/// What the cursor metadata say.
enum CursorReport: String, CaseIterable {
    /// What the portal asked for: nothing, a pointer in the pixels, or `normal`.
    case asAsked = "as-asked"
    /// Not offered.
    case absent
    /// Shape with the first picture, then positions.
    case normal
    /// Id 0 in every buffer.
    case invalid
    /// A bitmap of size 0.
    case hidden
    /// A bitmap that claims 4096 × 4096.
    case huge
    /// A bitmap that begins behind the metadata.
    case outside
}

/// Whether the pointer is to be seen, where the cursor metadata are `normal`.
enum PointerState: String, CaseIterable {
    case shown
    /// Its bitmap has no pixels.
    case hidden
    /// Not in this source: id 0.
    case away
}

/// Which time stamps the headers carry.
enum TimeStamps: String, CaseIterable {
    case normal
    /// -1.
    case invalid
    case zero
    /// The same for all.
    case equal
    /// Each earlier than the one before.
    case backwards
    /// An hour ago.
    case old
}

/// Everything that a test can change, with what a person who starts the program gets.
struct Settings {
    // The picture.
    var size = Size(1280, 720)
    var sizes: [Size] = []
    var workload = Workload.moving
    var rate: UInt32 = 30
    var slowestRate: UInt32 = 0
    var isManual = false
    var sendsFirst = true
    var resizeEvery: UInt32 = 0
    var resizeTo = Size(640, 480)

    // How it lies in memory.
    var formats: [VideoFormat] = [.BGRx]
    var rateOffer = RateOffer.range
    var memory = Memory.memfd
    var buffers: UInt32 = 0
    var planes: UInt32 = 1
    var stridePadding: UInt32 = 0
    var offset: UInt32 = 0
    var unusedByte: UInt8 = 255
    var isSealed = true

    // What lies about it.
    var chunkSize: UInt32?
    var chunkStride: Int32?
    var isShort = false
    var overwrites = false
    var corruptHeaderEvery: UInt32 = 0
    var corruptChunkEvery: UInt32 = 0
    var cursorOnlyEvery: UInt32 = 0

    // Metadata.
    var hasHeader = true
    var timeStamps = TimeStamps.normal
    var gapEvery: UInt32 = 0
    var damage = DamageReport.exact
    var crop: Rect?
    var transform = Transform.normal
    var hasTransform = true
    var cursor = CursorReport.asAsked
    /// The pointer is part of the pixels.
    var drawsPointer = false
    var cursorSize = Size(24, 24)
    /// Where the pointer points, in pixels of the upright picture; nil: it goes about.
    var cursorPosition: Point?
    /// Which pixel of its bitmap points.
    var cursorHotspot = Point(0, 0)
    var cursorShape = PointerShape.red
    var cursorState = PointerState.shown
    var cursorFormat = VideoFormat.BGRA

    // The conversation.
    var answer = Answer.ok
    var answerCreate = Answer.ok
    var answerSelect = Answer.ok
    var delay: UInt32 = 0
    var fault = Fault.none
    var persistence = Persistence.honour
    var streams: UInt32 = 1
    var omitted: Set<String> = []
    var sourceType: UInt32 = 1
    var position = (x: Int32(0), y: Int32(0))
    var logicalSize: Size?
    var streamID = "screen"
    var version: UInt32 = 4
    var sourceTypes: UInt32 = 7
    var cursorModes: UInt32 = 7
    var keepsNode = false
    var hasDecoy = false
    var nextSize: Size?

    /// The settings of a session with that cursor mode: 1 hidden, 2 in the pixels, 4 metadata.
    func resolved(cursorMode: UInt32) -> Settings {
        guard cursor == .asAsked else { return self }
        var resolved = self
        resolved.cursor = cursorMode == 4 ? .normal : .absent
        resolved.drawsPointer = cursorMode == 2
        return resolved
    }

    /// The size of one stream's picture.
    func size(of stream: Int) -> Size { stream < sizes.count ? sizes[stream] : size }
}
