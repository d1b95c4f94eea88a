// SPDX-License-Identifier: MIT
import Contract
import DBus
import Frames
import Loop
import Sound

/// The track's side of the contract: each member of `org.vitrine.ScreenShare1.Track`, and who may call it.
extension Track {
    func makeObject() -> PublishedObject {
        PublishedObject(
            path, agent.descriptions.track, on: agent.server,
            methods: [
                "StartCapture": method(.manage) { track, call, _ in track.handleStartCapture(call) },
                "StartBroadcast": { [weak self] call in
                    guard let self else { return }
                    whenSoundIsKnown(for: options.audio, call) {
                        self.method(.start) { track, call, identity in track.handleStartBroadcast(call, identity) }(call)
                    }
                },
                "SwitchSource": method(.manage) { track, call, identity in track.handleSwitchSource(call, identity) },
                "StopBroadcast": method(.stop) { track, call, identity in track.handleStopBroadcast(call, identity) },
                "StopCapture": method(.stop) { track, call, identity in
                    track.stopCapture(.stopped(by: identity)) { call.reply() }
                },
                "Subscribe": method(.subscribe) { track, call, identity in track.handleSubscribe(call, identity) },
                "UnsubscribeAll": { [weak self] call in self?.handleUnsubscribeAll(call) },
                "Allow": method(.manage) { track, call, _ in track.handleAllow(call) },
                "Disallow": method(.manage) { track, call, _ in track.handleDisallow(call) },
                "Destroy": method(.manage) { track, call, identity in track.handleDestroy(call, identity) },
            ],
            properties: [
                "State": property { .string($0.machine.name) },
                "IsCapturing": property { .bool($0.machine.isCapturing) },
                "IsBroadcastActive": property { .bool($0.machine.isActive) },
                "SourcePaused": property { .bool($0.machine.isActive && $0.broadcast?.isPaused ?? false) },
                "Muted": property({ .bool($0.isMuted) }, set: { track, value, call in track.handleMuted(value, call) }),
                "Preset": property({ .string($0.options.preset.name) }, set: { track, value, call in track.handlePreset(value, call) }),
                "Crop": property({ $0.options.crop.asValue }, set: { track, value, call in track.handleCrop(value, call) }),
                "Masks": property({ $0.options.masks.asValue }, set: { track, value, call in track.handleMasks(value, call) }),
                "Layout": property({ .string($0.options.layout.rawValue) }, set: { track, value, call in track.handleLayout(value, call) }),
                "Sources": property { .array(of: "a{sv}", $0.isActive ? $0.broadcast?.sources ?? [] : []) },
                "Size": property { $0.sentSize.asValue },
                "StartedAt": property { .uint64($0.startedAt) },
                "Owner": property { .string($0.owner?.text ?? "") },
                "OwnerIdentity": property { .string($0.ownerIdentity?.name ?? "") },
                "OwnerPid": property { .uint32($0.owner == nil ? 0 : $0.ownerIdentity?.processID ?? 0) },
                "Title": property { .string($0.options.title) },
                "Allowed": property { .strings($0.options.allow) },
                "Subscriptions": property { .objectPaths($0.subscriptions.map(\.path)) },
                "LastErrorName": property { .string($0.lastError.name) },
                "LastError": property { .string($0.lastError.message) },
                "Statistics": property { $0.pool.statistics.asValue },
            ])
    }

    private func method(_ act: Act, _ body: @escaping (Track, Call, Identity) -> Void) -> (Call) -> Void {
        { [weak self] call in
            self?.whenPermitted(act, call) { identity in
                guard let self else { return }
                self.whenSettled(call) { body(self, call, identity) }
            }
        }
    }

    private func property(_ get: @escaping (Track) -> Value, set: ((Track, Value, Call) -> Void)? = nil) -> Property {
        // The object is exported for as long as the track lives.
        let getter: () -> Value = { [unowned self] in get(self) }
        guard let set else { return Property(get: getter) }
        return Property(get: getter) { [weak self] value, call in
            guard let self else { return }
            set(self, value, call)
        }
    }

    /// Goes on when the transition that is under way is announced; a call to a track that is gone by then is answered here.
    func whenSettled(_ call: Call, _ body: @escaping () -> Void) {
        whenSettled { [self] in
            if isGone { return call.fail(AgentError(.unknownObject, "\(path) has been destroyed")) }
            body()
        }
    }

    /// Goes on with a start when it is known whether there is its sound. One that is stopped meanwhile is answered here.
    func whenSoundIsKnown(for mix: SoundMix, _ call: Call, _ body: @escaping () -> Void) {
        let stopsBefore = stops
        agent.whenSoundIsKnown(for: mix) { [weak self, path] in
            guard let self, !isGone else { return call.fail(AgentError(.unknownObject, "\(path) has been destroyed")) }
            if stops != stopsBefore { return call.fail(AgentError(.cancelled, "the share was stopped before it began")) }
            body()
        }
    }

    /// Finds out who calls, and goes on when that one may; else answers NotAllowed, which names both and what is missing.
    func whenPermitted(_ act: Act, _ call: Call, _ body: @escaping (Identity) -> Void) {
        agent.clients.identify(call.sender) { [weak self] identity in
            guard let self, !isGone else { return call.fail(AgentError(.unknownObject, "\(call.path) has been destroyed")) }
            adopt(call.sender, identity)
            if Policy.permits(act, standing(of: call.sender, identity)) { return body(identity) }
            call.fail(refusal(act, call, identity))
        }
    }

    /// What a client is to the track.
    func standing(of name: BusName, _ identity: Identity) -> Standing {
        Standing(
            isOwner: owner == name, isAllowed: allows(name, identity), isSandboxed: identity.isSandboxed, isDesktopTrack: isDesktopTrack)
    }

    private func allows(_ name: BusName, _ identity: Identity) -> Bool {
        identity.isTellingName && options.allow.contains(identity.name) || options.allow.contains(name.text)
    }

    private func refusal(_ act: Act, _ call: Call, _ identity: Identity) -> AgentError {
        let owner = isDesktopTrack ? "nobody" : ownerIdentity?.name ?? "nobody"
        let remedy =
            switch act {
            case .subscribe: "its owner can permit it with Allow(\"\(identity.name)\") or the option allow=[\"\(identity.name)\"]"
            case .stop, .start: "a sandboxed program may do that on its own tracks only: make one with CreateTrack"
            case .manage: "only its owner may: make a track of your own with CreateTrack"
            }
        return AgentError(.notAllowed, "\(call.member) on \(path), owned by \(owner), is not for \(identity.name): \(remedy)")
    }

    // MARK: - Methods

    private func handleStartCapture(_ call: Call) {
        startCapture()
        call.reply()
    }

    private func handleStartBroadcast(_ call: Call, _ identity: Identity) {
        do throws(AgentError) {
            var reader = OptionReader(call.options(at: 0))
            let start = try StartOptions(&reader)
            try reader.finish()
            try agent.checkSound(options.audio)
            let starter = Starter(client: call.sender, identity: identity)
            try startBroadcast(start, by: starter, start.waits ? { error in call.answer(error) } : nil)
            if !start.waits { call.reply() }
        } catch {
            call.fail(error)
        }
    }

    private func handleSwitchSource(_ call: Call, _ identity: Identity) {
        do throws(AgentError) {
            var reader = OptionReader(call.options(at: 0))
            let start = try StartOptions(&reader)
            try reader.finish()
            let starter = Starter(client: call.sender, identity: identity)
            try switchSource(start, by: starter, start.waits ? { error in call.answer(error) } : nil)
            if !start.waits { call.reply() }
        } catch {
            call.fail(error)
        }
    }

    private func handleStopBroadcast(_ call: Call, _ identity: Identity) {
        stopBroadcast(.stopped(by: identity))
        whenSettled { call.reply() }
    }

    private func handleSubscribe(_ call: Call, _ identity: Identity) {
        do throws(AgentError) {
            let options = try SubscribeOptions(call.options(at: 0))
            try agent.checkSubscriptionLimit(call.sender, identity)
            let (path, reading) = try subscribe(options, call.sender, identity)
            call.reply([.objectPath(path), reading])
        } catch {
            call.fail(error)
        }
    }

    private func handleUnsubscribeAll(_ call: Call) {
        let name = call.arguments[0].asString ?? ""
        guard name.isEmpty || BusName(name)?.isUnique == true else {
            return call.fail(.invalid("subscriber", "is \"\(name)\"; it is a unique bus name such as :1.42, or \"\" for the caller's own"))
        }
        let subscriber = name.isEmpty ? call.sender.text : name
        let end = { [weak self] in
            guard let self else { return }
            endSubscriptions(where: { $0.subscriber.text == subscriber }) { call.reply() }
        }
        // One's own are always one's own.
        if subscriber == call.sender.text { end() } else { whenPermitted(.manage, call) { _ in end() } }
    }

    private func handleAllow(_ call: Call) {
        do throws(AgentError) {
            let name = try TrackOptions.checkIdentity("identity", call.arguments[0].asString ?? "")
            if !options.allow.contains(name) {
                guard options.allow.count < TrackOptions.greatestAllowCount else { throw TrackOptions.tooManyAllowed }
                options.allow.append(name)
            }
            watchAllowed()
            publish()
            call.reply()
        } catch {
            call.fail(error)
        }
    }

    private func handleDisallow(_ call: Call) {
        do throws(AgentError) {
            let name = try TrackOptions.checkIdentity("identity", call.arguments[0].asString ?? "")
            options.allow.removeAll { $0 == name }
            publish()
            endSubscriptions { subscription in
                let isNamed = subscription.identity.name == name || subscription.subscriber.text == name
                return isNamed && !self.allows(subscription.subscriber, subscription.identity)
            } _: {
                call.reply()
            }
        } catch {
            call.fail(error)
        }
    }

    private func handleDestroy(_ call: Call, _ identity: Identity) {
        if isDesktopTrack {
            return call.fail(
                AgentError(.notAllowed, "the desktop track is always there: StopCapture or SetScreenShare(false) ends its share"))
        }
        destroy(.stopped(by: identity)) { call.reply() }
    }

    // MARK: - Properties

    private func handleMuted(_ value: Value, _ call: Call) {
        let muted = value.asBool ?? false
        whenPermitted(muted ? .stop : .manage, call) { [weak self] _ in
            guard let self else { return }
            whenSettled(call) {
                self.setMuted(muted)
                call.reply()
            }
        }
    }

    private func handlePreset(_ value: Value, _ call: Call) {
        changeOptions(call) { options throws(AgentError) in options.setPreset(try Preset.named(value.asString ?? "")) }
    }

    private func handleCrop(_ value: Value, _ call: Call) {
        changeOptions(call) { options throws(AgentError) in options.crop = try TrackOptions.checkCrop(Region(value) ?? .none) }
    }

    private func handleMasks(_ value: Value, _ call: Call) {
        changeOptions(call) { options throws(AgentError) in
            options.masks = try TrackOptions.checkMasks(value.asArray?.allOrNone { Region($0) } ?? [])
        }
    }

    /// Replies when everything follows the change.
    private func changeOptions(_ call: Call, _ change: @escaping (inout TrackOptions) throws(AgentError) -> Void) {
        whenPermitted(.manage, call) { [weak self] _ in
            guard let self else { return }
            whenSettled(call) {
                do throws(AgentError) {
                    var changed = self.options
                    try change(&changed)
                    self.options = changed
                    self.applyOptions { call.reply() }
                } catch {
                    call.fail(error)
                }
            }
        }
    }

    private func handleLayout(_ value: Value, _ call: Call) {
        changeOptions(call) { options throws(AgentError) in options.layout = try TrackOptions.layout(named: value.asString ?? "") }
    }
}

extension Call {
    /// Answers a call that waited for an outcome.
    func answer(_ error: AgentError?, _ values: [Value] = []) {
        if let error { fail(error) } else { reply(values) }
    }
}

extension End {
    static func stopped(by identity: Identity) -> End { End(cause: .stopped, detail: "stopped by \(identity.name)") }
}

extension FrameStatistics {
    /// `Statistics` of the contract.
    fileprivate var asValue: Value {
        let age = lastFrameAt.map { (Instant.now - $0).microseconds } ?? 0
        let counters: [(String, UInt64)] = [
            ("received", received), ("delivered", delivered), ("coalesced", coalesced), ("unread", unread), ("corrupted", corrupted),
            ("cursor-only", cursorOnly), ("dropped", dropped), ("footprint", UInt64(footprint)), ("pool-capacity", UInt64(capacity)),
            ("last-frame-age-us", UInt64(clamping: age)), ("latency-p50-us", UInt64(clamping: latencyMedian?.microseconds ?? 0)),
            ("latency-p99-us", UInt64(clamping: latencyP99?.microseconds ?? 0)),
        ]
        return .dictionary(key: "s", value: "t", counters.map { Value.Entry(key: .string($0.0), value: .uint64($0.1)) })
    }
}
