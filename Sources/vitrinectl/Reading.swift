// SPDX-License-Identifier: MIT
import DBus
import Loop

/// A subscription of a track, its stream, and what is told of the track meanwhile. Words go to standard error.
final class Reading {
    let stream: FileDescriptor
    /// Why the last broadcast ended; nil when none has ended since.
    private(set) var end: Reason?
    private(set) var agentLeft = false
    /// Called for each event of the track.
    var onEvent: ((TrackEvent) -> Void)?
    /// The track's present view; nil while the agent does not run.
    var track: Track? { observer.track }

    private let agent: Agent
    private let subscription: ObjectPath
    private let observer: TrackObserver
    private var context: Context { agent.context }

    /// Subscribes.
    ///
    /// - Parameter options: those of `Subscribe`.
    init(_ agent: Agent, _ track: ObjectPath, _ options: [String: Value]) throws(Failure) {
        self.agent = agent
        let answer = try agent.call(track, Agent.trackInterface, "Subscribe", [.options(options)])
        guard answer.count == 2, let subscription = answer[0].asObjectPath, let stream = answer[1].asDescriptor else {
            throw .ended(.failed, "the agent's answer to Subscribe is not a subscription and a stream")
        }
        (self.subscription, self.stream) = (subscription, stream)
        observer = TrackObserver(agent, track)
        observer.onEvent = { [unowned self] in take($0) }
        try observer.start()
    }

    deinit { observer.stop() }

    private func take(_ event: TrackEvent) {
        switch event {
        case .started: end = nil
        case .finished(let reason, let detail): end = Reason(name: reason, detail: detail)
        case .agentLeft: agentLeft = true
        default: break
        }
        onEvent?(event)
    }

    /// Calls a method of the subscription for what it may bring: that it is gone already, or muted, is nothing to tell.
    func tell(_ member: MemberName) {
        let call = Agent.method(subscription, Agent.subscriptionInterface, member, starting: false)
        agent.connection.call(call, timeout: .seconds(10)) { _ in }
    }

    /// Waits for the first picture, and says so where it does not come at once.
    ///
    /// - Parameters:
    ///   - limit: the longest time to wait; nil is for ever.
    ///   - nothing: what to say of the work that did not begin.
    func awaitPicture(until hasBegun: () -> Bool, orOver isOver: () -> Bool, limit: Duration?, nothing: String) throws(Failure) {
        // One that is there is not worth a word.
        _ = context.loop.run(until: { hasBegun() || isOver() }, timeout: .milliseconds(500))
        if !hasBegun(), !isOver() {
            context.err.line(waitingWords)
        }
        let outcome = context.wait(until: { hasBegun() || isOver() || agentLeft }, timeout: limit)
        if hasBegun() { return }
        if agentLeft { throw .ended(.unavailable, "the agent went away before the first picture; \(nothing)") }
        switch outcome {
        case .held: throw .ended(.failed, "the stream was ended before the first picture; \(nothing)")
        case .interrupted: throw .ended(.cancelled, "ended before the first picture; \(nothing)")
        case .timedOut:
            throw .ended(
                .timedOut,
                "no picture came in time; \(nothing). 'vitrinectl status' says whether something is shared, and whether it is muted")
        case .disconnected: throw Failure(.disconnected)
        }
    }

    private var waitingWords: String {
        guard let track, track.isActive else {
            return "Waiting: nothing is shared yet (\(track?.state ?? "idle")). 'vitrinectl share' starts a share, Ctrl-C ends the waiting."
        }
        guard track.isMuted else { return "Waiting for the first picture. Ctrl-C ends it." }
        let remedy = track.path == Agent.desktopTrack ? "'vitrinectl mute off' shows it" : "its program can show it"
        return "Waiting: the share is muted, and this begins with the first picture of the screen. \(remedy), Ctrl-C ends the waiting."
    }

    /// Says why a stream has ended that nobody here asked to end.
    ///
    /// - Returns: the exit code that goes with it.
    func explainEnd(agentGone: String) -> ExitCode {
        // The stream's end comes before the words that explain it.
        _ = context.wait(until: { end != nil || agentLeft }, timeout: .seconds(1))
        if let end {
            context.err.line(end.sentence)
            return end.exitCode
        }
        context.err.line(agentLeft ? agentGone : "The stream was ended.")
        return agentLeft ? .unavailable : .done
    }
}
