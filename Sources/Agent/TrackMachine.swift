// SPDX-License-Identifier: MIT
import Contract

/// What may end a broadcast, the strongest first: when several meet, the first of them is the reason.
enum EndCause: Int, Comparable, CaseIterable, Sendable {
    /// A client stopped it.
    case stopped
    /// The agent leaves.
    case agentExit
    /// The owner left the bus.
    case ownerLeft
    /// The portal left the bus, and its sessions with it.
    case portalLost
    /// PipeWire ended.
    case pipewireLost
    /// The portal closed the session: the user stopped it in the desktop's own indicator, or the source is gone.
    case endedByDesktop
    /// The PipeWire node is gone.
    case sourceRemoved
    /// Any other fault of the capture.
    case failed

    /// The reason in `BroadcastFinished`.
    var reason: String {
        switch self {
        case .stopped: "stopped"
        case .agentExit: "agent-exit"
        case .ownerLeft: "owner-left"
        case .portalLost: "portal-lost"
        case .pipewireLost: "pipewire-lost"
        case .endedByDesktop: "ended-by-desktop"
        case .sourceRemoved: "source-removed"
        case .failed: "failed"
        }
    }

    /// Whether a stronger cause may be on its way: what a compositor or a daemon tears down, it tears down in any order.
    ///
    /// Milliseconds that the end waits for it; nil is not at all.
    var settleMilliseconds: Int64? {
        switch self {
        case .stopped, .agentExit, .ownerLeft, .portalLost: nil
        case .pipewireLost, .endedByDesktop: 200
        case .sourceRemoved, .failed: 500
        }
    }

    /// Whether nobody meant it to end.
    var isFault: Bool {
        switch self {
        case .stopped, .agentExit, .ownerLeft, .endedByDesktop: false
        case .portalLost, .pipewireLost, .sourceRemoved, .failed: true
        }
    }

    static func < (left: EndCause, right: EndCause) -> Bool { left.rawValue < right.rawValue }
}

/// An end, with its words for people.
struct End: Equatable, Sendable {
    let cause: EndCause
    let detail: String
}

/// The states of a track (idle, listening, choosing, active) without any input or output.
///
/// Events come in as method calls and actions go out, for ``Track`` to execute in order. What belongs to a start carries its
/// generation: events of an earlier one are ignored. A switch to another source is a start of its own beside the broadcast that runs; when
/// its first frame comes, its generation is the broadcast's.
struct TrackMachine: Sendable {
    /// `idle` goes to `listening`; `listening` to `choosing` or `idle`; `choosing` to `active` or `listening`; `active` to `listening`.
    enum State: Equatable, Sendable {
        case idle
        case listening
        /// The picker is open, or, once the user has chosen, the first frame is awaited.
        case choosing(granted: Bool)
        /// Frames flow; with an end, it is over, and only the reason is not settled.
        case active(ending: End?)
    }

    enum Action: Equatable, Sendable {
        /// Start the portal flow of this generation.
        case openPicker(UInt64)
        /// The user has chosen: capture, and call ``firstFrameIsLate(_:)`` in 15 s.
        case capture(UInt64)
        /// Release the source that was captured so far; the one of the switch takes its place.
        case replace
        /// Release what there is of the switch.
        case releaseSwitch
        /// Stop capturing; the portal's session is still listened to, for a stronger cause.
        case stopCapturing
        /// Stop capturing and close the portal session, whatever there is of either.
        case release
        /// Call ``settled(_:)`` in so many milliseconds.
        case settle(UInt64, milliseconds: Int64)
        /// Tell everybody: the state has changed, and this is why.
        case announce(Announcement)
    }

    enum Announcement: Equatable, Sendable {
        case changed
        case started
        case finished(End)
        case startFailed(AgentError)
        /// Another source is shown.
        case switched
        /// A switch came to nothing; the broadcast is as it was.
        case switchFailed(AgentError)
    }

    /// A switch that is under way.
    private struct Switch: Equatable {
        let generation: UInt64
        /// The user has chosen, and the first frame is awaited.
        var isGranted = false
    }

    private(set) var state: State = .idle
    /// Of the present or last broadcast.
    private(set) var generation: UInt64 = 0
    /// Counts the starts.
    private var lastGeneration: UInt64 = 0
    /// Only in ``State/active(ending:)``, and not while that ends.
    private var pending: Switch?
    /// Why a start is over of which only the reason is not settled; in ``State/choosing(granted:)`` alone.
    private var failing: End?

    var isCapturing: Bool { state != .idle }

    var isActive: Bool {
        if case .active = state { return true }
        return false
    }

    var isChoosing: Bool {
        if case .choosing = state { return true }
        return false
    }

    /// Whether another source is being chosen for a broadcast that runs.
    var isSwitching: Bool { pending != nil }

    /// The name of the state in the contract.
    var name: String {
        switch state {
        case .idle: "idle"
        case .listening: "listening"
        case .choosing: "choosing"
        case .active: "active"
        }
    }

    mutating func startCapture() -> [Action] {
        guard state == .idle else { return [] }
        state = .listening
        return [.announce(.changed)]
    }

    /// Only from `listening`; any other state is the caller's error.
    mutating func startBroadcast() throws(AgentError) -> [Action] {
        switch state {
        case .idle:
            throw AgentError(.notListening, "the track does not capture yet: call StartCapture first")
        case .choosing:
            throw AgentError(.busy, "the picker of this track is open already: wait for it, or call StopBroadcast")
        case .active:
            throw AgentError(.busy, "the track is being broadcast already: call StopBroadcast first")
        case .listening:
            lastGeneration += 1
            generation = lastGeneration
            (state, failing) = (.choosing(granted: false), nil)
            return [.announce(.changed), .openPicker(generation)]
        }
    }

    /// Chooses another source, while the present one goes on. Only while one is broadcast; anything else is the caller's error.
    mutating func switchSource() throws(AgentError) -> [Action] {
        guard state == .active(ending: nil) else {
            throw AgentError(.notActive, "nothing is being broadcast: call StartBroadcast to choose a source")
        }
        guard pending == nil else {
            throw AgentError(.busy, "another source is being chosen already: wait for it, or call StopBroadcast")
        }
        lastGeneration += 1
        pending = Switch(generation: lastGeneration)
        return [.announce(.changed), .openPicker(lastGeneration)]
    }

    /// The user has chosen.
    mutating func granted(_ start: UInt64) -> [Action] {
        if pending == Switch(generation: start) {
            pending?.isGranted = true
            return [.capture(start)]
        }
        guard start == generation, state == .choosing(granted: false) else { return [] }
        state = .choosing(granted: true)
        return [.capture(start)]
    }

    /// The first frame is here.
    mutating func firstFrame(_ start: UInt64) -> [Action] {
        if pending == Switch(generation: start, isGranted: true) {
            (pending, generation) = (nil, start)
            return [.replace, .announce(.switched)]
        }
        guard start == generation, state == .choosing(granted: true), failing == nil else { return [] }
        state = .active(ending: nil)
        return [.announce(.started)]
    }

    /// The start came to nothing.
    mutating func startFailed(_ start: UInt64, _ error: AgentError) -> [Action] {
        if start == pending?.generation { return endSwitch(error) }
        guard start == generation, isChoosing else { return [] }
        state = .listening
        return [.release, .announce(.startFailed(error))]
    }

    /// The first frame has not come in time.
    mutating func firstFrameIsLate(_ start: UInt64) -> [Action] {
        startFailed(start, AgentError(.timedOut, "the chosen source sent no picture within 15 s: choose another one, or try again"))
    }

    /// Something ended what this start began.
    mutating func ended(_ start: UInt64, _ end: End) -> [Action] {
        if start == pending?.generation { return endSwitch(end.asError) }
        guard start == generation else { return [] }
        switch state {
        case .idle, .listening: return []
        case .choosing:
            // A source that goes may have gone with its session, which is told just after.
            if end.cause == .sourceRemoved, let wait = end.cause.settleMilliseconds {
                defer { failing = end }
                return failing == nil ? [.settle(start, milliseconds: wait)] : []
            }
            return startFailed(start, end.asError)
        case .active(let earlier):
            if let earlier, earlier.cause <= end.cause { return [] }
            let ends = endSwitch(AgentError(.cancelled, "the broadcast ended while another source was chosen: \(end.detail)"))
            guard let wait = end.cause.settleMilliseconds else { return ends + finish(end) }
            state = .active(ending: end)
            // The first timer to fire settles it. Frames that a desktop still sends after it ended the share are nobody's; where the capture
            // itself told of the end it has stopped already, and may yet tell of a stronger cause.
            return ends + (end.cause == .endedByDesktop ? [.stopCapturing] : []) + [.settle(start, milliseconds: wait)]
        }
    }

    /// No stronger cause came.
    mutating func settled(_ start: UInt64) -> [Action] {
        guard start == generation else { return [] }
        if isChoosing, let failing { return startFailed(start, failing.asError) }
        guard case .active(let end?) = state else { return [] }
        return finish(end)
    }

    /// Ends what there is of a broadcast, for a reason of our own.
    mutating func stopBroadcast(_ end: End) -> [Action] { ended(generation, end) }

    /// From `listening` to `idle`. A broadcast is stopped first, by ``stopBroadcast(_:)``.
    mutating func stopCapture() -> [Action] {
        guard state == .listening else { return [] }
        state = .idle
        return [.announce(.changed)]
    }

    /// A switch, if there is one, came to nothing.
    private mutating func endSwitch(_ error: AgentError) -> [Action] {
        guard pending != nil else { return [] }
        pending = nil
        return [.releaseSwitch, .announce(.switchFailed(error))]
    }

    private mutating func finish(_ end: End) -> [Action] {
        state = .listening
        return [.release, .announce(.finished(end))]
    }
}

extension End {
    /// What an end is as an error: to a start that has not brought a frame yet, and in `LastError`.
    var asError: AgentError {
        switch cause {
        case .stopped, .agentExit, .ownerLeft, .endedByDesktop: AgentError(.cancelled, detail)
        case .portalLost: AgentError(.portalUnavailable, detail)
        case .pipewireLost: AgentError(.pipewireUnavailable, detail)
        case .sourceRemoved, .failed: AgentError(.failed, detail)
        }
    }
}
