// SPDX-License-Identifier: MIT
import DBus
import Loop

/// What happens to a track, in the order in which the agent told it.
enum TrackEvent: Equatable {
    /// Properties have new values; ``TrackObserver/track`` has them already.
    case changed
    case started
    case finished(reason: String, detail: String)
    case startFailed(name: String, detail: String)
    case presetTooHigh(String)
    /// The agent is on the bus again, or for the first time. The track was read anew.
    case agentCame
    case agentLeft
}

/// Follows one track by its signals.
final class TrackObserver {
    private static let isBroadcastActive = "IsBroadcastActive"

    private let agent: Agent
    private let path: ObjectPath
    private var subscriptions: [Subscription] = []
    private var isReading = false

    /// The track's present view; nil while the agent does not run, or while it has not answered yet.
    private(set) var track: Track?
    /// Whether the agent broadcasts on any track.
    private(set) var isAnythingShared = false
    /// Whether ``isAnythingShared`` holds at present: an end of this track is told before the agent says whether others still share.
    private(set) var isSureOfOthers = false
    /// What shares of the desktop track start with, once that has changed: the agent reads it anew for each.
    private(set) var settings: [String: Value]?
    /// The agent's unique name; nil while it does not run.
    private(set) var owner: BusName?
    /// Called for each event.
    var onEvent: ((TrackEvent) -> Void)?

    init(_ agent: Agent, _ path: ObjectPath) { (self.agent, self.path) = (agent, path) }

    /// Subscribes and reads the track, without starting the agent. Returns when both are done.
    func start() throws(Failure) {
        var confirmed = 0
        var failure: DBusError?
        var knowsOwner = false
        let ready = { (error: DBusError?) in
            confirmed += 1
            failure = failure ?? error
        }
        let rules = [
            MatchRule(sender: Agent.name, path: path, interface: Agent.properties, member: "PropertiesChanged"),
            MatchRule(sender: Agent.name, path: path, interface: Agent.trackInterface),
            MatchRule(sender: Agent.name, path: Agent.path, interface: Agent.properties, member: "PropertiesChanged"),
        ]
        for rule in rules {
            subscriptions.append(agent.connection.subscribe(rule, { [unowned self] signal in take(signal) }, ready: ready))
        }
        subscriptions.append(
            agent.connection.watchName(Agent.name) { [unowned self] newOwner in
                knowsOwner = true
                ownerChanged(newOwner)
            })
        let outcome: Context.Outcome = agent.context.wait(
            until: { confirmed == rules.count && knowsOwner && !self.isReading }, timeout: .seconds(30))
        if let failure { throw Failure(failure) }
        if outcome != .held { throw Failure(outcome) }
    }

    /// Ends the subscriptions.
    func stop() {
        for subscription in subscriptions { subscription.cancel() }
        subscriptions = []
    }

    private func ownerChanged(_ newOwner: BusName?) {
        guard newOwner != owner else { return }
        if owner != nil {
            (track, isAnythingShared, isSureOfOthers) = (nil, false, false)
            onEvent?(.agentLeft)
        }
        owner = newOwner
        if newOwner != nil { read() }
    }

    /// Signals that come before the answer are older than what it says.
    private func read() {
        isReading = true
        // The answers come in the order of the calls.
        askForOthers()
        let call = Agent.method(path, Agent.properties, "GetAll", [.string(Agent.trackInterface.text)], starting: false)
        agent.connection.call(call) { [weak self] result in
            guard let self else { return }
            isReading = false
            guard case .success(let values) = result, let properties = values.first?.asOptions else { return }
            track = Track(path: path, properties: properties)
            onEvent?(.agentCame)
        }
    }

    private func askForOthers() {
        let call = Agent.method(
            Agent.path, Agent.properties, "Get", [.string(Agent.interface.text), .string(TrackObserver.isBroadcastActive)], starting: false)
        agent.connection.call(call) { [weak self] result in
            guard let self, case .success(let values) = result, case .variant(let value)? = values.first else { return }
            noteOthers(value.asBool ?? false)
        }
    }

    private func noteOthers(_ isAnythingShared: Bool) {
        let isNews = isAnythingShared != self.isAnythingShared || isAnythingShared && !isSureOfOthers
        (self.isAnythingShared, isSureOfOthers) = (isAnythingShared, true)
        if isNews, track != nil { onEvent?(.changed) }
    }

    private func take(_ signal: Signal) {
        let words = signal.arguments.map { $0.asString ?? "" }
        switch (signal.interface, signal.member) {
        case (Agent.properties, _):
            guard signal.arguments.count >= 2, let changed = signal.arguments[1].asOptions else { return }
            if signal.path == Agent.path, words[0] == Agent.interface.text {
                settings = changed["DefaultOptions"]?.asOptions ?? settings
                if let value = changed[TrackObserver.isBroadcastActive]?.asBool { noteOthers(value) }
                return
            }
            guard signal.path == path, words[0] == Agent.trackInterface.text else { return }
            guard track != nil else { return }
            track?.apply(changed)
            if changed[TrackObserver.isBroadcastActive]?.asBool == false {
                isSureOfOthers = false
                askForOthers()
            }
            onEvent?(.changed)
        case (Agent.trackInterface, "BroadcastStarted"): onEvent?(.started)
        case (Agent.trackInterface, "BroadcastFinished") where words.count == 2:
            onEvent?(.finished(reason: words[0], detail: words[1]))
        case (Agent.trackInterface, "StartFailed") where words.count == 2: onEvent?(.startFailed(name: words[0], detail: words[1]))
        case (Agent.trackInterface, "PresetTooHigh") where words.count == 1: onEvent?(.presetTooHigh(words[0]))
        default: break
        }
    }
}
