// SPDX-License-Identifier: MIT
import CPipeWire
import Loop

/// The agent's own connection to PipeWire, for sound: the portal's shows nothing but what was picked.
///
/// Thread: the sound thread's. The callbacks' context is unretained: ``close()`` comes before this object goes, and never inside a callback.
final class SoundRemote {
    /// What the session manager, or somebody else, has announced.
    private enum Thing: Equatable {
        case device(Set<SoundInput>)
        /// The defaults, which a session manager keeps.
        case defaults
    }

    /// Something came or went.
    var onChanged: (() -> Void)?
    /// All that there was when it was connected is known.
    var onKnown: (() -> Void)?
    /// The connection is gone.
    var onLost: (() -> Void)?

    private(set) var core: OpaquePointer?
    private(set) var isKnown = false
    private var registry: OpaquePointer?
    private var things: [UInt32: Thing] = [:]
    /// Of core and registry; they must not move.
    private let hooks: UnsafeMutablePointer<spa_hook>

    init() {
        hooks = .allocate(capacity: 2)
        hooks.initialize(repeating: spa_hook(), count: 2)
    }

    deinit {
        close()
        hooks.deallocate()
    }

    func connect(_ context: OpaquePointer) throws(Errno) {
        guard let core = pw_context_connect(context, nil, 0) else { throw .last }
        self.core = core
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = cpw_core_add_listener(core, hooks, SoundRemoteEvents.core, me)
        guard let registry = cpw_core_get_registry(core) else { throw .last }
        self.registry = registry
        _ = cpw_registry_add_listener(registry, hooks + 1, SoundRemoteEvents.registry, me)
        _ = cpw_core_sync(core, 0, 0)
    }

    func close() {
        if let registry { pw_proxy_destroy(registry) }
        if let core { pw_core_disconnect(core) }
        (registry, core) = (nil, nil)
    }

    /// What there is at present.
    var devices: SoundDevices {
        if !things.values.contains(.defaults) {
            return SoundDevices(
                allMissing: "PipeWire has no session manager: 'systemctl --user start wireplumber' starts it, where it is installed")
        }
        var found: Set<SoundInput> = []
        for case .device(let inputs) in things.values { found.formUnion(inputs) }
        var faults: [SoundInput: String] = [:]
        if !found.contains(.system) {
            faults[.system] = "PipeWire shows this program no sound output, whose sound could be taken ('wpctl status' lists them)"
        }
        if !found.contains(.microphone) {
            faults[.microphone] = "PipeWire shows this program no sound input ('wpctl status' lists them): is a microphone plugged in?"
        }
        return SoundDevices(faults: faults)
    }

    // MARK: - What PipeWire says

    fileprivate func answered() {
        guard !isKnown else { return }
        isKnown = true
        onKnown?()
    }

    fileprivate func failed(_ id: UInt32, _ result: Int32, _ message: String) {
        log.debug("PipeWire says of object \(id): \(message) (\(Errno(result)))")
        if id == UInt32(PW_ID_CORE) && result == -EPIPE { onLost?() }
    }

    fileprivate func announced(_ id: UInt32, type: String, _ property: (String) -> String?) {
        switch type {
        case "PipeWire:Interface:Node": things[id] = Thing.device(SoundRemote.inputs(property("media.class") ?? ""))
        case "PipeWire:Interface:Metadata" where property("metadata.name") == "default": things[id] = .defaults
        default: return
        }
        if isKnown { onChanged?() }
    }

    fileprivate func removed(_ id: UInt32) {
        guard things.removeValue(forKey: id) != nil, isKnown else { return }
        onChanged?()
    }

    /// What a node can be taken for. A duplex device is both.
    private static func inputs(_ mediaClass: String) -> Set<SoundInput> {
        switch mediaClass {
        case "Audio/Sink": [.system]
        case "Audio/Source", "Audio/Source/Virtual": [.microphone]
        case "Audio/Duplex": [.system, .microphone]
        default: []
        }
    }
}

/// The tables of callbacks.
///
/// SAFETY: `nonisolated(unsafe)` because they are pointers; each is written once, here, and only read afterwards.
private enum SoundRemoteEvents {
    nonisolated(unsafe) static let core = {
        let events = UnsafeMutablePointer<pw_core_events>.allocate(capacity: 1)
        events.initialize(to: pw_core_events())
        events.pointee.version = UInt32(PW_VERSION_CORE_EVENTS)
        events.pointee.done = onCoreDone
        events.pointee.error = onCoreError
        return events
    }()

    nonisolated(unsafe) static let registry = {
        let events = UnsafeMutablePointer<pw_registry_events>.allocate(capacity: 1)
        events.initialize(to: pw_registry_events())
        events.pointee.version = UInt32(PW_VERSION_REGISTRY_EVENTS)
        events.pointee.global = onGlobal
        events.pointee.global_remove = onGlobalRemove
        return events
    }()
}

private func remote(_ context: UnsafeMutableRawPointer?) -> SoundRemote? {
    context.map { Unmanaged<SoundRemote>.fromOpaque($0).takeUnretainedValue() }
}

private func onCoreDone(_ context: UnsafeMutableRawPointer?, _ id: UInt32, _ sequence: Int32) {
    if id == UInt32(PW_ID_CORE) { remote(context)?.answered() }
}

private func onCoreError(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _ sequence: Int32, _ result: Int32, _ message: UnsafePointer<CChar>?
) {
    remote(context)?.failed(id, result, message.map { String(cString: $0) } ?? "")
}

private func onGlobal(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _ permissions: UInt32, _ type: UnsafePointer<CChar>?, _ version: UInt32,
    _ properties: UnsafePointer<spa_dict>?
) {
    remote(context)?.announced(id, type: type.map { String(cString: $0) } ?? "") { key in
        properties.flatMap { spa_dict_lookup($0, key) }.map { String(cString: $0) }
    }
}

private func onGlobalRemove(_ context: UnsafeMutableRawPointer?, _ id: UInt32) { remote(context)?.removed(id) }
