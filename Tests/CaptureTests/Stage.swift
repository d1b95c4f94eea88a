// SPDX-License-Identifier: MIT
import Frames
import Loop
import Testing

@testable import Capture

/// One test's loop, pool, capture thread and what they said.
final class Stage {
    struct TimedOut: Error { let what: String }

    static let patience = Duration.seconds(20)

    let pipewire: PrivatePipeWire
    let loop: EventLoop
    let pool = FramePool()
    let capture: CaptureThread
    private(set) var events: [CaptureEvent] = []
    private var inbox: Inbox<CaptureEvent>?
    private let changed: Inbox<Void>
    private let bell: FileDescriptor
    let reader: FramePool.ReaderID
    private var id: UInt64 = 0

    /// A daemon that several tests use, one after the other.
    static let shared = Result { try PrivatePipeWire() }

    init(_ pipewire: PrivatePipeWire? = nil) throws {
        self.pipewire = try pipewire ?? Stage.shared.get()
        let loop = try EventLoop()
        self.loop = loop
        changed = loop.makeInbox { (_: Void) in }
        bell = try FileDescriptor.makeBell()
        reader = pool.addReader(bell: bell)
        capture = try CaptureThread.start()
        let bell = bell
        let (pool, reader) = (pool, reader)
        loop.watch(bell.raw, for: .read) { _ in
            bell.silence()
            _ = pool.take(reader)
        }
        inbox = loop.makeInbox { [unowned self] event in events.append(event) }
    }

    deinit { capture.stop() }

    func makeProducer(_ options: ProducerOptions = ProducerOptions()) throws -> Producer {
        let producer = try Producer(pipewire, options, changed: changed)
        try wait("the producer's node") { producer.status.node != nil }
        return producer
    }

    /// Captures a node; returns the request's id.
    @discardableResult
    func open(
        _ node: UInt32, serial: UInt64? = nil, view: CaptureView = CaptureView(), hasCursor: Bool = false, remote: FileDescriptor? = nil,
        replacing: UInt64? = nil
    ) throws -> UInt64 {
        guard let inbox else { throw TimedOut(what: "no inbox") }
        id += 1
        let remote = try remote ?? pipewire.connect()
        capture.open(
            CaptureRequest(
                id: id, remote: remote, node: node, serial: serial, pool: pool, view: view, hasCursor: hasCursor, replaces: replacing,
                events: inbox))
        return id
    }

    func wait(_ what: String, patience: Duration = Stage.patience, _ condition: () -> Bool) throws {
        let deadline = Instant.now + patience
        // Not all that is waited for wakes this loop.
        while !loop.run(until: condition, timeout: .milliseconds(2)) {
            guard Instant.now < deadline else { throw TimedOut(what: "\(what); events: \(events), statistics: \(pool.statistics)") }
        }
    }

    func wait(for event: CaptureEvent) throws { try wait("\(event)") { events.contains(event) } }

    /// Opens a producer and waits until it may send.
    func connect(_ producer: Producer, view: CaptureView = CaptureView(), hasCursor: Bool = false) throws {
        guard let node = producer.status.node else { throw TimedOut(what: "no node") }
        try open(node, view: view, hasCursor: hasCursor)
        try wait("streaming") { producer.status.isStreaming }
    }

    /// Sends a frame, as soon as the producer has a buffer for it.
    func send(_ producer: Producer, _ frame: ProducerFrame) throws {
        let before = producer.status
        producer.send(frame)
        var failures = before.nullDequeues
        try wait("a buffer for frame \(frame.number)") {
            let now = producer.status
            if now.sent > before.sent { return true }
            if now.nullDequeues > failures {
                failures = now.nullDequeues
                producer.send(frame)
            }
            return false
        }
    }

    /// Sends a frame and waits for its picture.
    func show(_ producer: Producer, _ frame: ProducerFrame, patience: Duration = Stage.patience) throws -> Shot {
        let before = sequence
        producer.send(frame)
        // What a source sends before all of the graph runs is lost: it is sent again.
        var resent = Instant.now + .milliseconds(500)
        try wait("frame \(frame.number)", patience: patience) {
            if sequence > before { return true }
            if Instant.now > resent {
                producer.send(frame)
                resent = Instant.now + .milliseconds(500)
            }
            return false
        }
        guard let lease = pool.latest() else { throw TimedOut(what: "no picture") }
        return Shot(lease)
    }

    /// Sends frames until a picture is as it should be.
    func show(_ producer: Producer, _ what: String, _ frame: ProducerFrame, until isRight: (Shot) -> Bool) throws {
        try wait(what) {
            guard let shot = try? show(producer, frame, patience: .milliseconds(100)) else { return false }
            return isRight(shot)
        }
    }

    /// The number of the latest picture.
    var sequence: UInt64 {
        if let lease = pool.latest() { return lease.info.sequence }
        return 0
    }

    /// Closes the newest request and waits for the answer.
    func close() throws {
        capture.close(id)
        try wait(for: .closed(id: id))
    }
}

/// What of a picture a test looks at.
struct Shot: Equatable {
    var size: PixelSize
    /// Luma and chroma in the middle of the four quarters, from left to right and top to bottom.
    var quarters: [[Int]]
    var corners: [Int]

    init(_ lease: borrowing FrameLease) {
        let size = lease.size
        self.size = size
        (quarters, corners) = lease.withPlanes { planes in
            func samples(_ x: Int, _ y: Int) -> [Int] {
                let chroma = y / 2 * planes.chromaStride + x / 2
                return [planes.luma[y * planes.lumaStride + x], planes.blue[chroma], planes.red[chroma]].map { Int($0) }
            }
            let points = [(1, 1), (3, 1), (1, 3), (3, 3)]
            let quarters = points.map { samples($0.0 * size.width / 4, $0.1 * size.height / 4) }
            let ends = [(0, 0), (size.width - 1, 0), (0, size.height - 1), (size.width - 1, size.height - 1)]
            return (quarters, ends.map { samples($0.0, $0.1)[0] })
        }
    }

    static let red = [82, 90, 240]
    static let green = [145, 54, 34]
    static let blue = [41, 240, 110]
    static func grey(_ number: UInt8) -> [Int] { [16 + Int((Double(number) * 219 / 255).rounded()), 128, 128] }

    /// Whether the quarters have those colours.
    func shows(_ colours: [[Int]]) -> Bool {
        zip(quarters, colours).allSatisfy { zip($0, $1).allSatisfy { abs($0 - $1) <= 2 } }
            && zip(corners, colours).allSatisfy { abs($0 - $1[0]) <= 2 }
    }

    func shows(_ number: UInt8) -> Bool { shows([Shot.red, Shot.green, Shot.blue, Shot.grey(number)]) }
}
