// SPDX-License-Identifier: MIT
import Contract
import DBus
import Encoding
import Frames
import Indicator
import Loop
import Sound
import Streams

/// One share: its options, its state, its portal session, its subscriptions.
///
/// The states are ``TrackMachine``'s; this class executes the actions, and keeps the order of a transition: the streams' end, the
/// track's `PropertiesChanged`, the agent's, the signal, the replies. While an end waits for its streams, whatever else would change
/// the track waits too (``whenSettled(_:)``).
final class Track {
    let path: ObjectPath
    unowned let agent: Agent
    let streams: TrackStreams
    let isDesktopTrack: Bool
    let log = Log("track")

    var options: TrackOptions
    /// The client that owns the track; nil when nobody does.
    var owner: BusName?
    /// Kept when the owner has left.
    var ownerIdentity: Identity?
    var isMuted = false
    private(set) var machine = TrackMachine()
    private(set) var broadcast: Broadcast?
    /// What is to take the broadcast's place, while another source is chosen.
    private var replacement: Broadcast?
    private(set) var startedAt: UInt64 = 0
    /// Who started the broadcast that is active, or the last one.
    private var sharedBy: Identity?
    private(set) var lastError: (name: String, message: String) = ("", "")
    private(set) var subscriptions: [TrackSubscription] = []
    private(set) var isGone = false

    let pool = FramePool()
    private(set) lazy var object = makeObject()
    private var pace: Pace?
    /// What takes the sound while somebody is to hear it, and what keeps from the readers what was not meant for them.
    private var sound: SoundService.FeedID?
    private let soundGate = SoundGate()
    /// How often it was stopped: a start that came before and still waits to begin is over then.
    private(set) var stops = 0
    private var lastSubscription: UInt64 = 0
    private var start = StartInProgress()
    private var isSettling = false
    private var settled: [() -> Void] = []

    /// Who asks for a start.
    struct Starter {
        let client: BusName
        let identity: Identity
    }

    /// What belongs to the start that is under way, or to the switch: there is at most one of either.
    private struct StartInProgress {
        var options: StartOptions?
        var starter: Starter?
        /// Those who wait for frames or for the error.
        var waiters: [(AgentError?) -> Void] = []
    }

    init(_ path: ObjectPath, _ options: TrackOptions, owner: BusName?, _ identity: Identity?, agent: Agent, isDesktopTrack: Bool = false) {
        (self.path, self.options, self.agent, self.isDesktopTrack) = (path, options, agent, isDesktopTrack)
        (self.owner, ownerIdentity) = (owner, identity)
        streams = agent.streams.openTrack(pool: pool, rates: options.asRates, precedence: Track.precedence(identity, isDesktopTrack))
        streams.hasSound = options.audio != .none
        streams.onSoundWanted = { [weak self] in self?.updateSound() }
        _ = object
        watchAllowed()
    }

    /// The track that everybody may read has its encodings, whatever other tracks take; programs in a sandbox keep nobody out.
    private static func precedence(_ owner: Identity?, _ isDesktopTrack: Bool) -> Streams.Precedence {
        if isDesktopTrack { return .first }
        return owner?.isSandboxed ?? false ? .last : .usual
    }

    var isActive: Bool { machine.isActive }
    /// Whether it is as it was when the agent began.
    var isFresh: Bool {
        !machine.isCapturing && subscriptions.isEmpty && !isMuted && lastError.name.isEmpty && options == agent.defaults
    }
    var isPicking: Bool { broadcast?.isPicking ?? false || replacement?.isPicking ?? false }

    // MARK: - Starting and stopping

    func startCapture() { perform(machine.startCapture()) }

    /// Opens the picker.
    ///
    /// - Parameter waiter: called when frames flow, or with the error; nil for a caller that does not wait.
    func startBroadcast(_ start: StartOptions, by starter: Starter, _ waiter: ((AgentError?) -> Void)?) throws(AgentError) {
        if !machine.isChoosing, machine.isCapturing, !machine.isActive { try agent.checkNoPickerIsOpen() }
        begin(try machine.startBroadcast(), start, starter, waiter)
    }

    /// Opens the picker for another source; the present one goes on until that one delivers.
    ///
    /// - Parameter waiter: called when it is shown, or with the error; nil for a caller that does not wait.
    func switchSource(_ start: StartOptions, by starter: Starter, _ waiter: ((AgentError?) -> Void)?) throws(AgentError) {
        if machine.isActive, !machine.isSwitching { try agent.checkNoPickerIsOpen() }
        begin(try machine.switchSource(), start, starter, waiter)
    }

    private func begin(
        _ actions: [TrackMachine.Action], _ start: StartOptions, _ starter: Starter, _ waiter: ((AgentError?) -> Void)?
    ) {
        self.start = StartInProgress(options: start, starter: starter, waiters: waiter.map { [$0] } ?? [])
        lastError = ("", "")
        perform(actions)
    }

    /// Waits for the outcome of the start that is under way.
    ///
    /// - Parameter seconds: the longest wait, which then ends with `TimedOut`; the start goes on. 0 is for ever.
    func joinStart(_ waiter: @escaping (AgentError?) -> Void, atMost seconds: UInt32) {
        guard seconds > 0 else { return start.waiters.append(waiter) }
        var waiting: ((AgentError?) -> Void)? = waiter
        let answer = { (error: AgentError?) in
            waiting?(error)
            waiting = nil
        }
        let timer = agent.loop.after(.seconds(Int64(seconds))) {
            answer(AgentError(.timedOut, "nobody has chosen within \(seconds) s: the picker stays open for who opened it"))
        }
        start.waiters.append { error in
            timer.cancel()
            answer(error)
        }
    }

    func stopBroadcast(_ end: End) {
        stops += 1
        perform(machine.stopBroadcast(end))
    }

    /// Ends a broadcast or closes the picker, then stops capturing; `completion` comes when all is announced.
    func stopCapture(_ end: End, _ completion: @escaping () -> Void = {}) {
        stopBroadcast(end)
        whenSettled { [self] in
            perform(machine.stopCapture())
            completion()
            agent.removeIfAbandoned(self)
        }
    }

    /// Ends everything that hangs on the track, and takes it off the bus.
    func destroy(_ end: End, _ completion: @escaping () -> Void = {}) {
        stopBroadcast(end)
        whenSettled { [self] in
            guard !isGone else { return completion() }
            isSettling = true
            streams.close { [self] in
                perform(machine.stopCapture())
                isGone = true
                object.remove()
                agent.forget(self)
                settle()
                completion()
            }
        }
    }

    /// Runs `body` now, or as soon as the transition that is under way is announced.
    func whenSettled(_ body: @escaping () -> Void) {
        if isSettling { settled.append(body) } else { body() }
    }

    private func settle() {
        isSettling = false
        while !isSettling, !settled.isEmpty { settled.removeFirst()() }
    }

    // MARK: - Executing the machine's actions

    private func perform(_ actions: [TrackMachine.Action]) {
        for action in actions {
            switch action {
            case .openPicker(let generation): openPicker(generation)
            case .capture: capture()
            case .stopCapturing: broadcast?.stopCapturing()
            case .replace:
                // The desktop's indicator for the old one goes out now.
                broadcast?.release()
                (broadcast, replacement) = (replacement, nil)
            case .releaseSwitch:
                replacement?.release()
                replacement = nil
            case .release: release()
            case .settle(let generation, let milliseconds):
                agent.loop.after(.milliseconds(milliseconds)) { [weak self] in
                    guard let self else { return }
                    perform(machine.settled(generation))
                }
            case .announce(let announcement): announce(announcement)
            }
        }
    }

    private func openPicker(_ generation: UInt64) {
        guard let start = start.options, let starter = self.start.starter else { return }
        let who: LogFields = ["by": starter.identity.name, "owner": ownerIdentity?.name ?? "-", "title": options.title]
        log.info("the picker is asked for", of: path.text, who)
        agent.askForScreenLock()
        let memory = Broadcast.Memory(choices: agent.choices, key: choiceKey(of: starter), skipsPicker: !machine.isSwitching)
        let (title, isUnexpected) = (options.title, starter.identity.isSandboxed || !isOwn(starter))
        let opened = Broadcast(
            options, start, portal: agent.portal, captures: agent.captures, pool: pool, memory: memory,
            notBefore: agent.endOfPeace(for: starter.identity),
            notice: { [agent] in isUnexpected ? agent.makeNotice(starter.identity, title: title) : nil },
            checkTurn: { [agent] () throws(AgentError) in try agent.checkNoPickerIsOpen() }
        ) { [weak self] event in self?.handle(event, generation) }
        if machine.isSwitching { replacement = opened } else { broadcast = opened }
    }

    /// Whether who starts is who the track is for. The desktop track is for every program outside of a sandbox.
    private func isOwn(_ starter: Starter) -> Bool { isDesktopTrack || starter.client == owner }

    /// Which remembered choice a start may use: none that is not the starter's own.
    private func choiceKey(of starter: Starter) -> ChoiceKey {
        let mayRemember = isOwn(starter) && (options.persistence != .forever || starter.identity.isVerified)
        return ChoiceKey(
            persistence: mayRemember ? options.persistence : .none, client: starter.client, identity: starter.identity.name,
            name: options.restoreKey)
    }

    private func handle(_ event: Broadcast.Event, _ generation: UInt64) {
        switch event {
        case .granted: perform(machine.granted(generation))
        case .failed(let error):
            if error.name == .cancelled, let starter = start.starter { agent.noteCancel(by: starter.identity) }
            perform(machine.startFailed(generation, error))
        case .firstFrame: perform(machine.firstFrame(generation))
        case .firstFrameIsLate: perform(machine.firstFrameIsLate(generation))
        case .ended(let end): perform(machine.ended(generation, end))
        case .changed: publish()
        }
    }

    private func capture() {
        if machine.isSwitching {
            replacement?.capture(options.view, options.layout, replacing: broadcast)
        } else {
            broadcast?.capture(options.view, options.layout)
        }
    }

    private func release() {
        broadcast?.release()
        pace = nil
    }

    private func announce(_ announcement: TrackMachine.Announcement) {
        switch announcement {
        case .changed:
            publish()
        case .started:
            startedAt = wallClockMicroseconds()
            sharedBy = start.starter?.identity
            updateHiding()
            pace = Pace(self)
            log.info("broadcast active", of: path.text, ["size": "\(sentSize)"])
            publish()
            object.emit("BroadcastStarted")
            answerWaiters(nil)
        case .startFailed(let error):
            broadcast = nil
            startFailed("start", error)
        case .finished(let end):
            finish(end)
        case .switched:
            log.info("another source", of: path.text, ["size": "\(sentSize)"])
            publish()
            answerWaiters(nil)
        case .switchFailed(let error):
            startFailed("switch", error)
        }
    }

    private func startFailed(_ what: String, _ error: AgentError) {
        lastError = (error.name.dbusName, error.message)
        log.info("\(what) failed", of: path.text, ["error": error.name.rawValue, "detail": error.message])
        publish()
        object.emit("StartFailed", [.string(error.name.dbusName), .string(error.message)])
        answerWaiters(error)
    }

    private func finish(_ end: End) {
        isSettling = true
        var fields: LogFields = ["reason": end.cause.reason, "detail": end.detail]
        fields.add(pool.statistics.logFields)
        log.info("broadcast finished", of: path.text, fields)
        broadcast = nil
        updateSound()
        startedAt = 0
        if end.cause.isFault { lastError = (end.asError.name.dbusName, end.asError.message) }
        // Those that end with the broadcast end on its last picture, the others then get the placeholder.
        streams.finishBroadcast { [self] in
            isSettling = false
            updatePlaceholder()
            publish()
            object.emit("BroadcastFinished", [.string(end.cause.reason), .string(end.detail)])
            settle()
        }
    }

    private func answerWaiters(_ error: AgentError?) {
        let waiters = start.waiters
        start = StartInProgress()
        for waiter in waiters { waiter(error) }
    }

    /// Announces what has changed: the track's own properties, then the agent's.
    func publish() {
        guard !isSettling, !isGone else { return }
        object.publish()
        agent.publish()
    }

    // MARK: - Options and readers

    func setMuted(_ muted: Bool) {
        isMuted = muted
        updateHiding()
        log.info(muted ? "muted" : "unmuted", of: path.text)
        publish()
    }

    /// Gives changed options to what runs.
    ///
    /// - Parameter completion: called when all of it follows: no picture shows any more what the options hide.
    func applyOptions(_ completion: @escaping () -> Void = {}) {
        streams.rates = options.asRates
        streams.hasSound = options.audio != .none
        watchAllowed()
        agent.captures.setLayout(options.layout, of: pool)
        agent.captures.setView(options.view, of: pool) { [self] in
            publish()
            completion()
        }
    }

    /// A right that was given to a connection ends with it, also when it never called.
    func watchAllowed() {
        for name in options.allow.compactMap(BusName.init) where name.isUnique { agent.clients.watch(name) }
    }

    /// The session was locked or unlocked, or the machine goes to sleep or is awake.
    func screenLockChanged() { updateHiding() }

    /// Hides sound and pictures, or shows them. The sound goes first: what waits of it is dropped with the pictures.
    private func updateHiding() {
        updateSound()
        updatePlaceholder()
    }

    /// Readers get the placeholder while there is no broadcast, or nobody is to see it.
    private func updatePlaceholder() { streams.showsPlaceholder = isMuted || !machine.isActive || agent.isScreenLocked }

    /// Takes sound while there is a broadcast that may be seen, and somebody to hear it: who has locked the session has left, and a microphone must not
    /// be on the air then. A source that sends no picture for a while is no reason to stop.
    private func updateSound() {
        let mayBeHeard = machine.isActive && !isMuted && !agent.isScreenLocked
        let isWanted = mayBeHeard && options.audio != .none && streams.wantsSound
        if isWanted, sound == nil, let inlet = streams.makeSoundInlet(soundGate) {
            sound = agent.sound.open(options.audio, soundGate, deliver: inlet)
        } else if !isWanted, let sound {
            soundGate.close()
            agent.sound.close(sound)
            self.sound = nil
        }
    }

    func subscribe(
        _ options: SubscribeOptions, _ subscriber: BusName, _ identity: Identity
    ) throws(AgentError) -> (path: ObjectPath, reading: Value) {
        lastSubscription += 1
        guard let path = path.appending("subscription")?.appending("\(lastSubscription)") else {
            throw AgentError(.failed, "no object path is left")
        }
        let (subscription, reading) = try TrackSubscription.make(path, options, of: self, for: subscriber, identity)
        subscriptions.append(subscription)
        let fields: LogFields = ["subscription": "\(lastSubscription)", "identity": identity.name, "format": options.format.rawValue]
        log.info("subscribed", of: self.path.text, fields)
        publish()
        return (path, reading)
    }

    /// Ends the subscriptions that fit, then calls back.
    func endSubscriptions(where fits: (TrackSubscription) -> Bool, _ completion: @escaping () -> Void = {}) {
        let leaving = subscriptions.filter(fits)
        var left = leaving.count
        if left == 0 { return completion() }
        for subscription in leaving {
            subscription.end {
                left -= 1
                if left == 0 { completion() }
            }
        }
    }

    /// Ends the streams of those who were allowed to read, and are no longer.
    func endForbiddenSubscriptions() {
        endSubscriptions(where: { !Policy.permits(.subscribe, standing(of: $0.subscriber, $0.identity)) })
    }

    func forget(_ subscription: TrackSubscription, _ why: StreamEnd) {
        subscriptions.removeAll { $0 === subscription }
        let number = subscription.path.text.split(separator: "/").last.map(String.init) ?? ""
        log.info("a subscription has ended", of: path.text, ["subscription": number, "why": "\(why)"])
        publish()
    }

    /// Who owns a track may have left and come back as another connection of the same program.
    func adopt(_ name: BusName, _ identity: Identity) {
        guard owner == nil, options.isDetached, !isDesktopTrack, identity.name == ownerIdentity?.name, identity.isTellingName,
            !identity.name.hasSuffix(":")
        else {
            return
        }
        (owner, ownerIdentity) = (name, identity)
        publish()
    }

    /// A client has left the bus: what it owned ends, unless it asked for more; a right that its name had goes with it.
    func clientLeft(_ name: BusName) {
        if options.allow.contains(name.text) {
            options.allow.removeAll { $0 == name.text }
            publish()
        }
        guard owner == name else { return }
        owner = nil
        if options.isDetached {
            publish()
            agent.removeIfAbandoned(self)
        } else {
            destroy(End(cause: .ownerLeft, detail: "the program that owned the share has left the bus"))
        }
    }

    /// What people are told of the broadcast; nil when there is none.
    var sharedScreen: SharedScreen? {
        guard machine.isActive, let broadcast else { return nil }
        let size = broadcast.wholeSize
        return SharedScreen(
            key: path.text, source: broadcast.sourceName + (size.map { ", \($0.width)×\($0.height)" } ?? "") + options.audio.addition,
            identity: (isDesktopTrack ? sharedBy : ownerIdentity)?.name ?? "unknown:", title: options.title,
            since: Int(startedAt / 1_000_000), readerCount: subscriptions.count, isMuted: isMuted)
    }

    /// Size of the picture that is sent, pixels; 0x0 when there is none.
    var sentSize: PixelSize {
        guard machine.isActive, let size = broadcast?.pictureSize else { return PixelSize(width: 0, height: 0) }
        return size.fitted(into: options.effectiveMaxSize)
    }
}

extension FrameStatistics {
    /// What a line of the log says of it.
    var logFields: LogFields {
        [
            "received": "\(received)", "delivered": "\(delivered)", "coalesced": "\(coalesced)", "footprint": "\(footprint)",
        ]
    }
}

extension SoundMix {
    /// What people are told beside the source.
    fileprivate var addition: String {
        switch self {
        case .none: ""
        case .system: ", with sound"
        case .microphone: ", with the microphone"
        case .both: ", with sound and the microphone"
        }
    }
}

extension TrackOptions {
    fileprivate var asRates: StreamRates {
        let limit = effectiveMaxSize
        return StreamRates(
            maxSize: limit.width == 0 && limit.height == 0 ? nil : limit, frameRate: effectiveFrameRate, bitrate: effectiveBitrate)
    }
}
