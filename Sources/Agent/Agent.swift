// SPDX-License-Identifier: MIT
import Choices
import Contract
public import DBus
import Frames
import Indicator
import Loop
import Portal
import Sound
import Streams

/// The agent of one desktop session: its tracks, and its own object on the bus.
///
/// Thread: one loop, the connection's. It touches no pixel.
public final class Agent {
    /// Most tracks that one client may own at a time.
    static let tracksPerClient = 32
    /// Most tracks that there are at a time, whoever owns them, beside the desktop track. Programs in a sandbox get half of them, however many
    /// connections they make, and of the subscriptions too: the others cannot be kept out by them.
    static let greatestTrackCount = 64
    /// Most subscriptions that one client may hold at a time, over all tracks.
    static let subscriptionsPerClient = 256
    /// Most subscriptions that there are at a time: each is a descriptor, of which a process may have 1024.
    static let greatestSubscriptionCount = 640

    struct Descriptions {
        let agent, track, subscription: InterfaceDescription

        init() throws(XMLError) {
            agent = try Self.parse(Contract.agentXML)
            track = try Self.parse(Contract.trackXML)
            subscription = try Self.parse(Contract.subscriptionXML)
        }

        private static func parse(_ xml: String) throws(XMLError) -> InterfaceDescription {
            guard let description = try InterfaceDescription.parse(xml).first else { preconditionFailure("an XML file without interface") }
            return description
        }
    }

    let descriptions: Descriptions
    let server: ObjectServer
    let loop: EventLoop
    let clients: Clients
    let portal: ScreenCastPortal
    let captures: Captures
    let streams: Streams
    let sound: SoundService
    let choices: RememberedChoices
    /// What a share of the desktop track starts with.
    private(set) var defaults = TrackOptions()
    private var screenLock: ScreenLock?
    private var indicator: Indicator?
    /// When the person last closed a picker, by who had opened it; what is older than the peace is taken out. Those in a sandbox that are not
    /// known by name are one: each could take any path for its own.
    private var cancels: [String: Instant] = [:]
    private let connection: Connection
    private let log = Log("agent")
    private var tracks: [Track] = []
    private var desktopTrack: Track?
    private var object: PublishedObject?
    private var lastTrack: UInt64 = 0
    private var isLeaving = false
    private var idleLimit: Duration?
    private var idleTimer: Timer?
    /// Called when nothing has been going on for as long as ``watchIdleness(_:)`` was told.
    public var onIdle: (() -> Void)?

    /// Exports the agent and the desktop track. The well-known name is the caller's to request, last.
    ///
    /// - Throws: when the embedded XML cannot be read, which a test rules out.
    public init(on connection: Connection) throws(XMLError) {
        (self.connection, loop) = (connection, connection.loop)
        descriptions = try Descriptions()
        server = ObjectServer(connection)
        connection.limitErrorName = ErrorName.limitExceeded.dbusName
        clients = Clients(connection)
        portal = ScreenCastPortal(connection)
        captures = Captures(on: connection.loop)
        streams = Streams(on: connection.loop)
        sound = SoundService(on: connection.loop)
        choices = RememberedChoices(.ofUser)
        object = makeObject()
        indicator = Indicator(
            connection, server, trusts: trust,
            act: { [weak self] key, act in self?.handle(act, key) })
        readConfiguration()
        let desktop = Track(Paths.desktopTrack, defaults, owner: nil, nil, agent: self, isDesktopTrack: true)
        (desktopTrack, tracks) = (desktop, [desktop])
        clients.onLeft = { [weak self] name in
            self?.choices.forget(name)
            for track in self?.tracks ?? [] { track.clientLeft(name) }
            self?.updateIdleTimer()
        }
        sound.onChanged = { [weak self] in self?.publish() }
        portal.onPropertiesChanged = { [weak self] _ in self?.publish() }
        screenLock = ScreenLock(on: connection.loop) { [weak self] in
            for track in self?.tracks ?? [] { track.screenLockChanged() }
        }
    }

    private enum Paths {
        static let agent: ObjectPath = "/org/vitrine/ScreenShare1"
        static let tracks: ObjectPath = "/org/vitrine/ScreenShare1/track"
        static let desktopTrack: ObjectPath = "/org/vitrine/ScreenShare1/track/desktop"
    }

    /// Finishes all broadcasts, ends all streams, closes the portal's sessions, then calls back: the way out on SIGTERM.
    public func leave(_ completion: @escaping () -> Void) {
        guard !isLeaving else { return }
        isLeaving = true
        var left = tracks.count
        for track in tracks {
            track.destroy(End(cause: .agentExit, detail: "the agent has been asked to leave")) { [self] in
                left -= 1
                if left > 0 { return }
                portal.closeAll()
                connection.flush()
                captures.stop()
                streams.shutdown()
                sound.shutdown()
                completion()
            }
        }
    }

    /// - Throws: `Busy`, naming the track whose picker is open.
    func checkNoPickerIsOpen() throws(AgentError) {
        guard let other = tracks.first(where: \.isPicking) else { return }
        throw AgentError(.busy, "the picker of \(other.path) is open: one is shown at a time, try again when it is closed")
    }

    /// Reads the person's settings anew: what they changed holds for the next share.
    func readConfiguration() {
        let configuration = Configuration.read()
        for complaint in configuration.complaints { log.warning("\(complaint)") }
        defaults = configuration.options
        indicator?.mode = configuration.indicator
    }

    /// What is wrong with the person's settings, each with its file and line.
    public static var complaintsAboutConfiguration: [String] { Configuration.read().complaints.map(\.asPlainText) }

    /// Goes on when it is known whether there is that sound: at once where none is asked for.
    func whenSoundIsKnown(for mix: SoundMix, _ body: @escaping () -> Void) {
        if mix == .none { body() } else { sound.look(body) }
    }

    /// The sound that options ask for; nil where they do not say. A wrong value is refused later.
    static func mix(in given: [String: Value]) -> SoundMix? { given["audio"].map { $0.asString.flatMap(SoundMix.init) ?? .none } }

    /// - Throws: `Unsupported`, with what is missing for it.
    func checkSound(_ mix: SoundMix) throws(AgentError) {
        if let fault = sound.devices.fault(of: mix) { throw .unsupported("\"audio\" \"\(mix)\"", fault) }
    }

    /// Whether the session is locked, or the machine goes to sleep: nobody is to see its screens.
    var isScreenLocked: Bool { screenLock?.isLocked ?? false }

    /// Before something is shared: it may have been locked unheard.
    func askForScreenLock() { screenLock?.ask() }

    /// How long who had a picker closed cannot open the next one.
    private static let peace = Duration.seconds(2)

    /// The person has closed a picker that this program had opened.
    func noteCancel(by identity: Identity) {
        cancels = cancels.filter { $0.value + Agent.peace > .now }
        cancels[Agent.nameForPeace(of: identity)] = .now
    }

    /// From when on a program may open a picker: the person who has just closed one has two seconds of peace from it.
    func endOfPeace(for identity: Identity) -> Instant {
        (cancels[Agent.nameForPeace(of: identity)] ?? Instant(nanoseconds: 0)) + Agent.peace
    }

    private static func nameForPeace(of identity: Identity) -> String { identity.isTellingName ? identity.name : "" }

    /// Whether a client of the bus may speak for the person, or for the desktop: no program in a sandbox may.
    private var trust: Indicator.Trust {
        { [clients] client, answer in clients.identify(client) { answer(!$0.isSandboxed) } }
    }

    /// Tells the person who opens the picker.
    func makeNotice(_ identity: Identity, title: String) -> PickerNotice {
        PickerNotice(connection, who: identity.name, title: title, trusts: trust)
    }

    /// Announces what has changed of the agent's own properties.
    func publish() {
        object?.publish()
        indicator?.show(tracks.compactMap(\.sharedScreen))
        updateIdleTimer()
    }

    /// What the person did in the indicator.
    private func handle(_ act: Indicator.Act, _ key: String) {
        guard let track = tracks.first(where: { $0.path.text == key }) else { return }
        track.whenSettled {
            guard !track.isGone else { return }
            switch act {
            case .mute(let isMuted): track.setMuted(isMuted)
            case .stop: track.stopBroadcast(End(cause: .stopped, detail: "stopped in the indicator"))
            }
        }
    }

    // MARK: - Nothing to do

    /// Whether an agent that is started anew would be the same: nothing is shared or listens, nobody reads, and nothing was set or remembered.
    public var isIdle: Bool { tracks.count == 1 && (desktopTrack?.isFresh ?? false) && choices.isEmpty }

    /// Has ``onIdle`` called when the agent has been idle for so long.
    public func watchIdleness(_ limit: Duration) {
        idleLimit = limit
        updateIdleTimer()
    }

    private func updateIdleTimer() {
        guard let idleLimit else { return }
        guard isIdle, !isLeaving else {
            idleTimer?.cancel()
            idleTimer = nil
            return
        }
        guard idleTimer == nil else { return }
        idleTimer = loop.after(idleLimit) { [weak self] in
            guard let self else { return }
            idleTimer = nil
            if isIdle { onIdle?() } else { updateIdleTimer() }
        }
    }

    func forget(_ track: Track) {
        tracks.removeAll { $0 === track }
        updateIdleTimer()
    }

    /// A detached track that is idle and that nobody owns is of no use to anybody.
    func removeIfAbandoned(_ track: Track) {
        guard !track.isDesktopTrack, track.owner == nil, !track.machine.isCapturing, !track.isGone else { return }
        track.destroy(End(cause: .ownerLeft, detail: "nobody owns the share any more"))
    }

    private func checkTrackLimit(_ identity: Identity) throws(AgentError) {
        guard tracks.count <= Agent.greatestTrackCount else {
            throw AgentError(.limitExceeded, "there are \(Agent.greatestTrackCount) tracks already: destroy one of them first")
        }
        let half = Agent.greatestTrackCount / 2
        guard !identity.isSandboxed || tracks.count(where: { $0.ownerIdentity?.isSandboxed ?? false }) < half else {
            throw AgentError(.limitExceeded, "programs in a sandbox have \(half) tracks already, which is all that they get")
        }
    }

    func checkSubscriptionLimit(_ name: BusName, _ identity: Identity) throws(AgentError) {
        let count = tracks.reduce(0) { sum, track in sum + track.subscriptions.count { $0.subscriber == name } }
        guard count < Agent.subscriptionsPerClient else {
            throw AgentError(.limitExceeded, "a client holds at most \(Agent.subscriptionsPerClient) subscriptions: end one of them first")
        }
        guard tracks.reduce(0, { $0 + $1.subscriptions.count }) < Agent.greatestSubscriptionCount else {
            throw AgentError(.limitExceeded, "there are \(Agent.greatestSubscriptionCount) subscriptions already: end one of them first")
        }
        let half = Agent.greatestSubscriptionCount / 2
        let ofSandboxed = tracks.reduce(0) { sum, track in sum + track.subscriptions.count { $0.identity.isSandboxed } }
        guard !identity.isSandboxed || ofSandboxed < half else {
            throw AgentError(.limitExceeded, "programs in a sandbox have \(half) subscriptions already, which is all that they get")
        }
    }

    // MARK: - The agent's object

    private func makeObject() -> PublishedObject {
        PublishedObject(
            Paths.agent, descriptions.agent, on: server,
            methods: [
                "CreateTrack": { [weak self] call in
                    self?.whenSoundIsKnown(for: Agent.mix(in: call.options(at: 0)) ?? .none) {
                        self?.identified(call) { $0.handleCreateTrack(call, $1) }
                    }
                },
                "SetScreenShare": { [weak self] call in self?.handleSetScreenShare(call) },
            ],
            properties: [
                "Version": Property(get: { .string(Contract.packageVersion) }),
                "InterfaceVersion": Property(get: { .uint32(1) }),
                "IsBroadcastActive": property { .bool($0.tracks.contains { $0.isActive }) },
                "PortalVersion": property { .uint32($0.portal.properties?.version ?? 0) },
                "AvailableSourceTypes": property { .uint32($0.portal.properties?.sourceTypes.rawValue ?? 0) },
                "AvailableCursorModes": property { .uint32($0.portal.properties?.cursorModes.rawValue ?? 0) },
                "Presets": Property(get: { Preset.allAsValue }),
                "DefaultOptions": property { $0.defaults.asValue },
                "Capabilities": Property(
                    get: { [unowned self] in Capabilities.of(portal.properties, sound.devices) },
                    refresh: { [weak self] completion in self?.sound.glance(completion) }),
            ], isObjectManager: true)
    }

    private func property(_ get: @escaping (Agent) -> Value) -> Property { Property(get: { [unowned self] in get(self) }) }

    private func identified(_ call: Call, _ body: @escaping (Agent, Identity) -> Void) {
        clients.identify(call.sender) { [weak self] identity in
            guard let self else { return }
            if isLeaving { return call.fail(AgentError(.failed, "the agent is leaving: call again, and the bus starts it anew")) }
            body(self, identity)
        }
    }

    private func handleCreateTrack(_ call: Call, _ identity: Identity) {
        do throws(AgentError) {
            var options = TrackOptions()
            var reader = OptionReader(call.options(at: 0))
            try options.apply(&reader)
            // Checked now, though each start brings its own.
            _ = try StartOptions(&reader)
            try reader.finish()
            try checkSound(options.audio)
            if options.audio != .none, identity.isSandboxed {
                throw .unsupported("\"audio\" \"\(options.audio)\"", "the desktop asks nobody whether a sandboxed program may listen")
            }
            try options.checkPersistence(of: identity, onDesktopTrack: false)
            guard tracks.count(where: { $0.owner == call.sender }) < Agent.tracksPerClient else {
                throw AgentError(.limitExceeded, "a client owns at most \(Agent.tracksPerClient) tracks: destroy one of them first")
            }
            try checkTrackLimit(identity)
            lastTrack += 1
            guard let path = Paths.tracks.appending("\(lastTrack)") else { throw AgentError(.failed, "no object path is left") }
            tracks.append(Track(path, options, owner: call.sender, identity, agent: self))
            log.info("created", of: path.text, ["owner": identity.name])
            call.reply([.objectPath(path)])
        } catch {
            call.fail(error)
        }
    }

    private func handleSetScreenShare(_ call: Call) {
        guard let desktopTrack else { return }
        let isOn = call.arguments[0].asBool ?? false
        desktopTrack.whenPermitted(isOn ? .start : .stop, call) { identity in
            desktopTrack.whenSettled(call) {
                if isOn {
                    desktopTrack.share(call, identity)
                } else {
                    desktopTrack.stopSharing(call, identity)
                }
            }
        }
    }
}

extension Preset {
    /// `a{s(uuuu)}` of the contract.
    fileprivate static var allAsValue: Value {
        .dictionary(
            key: "s", value: "(uuuu)",
            all.map { preset in
                let limits = [UInt32(preset.maxSize.width), UInt32(preset.maxSize.height), preset.frameRate, preset.bitrate]
                return Value.Entry(key: .string(preset.name), value: .structure(limits.map(Value.uint32)))
            })
    }
}

/// What this build can do, of what the contract names.
private enum Capabilities {
    private static let own: [(String, Bool)] = [
        ("vp9", true), ("ivf", true),
        ("frames", true),
        ("crop", true), ("masks", true),
        ("multiple", true),
        ("window-exclusion", false),
    ]

    /// - Parameter portal: nil while none was seen: then nothing is said of what only it can answer.
    static func of(_ portal: PortalProperties?, _ sound: SoundDevices) -> Value {
        var all = own
        all.append(("system-audio", sound.has(.system)))
        all.append(("microphone", sound.has(.microphone)))
        if let portal {
            all.append(("persist", portal.version >= 4))
            all.append(("cursor-metadata", portal.cursorModes.contains(.metadata)))
        }
        return .dictionary(key: "s", value: "b", all.map { Value.Entry(key: .string($0.0), value: .bool($0.1)) })
    }
}
