// SPDX-License-Identifier: MIT
import Capture
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

    /// How long a source that was chosen may take to send its first picture.
    private static let firstFrameLimit = Duration.seconds(15)

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
    private var captureID: UInt64?
    private var grant: CastGrant?
    /// What PipeWire delivers; nil before the negotiation.
    private(set) var format: StreamFormat?
    private(set) var isPaused = false
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
    func capture(_ view: CaptureView, replacing replaced: Broadcast? = nil) {
        firstFrameTimer = captures.loop.after(Broadcast.firstFrameLimit) { [unowned self] in handler(.firstFrameIsLate) }
        guard let grant, let stream = grant.streams.first else { return }
        do throws(Errno) {
            captureID = try captures.open(
                remote: grant.remote, node: stream.node, serial: stream.serial, pool: pool, view: view,
                hasCursor: grant.cursorMode == .metadata, replacing: replaced?.captureID
            ) { [weak self] event in self?.handle(event) }
        } catch {
            handler(.failed(AgentError(.failed, "no thread can be had for the capture: \(error)")))
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
        case .formatChanged(_, let new):
            format = new
            handler(.changed)
        case .firstFrame:
            firstFrameTimer?.cancel()
            handler(.firstFrame)
        case .paused:
            isPaused = true
            handler(.changed)
        case .resumed:
            isPaused = false
            handler(.changed)
        case .sourceRemoved:
            handler(.ended(End(cause: .sourceRemoved, detail: "the shared screen or window is gone")))
        case .disconnected:
            handler(.ended(End(cause: .pipewireLost, detail: "PipeWire has ended: see that it runs, then start again")))
        case .failed(_, .cannotConnect(let number)):
            handler(.ended(End(cause: .pipewireLost, detail: CaptureError.cannotConnect(number).description)))
        case .failed(_, let error):
            handler(.ended(End(cause: .failed, detail: error.description)))
        case .viewChanged, .closed: break
        }
    }

    /// What is shared, in a word for people.
    var sourceName: String {
        switch grant?.streams.first?.sourceType {
        case .monitor?: "Monitor"
        case .window?: "Window"
        case .virtual?: "Virtual monitor"
        default: "Screen"
        }
    }

    /// `Sources` of the contract: what the portal did not say is absent.
    var sources: [Value] {
        guard let stream = grant?.streams.first else { return [] }
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
        return [.options(source)]
    }
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
