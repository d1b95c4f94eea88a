// SPDX-License-Identifier: MIT
import Loop

/// The settings and all sources that exist.
///
/// Thread: the loop's.
final class Screen {
    /// The sources of one session.
    final class Cast {
        fileprivate(set) var sources: [VideoSource] = []
        fileprivate let expected: Int
        fileprivate var ready: (() -> Void)?
        fileprivate init(expected: Int) { self.expected = expected }
    }

    /// The distance between the numbers of two streams' pictures, so that a picture tells which stream it is of.
    static let numbersPerStream: UInt32 = 10_000_000
    /// The distance from the numbers of a session that is open to those of the next one.
    private static let numbersPerSession: UInt32 = 100_000

    let knobs = Knob.all
    private(set) var settings: Settings
    private let initial: Settings
    private let pipeWire: PipeWire
    private let loop: EventLoop
    private var casts: [Cast] = []
    private var decoy: VideoSource?
    /// The last number of each stream, over all sessions.
    private var numbers: [Int: UInt32] = [:]
    private var retired: (frames: UInt64, nullDequeues: UInt64) = (0, 0)

    init(_ pipeWire: PipeWire, on loop: EventLoop, settings: Settings) {
        (self.pipeWire, self.loop, self.settings, initial) = (pipeWire, loop, settings, settings)
        pipeWire.consumers.onConsumer = { [unowned self] node in
            for source in sources + [decoy].compactMap({ $0 }) where source.node == node { source.greet() }
        }
    }

    /// All sources that a portal may have granted, in the order of their sessions.
    var sources: [VideoSource] { casts.flatMap(\.sources) }
    /// Buffers that were sent, by all sources that ever were.
    var framesProduced: UInt64 { sources.reduce(retired.frames) { $0 + $1.framesSent } }
    /// How often a picture was due and there was no buffer for it.
    var nullDequeues: UInt64 { sources.reduce(retired.nullDequeues) { $0 + $1.nullDequeues } }

    /// Makes the sources of a session.
    ///
    /// - Parameter cursorMode: what the portal asked for: 1 hidden, 2 in the pixels, 4 metadata.
    /// - Parameter ready: called when the nodes of all exist, possibly before this returns; not when the cast was closed before.
    func open(cursorMode: UInt32 = 1, _ ready: @escaping (Cast) -> Void) -> Cast {
        let cast = Cast(expected: Int(settings.streams))
        casts.append(cast)
        if settings.hasDecoy, decoy == nil {
            decoy = VideoSource(
                pipeWire, on: loop, index: 0, name: "vitrine-testdecoy", firstNumber: 4_000_000_000, cursorMode: 1, settings: settings)
        }
        cast.ready = { [unowned cast] in ready(cast) }
        for index in 0..<cast.expected {
            let first = firstNumber(index)
            guard
                let source = VideoSource(
                    pipeWire, on: loop, index: index, name: name(index), firstNumber: first, cursorMode: cursorMode, settings: settings)
            else {
                continue
            }
            source.onNode = { [unowned self, unowned cast] _ in reportIfReady(cast) }
            cast.sources.append(source)
        }
        reportIfReady(cast)
        return cast
    }

    /// Later pictures have greater numbers, also when those of an earlier session go on beside them.
    private func firstNumber(_ index: Int) -> UInt32 {
        let running = sources.filter { $0.index == index }.map { $0.number + Screen.numbersPerSession }
        return running.reduce(numbers[index] ?? UInt32(index) * Screen.numbersPerStream, max)
    }

    /// Removes a cast's nodes.
    func close(_ cast: Cast) {
        casts.removeAll { $0 === cast }
        cast.ready = nil
        for source in cast.sources { retire(source) }
        cast.sources = []
    }

    /// Removes one node.
    func remove(_ source: VideoSource) {
        for cast in casts { cast.sources.removeAll { $0 === source } }
        retire(source)
    }

    private func retire(_ source: VideoSource) {
        retired.frames += source.framesSent
        retired.nullDequeues += source.nullDequeues
        numbers[source.index] = max(source.number, numbers[source.index] ?? 0)
        // Not from within a callback of its own.
        loop.later { source.destroy() }
    }

    /// Removes all nodes.
    func closeAll() {
        for cast in casts { close(cast) }
    }

    /// Removes all nodes at once, for the end of the program. Not from within a callback of theirs.
    func shutDown() {
        for source in sources { source.destroy() }
        decoy?.destroy()
        (casts, decoy) = ([], nil)
    }

    /// Cuts the links of all nodes.
    func unlink() {
        for source in sources { if let node = source.node { pipeWire.consumers.unlink(node) } }
    }

    /// Takes the format from all nodes and those who look.
    func clearFormats() {
        for source in sources { if let node = source.node { pipeWire.consumers.clearFormats(node) } }
    }

    private func name(_ index: Int) -> String { index == 0 ? "vitrine-testscreen" : "vitrine-testscreen-\(index + 1)" }

    private func reportIfReady(_ cast: Cast) {
        guard cast.sources.count == cast.expected, cast.sources.allSatisfy({ $0.node != nil }), let ready = cast.ready else { return }
        cast.ready = nil
        ready()
    }

    // MARK: - Settings

    /// Takes new settings, and has the sources that run follow.
    ///
    /// - Returns: whether the backend's properties changed.
    @discardableResult
    func apply(_ new: Settings, _ effects: [Knob.Effect]) -> Bool {
        settings = new
        for source in sources { source.apply(new, effects) }
        return effects.contains(.announce)
    }

    /// Goes back to what the program was started with.
    func reset() { apply(initial, [.repaint, .renegotiate, .announce]) }

    /// One source's size from now on.
    func setSize(_ size: Size, of stream: Int? = nil) {
        var new = settings
        if let stream {
            while new.sizes.count <= stream { new.sizes.append(new.size) }
            new.sizes[stream] = size
        } else {
            (new.size, new.sizes) = (size, [])
        }
        apply(new, [.renegotiate])
    }
}
