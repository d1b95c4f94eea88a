// SPDX-License-Identifier: MIT
import CPipeWire
import Loop
import PipeWire

/// The connection to the PipeWire daemon, iterated on an event loop.
///
/// Thread: the loop's.
final class PipeWire {
    let core: OpaquePointer
    /// The daemon is gone; nothing of this connection works any more.
    var onLost: (() -> Void)?
    /// Who reads which node.
    let consumers: Consumers

    private let loop: PipeWireLoop
    private let registry: Registry
    private var serials: [UInt32: UInt64] = [:]

    /// Connects to the daemon that the environment names. It lives as long as the process.
    init(on eventLoop: EventLoop) throws(Errno) {
        loop = try PipeWireLoop(on: eventLoop, application: "Vitrine's test screen")
        guard let core = pw_context_connect(loop.context, nil, 0) else {
            let reason = Errno.last
            loop.close()
            throw reason
        }
        registry = try Registry(core, log: Log("testscreen"))
        (self.core, consumers) = (core, Consumers(registry.raw))
        registry.onLost = { [unowned self] in onLost?() }
        registry.onAnnounced = { [unowned self] in appeared($0, $1, $2) }
        registry.onRemoved = { [unowned self] id in
            serials[id] = nil
            consumers.disappeared(id)
        }
    }

    /// What the daemon calls a node for ever, once it has said so.
    func serial(of node: UInt32) -> UInt64? { serials[node] }

    /// Disconnects, so that sources vanish before the process does.
    func close() {
        registry.close()
        _ = pw_core_disconnect(core)
        loop.close()
    }

    private func appeared(_ id: UInt32, _ type: String, _ property: (String) -> String?) {
        func number(_ key: String) -> UInt64? { property(key).flatMap { UInt64($0) } }
        switch type {
        case "PipeWire:Interface:Node":
            serials[id] = number(PW_KEY_OBJECT_SERIAL)
        case "PipeWire:Interface:Link":
            guard let output = number(PW_KEY_LINK_OUTPUT_NODE), let input = number(PW_KEY_LINK_INPUT_NODE) else { return }
            consumers.appeared(id, output: UInt32(truncatingIfNeeded: output), input: UInt32(truncatingIfNeeded: input))
        default: break
        }
    }
}
