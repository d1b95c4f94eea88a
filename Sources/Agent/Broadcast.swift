// SPDX-License-Identifier: MIT
import Capture
import Composition
import DBus
import Frames
import Indicator
import Loop
import Portal

/// What one start holds of the outside world: the portal's session and the capture, from the picker to the end.
///
/// ``release()`` gives all of it back, in any state. Events come to the handlers until then, never inside a call.
final class Broadcast {
    enum Event {
        case granted
        case failed(AgentError)
        case firstFrame
        /// It has not come in time.
        case firstFrameIsLate
        case changed
        case ended(End)
    }

    /// What is remembered of the choice, and where.
    struct Memory {
        let choices: RememberedChoices
        let key: ChoiceKey
        /// Whether what is remembered may be had again without a picker.
        let skipsPicker: Bool
    }

    /// One of the sources that the user has chosen.
    fileprivate struct Source {
        let stream: CastStream
        var captureID: UInt64?
        /// What PipeWire delivers; nil before the negotiation.
        var format: StreamFormat?
        var isPaused = false
    }

    /// The most sources in one picture.
    private static let greatestSourceCount = 16

    /// How long a source that was chosen may take to send its first picture.
    private static let firstFrameLimit = Duration.seconds(15)

    private static let log = Log("track")

    private let portal: ScreenCastPortal
    private let captures: Captures
    private let pool: FramePool
    private let memory: Memory
    private let makeNotice: () -> PickerNotice?
    private let checkTurn: () throws(AgentError) -> Void
    /// What is asked of the portal; the remembered choice is added when it is asked.
    private var wish = CastOptions()
    private var opening: Timer?
    private var firstFrameTimer: Timer?
    private var notice: PickerNotice?
    private let handler: (Event) -> Void
    private var cast: Cast?
    private var grant: CastGrant?
    /// What writes into the track's pool: the capture of the one source, or of all.
    private var captureID: UInt64?
    private var shared: [Source] = []
    /// Size of the picture in the pool, after the crop; nil before the negotiation.
    private(set) var pictureSize: PixelSize?
    /// Size of all that was chosen, before the crop.
    private(set) var wholeSize: PixelSize?
    /// Whether the desktop's picker is open. While it is put off others may open theirs.
    private(set) var isPicking = false

    /// - Parameters:
    ///   - notBefore: when the picker may open.
    ///   - notice: shows who asks for the picker, where the person is to be told; called when it opens.
    ///   - checkTurn: throws when somebody else's picker is open; called when one opens that was put off.
    init(
        _ options: TrackOptions, _ start: StartOptions, portal: ScreenCastPortal, captures: Captures, pool: FramePool, memory: Memory,
        notBefore: Instant, notice: @escaping () -> PickerNotice?, checkTurn: @escaping () throws(AgentError) -> Void,
        _ handler: @escaping (Event) -> Void
    ) {
        (self.portal, self.captures, self.pool, self.memory, self.handler) = (portal, captures, pool, memory, handler)
        (makeNotice, self.checkTurn) = (notice, checkTurn)
        wish.types = SourceTypes(rawValue: options.sources)
        wish.multiple = options.isMultiple
        wish.cursorMode = options.cursor
        wish.cursorModeIsRequired = options.cursorIsExplicit
        wish.parentWindow = start.parentWindow
        wish.timeout = start.timeout == 0 ? nil : .seconds(Int64(start.timeout))
        wish.persistMode = memory.key.persistence.asPersistMode
        if notBefore > .now {
            opening = captures.loop.at(notBefore) { [unowned self] in openAfterPeace() }
        } else {
            openPicker()
        }
    }

    private func openAfterPeace() {
        opening = nil
        do throws(AgentError) {
            try checkTurn()
        } catch {
            return handler(.failed(error))
        }
        openPicker()
    }

    private func openPicker() {
        isPicking = true
        notice = makeNotice()
        wish.restoreToken = memory.skipsPicker ? memory.choices.token(for: memory.key) : nil
        cast = portal.start(wish) { [weak self] event in self?.handle(event) }
    }

    /// The picker is closed, or will never open.
    private func endPicking() {
        isPicking = false
        opening?.cancel()
        opening = nil
        notice?.close()
        notice = nil
    }

    /// Begins to capture what the user has chosen.
    ///
    /// - Parameter replaced: what is captured into the same pool until the first picture of this comes.
    func capture(_ view: CaptureView, _ layout: Layout, replacing replaced: Broadcast? = nil) {
        firstFrameTimer = captures.loop.after(Broadcast.firstFrameLimit) { [unowned self] in handler(.firstFrameIsLate) }
        guard let grant else { return }
        do throws(Errno) {
            try capture(grant, view, layout, replacing: replaced?.captureID)
        } catch {
            handler(.failed(AgentError(.failed, "no thread can be had for the capture: \(error)")))
        }
    }

    private func capture(_ grant: CastGrant, _ view: CaptureView, _ layout: Layout, replacing replaced: UInt64?) throws(Errno) {
        let streams = grant.streams.prefix(Broadcast.greatestSourceCount)
        if streams.count < grant.streams.count {
            Broadcast.log.warning(
                "\(grant.streams.count) sources were chosen, of which the first \(streams.count) are shown: no more have room")
        }
        let hasCursor = grant.cursorMode == .metadata
        let handler: (CaptureEvent) -> Void = { [weak self] event in self?.handle(event) }
        if streams.count == 1, let stream = streams.first {
            let id = try captures.open(
                remote: grant.remote, node: stream.node, serial: stream.serial, pool: pool, view: view, hasCursor: hasCursor,
                replacing: replaced, handler)
            captureID = id
            shared = [Source(stream: stream, captureID: id)]
        } else if !streams.isEmpty {
            let sources = streams.map { stream in
                Captures.Source(node: stream.node, serial: stream.serial, expectedSize: stream.logicalSize.map(PixelSize.init))
            }
            let (picture, ids) = try captures.compose(
                remote: grant.remote, sources, pool: pool, view: view, layout: layout, hasCursor: hasCursor, replacing: replaced, handler)
            captureID = picture
            shared = zip(streams, ids).map { Source(stream: $0.0, captureID: $0.1) }
        }
    }

    /// Stops capturing. Of the portal's session more may come.
    func stopCapturing() {
        if let captureID { captures.close(captureID) }
        captureID = nil
    }

    /// Stops capturing, closes the portal session or the picker. Nothing comes any more.
    func release() {
        endPicking()
        firstFrameTimer?.cancel()
        stopCapturing()
        cast?.close()
        cast = nil
    }

    private func handle(_ event: CastEvent) {
        guard cast != nil else { return }
        switch event {
        case .pickerOpened: break
        case .granted(let grant):
            self.grant = grant
            endPicking()
            memory.choices.replace(grant.restoreToken, for: memory.key)
            handler(.granted)
        case .cancelled: handler(.failed(AgentError(.cancelled, "the picker was closed without a choice")))
        case .failed(let error): handler(.failed(error.asAgentError))
        case .closed: handler(.ended(End(cause: .endedByDesktop, detail: "the desktop ended the share")))
        case .portalLost: handler(.ended(End(cause: .portalLost, detail: "the desktop portal has left the bus: start again")))
        }
    }

    private func handle(_ event: CaptureEvent) {
        switch event {
        case .formatChanged(let id, let new):
            change(id) { $0.format = new }
            if id == captureID { (pictureSize, wholeSize) = (new.size, new.sourceSize) }
            handler(.changed)
        case .composed(_, let size, let whole):
            (pictureSize, wholeSize) = (size, whole)
            handler(.changed)
        case .firstFrame(let id):
            // That of a source of several is not in the picture yet.
            guard id == captureID else { return }
            firstFrameTimer?.cancel()
            handler(.firstFrame)
        case .paused(let id):
            change(id) { $0.isPaused = true }
            handler(.changed)
        case .resumed(let id):
            change(id) { $0.isPaused = false }
            handler(.changed)
        case .sourceRemoved(let id):
            lose(id, End(cause: .sourceRemoved, detail: "the shared screen or window is gone"))
        case .disconnected:
            handler(.ended(End(cause: .pipewireLost, detail: "PipeWire has ended: see that it runs, then start again")))
        case .failed(_, .cannotConnect(let number)):
            handler(.ended(End(cause: .pipewireLost, detail: CaptureError.cannotConnect(number).description)))
        case .failed(let id, let error):
            lose(id, End(cause: .failed, detail: error.description))
        case .viewChanged, .closed: break
        }
    }

    private func change(_ id: UInt64, _ body: (inout Source) -> Void) {
        if let index = shared.firstIndex(where: { $0.captureID == id }) { body(&shared[index]) }
    }

    /// A source is gone: it is taken out of the picture, of which it was not the last.
    private func lose(_ id: UInt64, _ end: End) {
        guard shared.count > 1, let index = shared.firstIndex(where: { $0.captureID == id }) else { return handler(.ended(end)) }
        Broadcast.log.info("a source of several has ended", ["detail": end.detail, "left": "\(shared.count - 1)"])
        shared.remove(at: index)
        captures.close(id)
        handler(.changed)
    }

    /// Whether nothing is sent for a while, by any source: one that has never sent anything does not count.
    var isPaused: Bool {
        let started = shared.filter { $0.isPaused || $0.format != nil }
        return !started.isEmpty && started.allSatisfy(\.isPaused)
    }

    /// What is shared, in a word for people.
    var sourceName: String {
        if shared.count > 1 { return "\(shared.count) sources" }
        return switch shared.first?.stream.sourceType {
        case .monitor?: "Monitor"
        case .window?: "Window"
        case .virtual?: "Virtual monitor"
        default: "Screen"
        }
    }

    /// `Sources` of the contract.
    var sources: [Value] { shared.map(\.asValue) }
}

extension Broadcast.Source {
    /// What the portal did not say is absent.
    fileprivate var asValue: Value {
        var source: [String: Value] = ["node": .uint32(stream.node)]
        if let type = stream.sourceType { source["type"] = .uint32(type.rawValue) }
        if let id = stream.id { source["id"] = .string(id) }
        if let serial = stream.serial { source["serial"] = .uint64(serial) }
        if let position = stream.position { source["position"] = .structure([.int32(position.x), .int32(position.y)]) }
        if let size = stream.logicalSize { source["logical-size"] = .structure([.int32(size.width), .int32(size.height)]) }
        if let format {
            source["pixel-size"] = format.sourceSize.asValue
            source["format"] = .string(format.pixelFormat.name)
            source["stride"] = .uint32(UInt32(clamping: format.strideBytes))
        }
        return .options(source)
    }
}

extension PixelSize {
    fileprivate init(_ size: CastStream.LogicalSize) { self.init(width: Int(size.width), height: Int(size.height)) }
}

extension Persistence {
    fileprivate var asPersistMode: PersistMode {
        switch self {
        case .none: .none
        case .session: .session
        case .forever: .forever
        }
    }
}

extension PortalError {
    /// The error of the contract that a caller gets.
    fileprivate var asAgentError: AgentError {
        switch self {
        case .noPortal, .noScreenCast, .unresponsive: AgentError(.portalUnavailable, description)
        // A portal whose backend is missing has nothing to offer, whatever was asked for.
        case .noSuchSource(_, let available) where available.isEmpty: AgentError(.portalUnavailable, description)
        case .noSuchSource, .cursorModeUnavailable: AgentError(.unsupported, description)
        case .timedOut: AgentError(.timedOut, description)
        // The portal connects to PipeWire in this step, and does nothing else.
        case .refused(.openRemote, _, _): AgentError(.pipewireUnavailable, "\(description): see that PipeWire runs, then start again")
        case .refused, .ended, .malformed, .disconnected: AgentError(.failed, description)
        }
    }
}
