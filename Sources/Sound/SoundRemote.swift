// SPDX-License-Identifier: MIT
import CPipeWire
import Loop
import PipeWire

/// The agent's own connection to PipeWire, for sound: the portal's shows nothing but what was picked.
///
/// Thread: the sound thread's. ``close()`` comes before this object goes, and never inside a callback.
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
    private var registry: Registry?
    private var things: [UInt32: Thing] = [:]

    deinit { close() }

    func connect(_ context: OpaquePointer) throws(Errno) {
        guard let core = pw_context_connect(context, nil, 0) else { throw .last }
        self.core = core
        let made = try Registry(core, log: log)
        registry = made
        made.onSynced = { [unowned self] _ in answered() }
        made.onLost = { [unowned self] in onLost?() }
        made.onAnnounced = { [unowned self] in announced($0, $1, $2) }
        made.onRemoved = { [unowned self] in removed($0) }
        made.sync()
    }

    func close() {
        registry?.close()
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

    private func answered() {
        guard !isKnown else { return }
        isKnown = true
        onKnown?()
    }

    private func announced(_ id: UInt32, _ type: String, _ property: (String) -> String?) {
        switch type {
        case "PipeWire:Interface:Node": things[id] = Thing.device(SoundRemote.inputs(property("media.class") ?? ""))
        case "PipeWire:Interface:Metadata" where property("metadata.name") == "default": things[id] = .defaults
        default: return
        }
        if isKnown { onChanged?() }
    }

    private func removed(_ id: UInt32) {
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
