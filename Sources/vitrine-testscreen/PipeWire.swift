// SPDX-License-Identifier: MIT
import CPipeWire
import Glibc
import Loop

/// The connection to the PipeWire daemon, iterated on an event loop.
///
/// Thread: the loop's.
final class PipeWire {
    enum Failure: Error {
        case cannotConnect(Errno)
        case outOfMemory
    }

    let core: OpaquePointer
    /// The daemon is gone; nothing of this connection works any more.
    var onLost: ((Errno) -> Void)?
    /// Who reads which node.
    let consumers: Consumers

    private let loop: UnsafeMutablePointer<pw_loop>
    private let context: OpaquePointer
    private var watch: Watch?
    private var serials: [UInt32: UInt64] = [:]
    private let coreHook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private let registryHook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private let coreEvents = UnsafeMutablePointer<pw_core_events>.allocate(capacity: 1)
    private let registryEvents = UnsafeMutablePointer<pw_registry_events>.allocate(capacity: 1)

    /// Connects to the daemon that the environment names. It lives as long as the process.
    init(on eventLoop: EventLoop) throws(Failure) {
        pw_init(nil, nil)
        guard let loop = pw_loop_new(nil), let context = pw_context_new(loop, nil, 0) else { throw .outOfMemory }
        guard let core = pw_context_connect(context, nil, 0) else {
            let reason = Errno.last
            pw_context_destroy(context)
            pw_loop_destroy(loop)
            throw .cannotConnect(reason)
        }
        guard let registry = cpw_core_get_registry(core) else { throw .outOfMemory }
        (self.loop, self.context, self.core, consumers) = (loop, context, core, Consumers(registry))
        coreHook.initialize(to: spa_hook())
        registryHook.initialize(to: spa_hook())
        coreEvents.initialize(to: pw_core_events())
        coreEvents.pointee.version = UInt32(PW_VERSION_CORE_EVENTS)
        coreEvents.pointee.error = coreError
        registryEvents.initialize(to: pw_registry_events())
        registryEvents.pointee.version = UInt32(PW_VERSION_REGISTRY_EVENTS)
        registryEvents.pointee.global = registryGlobal
        registryEvents.pointee.global_remove = registryGlobalRemove
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = cpw_core_add_listener(core, coreHook, coreEvents, me)
        _ = cpw_registry_add_listener(registry, registryHook, registryEvents, me)
        cpw_loop_enter(loop)
        watch = eventLoop.watch(cpw_loop_get_fd(loop), for: .read) { _ in _ = cpw_loop_iterate(loop, 0) }
    }

    /// What the daemon calls a node for ever, once it has said so.
    func serial(of node: UInt32) -> UInt64? { serials[node] }

    /// Disconnects, so that sources vanish before the process does.
    func close() {
        watch?.cancel()
        _ = pw_core_disconnect(core)
        cpw_loop_leave(loop)
        pw_context_destroy(context)
        pw_loop_destroy(loop)
    }

    fileprivate func failed(_ id: UInt32, _ result: Int32) {
        guard id == UInt32(PW_ID_CORE), result == -EPIPE else { return }
        watch?.cancel()
        onLost?(Errno(result))
    }

    fileprivate func appeared(_ id: UInt32, _ type: String, _ properties: UnsafePointer<spa_dict>?) {
        switch type {
        case "PipeWire:Interface:Node":
            serials[id] = lookUp(properties, PW_KEY_OBJECT_SERIAL).flatMap { UInt64($0) }
        case "PipeWire:Interface:Link":
            guard let output = lookUp(properties, PW_KEY_LINK_OUTPUT_NODE).flatMap({ UInt32($0) }),
                let input = lookUp(properties, PW_KEY_LINK_INPUT_NODE).flatMap({ UInt32($0) })
            else { return }
            consumers.appeared(id, output: output, input: input)
        default: break
        }
    }

    fileprivate func disappeared(_ id: UInt32) {
        serials[id] = nil
        consumers.disappeared(id)
    }

    private func lookUp(_ properties: UnsafePointer<spa_dict>?, _ key: String) -> String? {
        guard let properties, let text = spa_dict_lookup(properties, key) else { return nil }
        return String(cString: text)
    }
}

private func coreError(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _: Int32, _ result: Int32, _: UnsafePointer<CChar>?
) {
    guard let context else { return }
    Unmanaged<PipeWire>.fromOpaque(context).takeUnretainedValue().failed(id, result)
}

private func registryGlobal(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _: UInt32, _ type: UnsafePointer<CChar>?, _: UInt32,
    _ properties: UnsafePointer<spa_dict>?
) {
    guard let context, let type else { return }
    Unmanaged<PipeWire>.fromOpaque(context).takeUnretainedValue().appeared(id, String(cString: type), properties)
}

private func registryGlobalRemove(_ context: UnsafeMutableRawPointer?, _ id: UInt32) {
    guard let context else { return }
    Unmanaged<PipeWire>.fromOpaque(context).takeUnretainedValue().disappeared(id)
}
