// SPDX-License-Identifier: MIT
import CPipeWire
import Glibc
import Loop

/// The connection to the PipeWire daemon, iterated on an event loop, and what the daemon says about links.
///
/// Thread: the loop's.
final class PipeWire {
    enum Failure: Error {
        case cannotConnect(Errno)
        case outOfMemory
    }

    /// A link between two nodes that is or was active.
    private final class Link {
        let output: UInt32
        let proxy: OpaquePointer
        let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
        unowned let owner: PipeWire
        var state = PW_LINK_STATE_INIT
        var wasActive = false

        init(output: UInt32, proxy: OpaquePointer, owner: PipeWire) {
            (self.output, self.proxy, self.owner) = (output, proxy, owner)
            hook.initialize(to: spa_hook())
        }

        deinit { hook.deallocate() }
    }

    let core: OpaquePointer
    /// The daemon is gone; nothing of this connection works any more.
    var onLost: ((Errno) -> Void)?
    /// A link that comes out of the node with this id has begun to let pictures through, at first or again.
    var onConsumer: ((_ node: UInt32) -> Void)?

    private let loop: UnsafeMutablePointer<pw_loop>
    private let context: OpaquePointer
    private let registry: OpaquePointer
    private var watch: Watch?
    private var links: [UInt32: Link] = [:]
    private var serials: [UInt32: UInt64] = [:]
    private let coreHook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private let registryHook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
    private let coreEvents = UnsafeMutablePointer<pw_core_events>.allocate(capacity: 1)
    private let registryEvents = UnsafeMutablePointer<pw_registry_events>.allocate(capacity: 1)
    private let linkEvents = UnsafeMutablePointer<pw_link_events>.allocate(capacity: 1)

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
        (self.loop, self.context, self.core, self.registry) = (loop, context, core, registry)
        coreHook.initialize(to: spa_hook())
        registryHook.initialize(to: spa_hook())
        coreEvents.initialize(to: pw_core_events())
        coreEvents.pointee.version = UInt32(PW_VERSION_CORE_EVENTS)
        coreEvents.pointee.error = coreError
        registryEvents.initialize(to: pw_registry_events())
        registryEvents.pointee.version = UInt32(PW_VERSION_REGISTRY_EVENTS)
        registryEvents.pointee.global = registryGlobal
        registryEvents.pointee.global_remove = registryGlobalRemove
        linkEvents.initialize(to: pw_link_events())
        linkEvents.pointee.version = UInt32(PW_VERSION_LINK_EVENTS)
        linkEvents.pointee.info = linkInfo
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = cpw_core_add_listener(core, coreHook, coreEvents, me)
        _ = cpw_registry_add_listener(registry, registryHook, registryEvents, me)
        cpw_loop_enter(loop)
        watch = eventLoop.watch(cpw_loop_get_fd(loop), for: .read) { _ in _ = cpw_loop_iterate(loop, 0) }
    }

    /// How many links come out of a node that have a format and buffers.
    func consumers(of node: UInt32) -> Int {
        links.values.count { $0.output == node && $0.state.rawValue >= PW_LINK_STATE_PAUSED.rawValue }
    }

    /// How many of them let pictures through.
    func activeConsumers(of node: UInt32) -> Int { links.values.count { $0.output == node && $0.state == PW_LINK_STATE_ACTIVE } }

    /// What the daemon calls a node for ever, once it has said so.
    func serial(of node: UInt32) -> UInt64? { serials[node] }

    /// Cuts every link that comes out of a node.
    func unlink(_ node: UInt32) {
        for (id, link) in links where link.output == node { _ = cpw_registry_destroy(registry, id) }
    }

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
                let proxy = cpw_registry_bind_link(registry, id)
            else { return }
            let link = Link(output: output, proxy: proxy, owner: self)
            links[id] = link
            _ = cpw_link_add_listener(proxy, link.hook, linkEvents, Unmanaged.passUnretained(link).toOpaque())
        default: break
        }
    }

    fileprivate func disappeared(_ id: UInt32) {
        serials[id] = nil
        guard let link = links.removeValue(forKey: id) else { return }
        spa_hook_remove(link.hook)
        pw_proxy_destroy(link.proxy)
    }

    private func lookUp(_ properties: UnsafePointer<spa_dict>?, _ key: String) -> String? {
        guard let properties, let text = spa_dict_lookup(properties, key) else { return nil }
        return String(cString: text)
    }

    private func changed(_ link: Link, _ state: pw_link_state) {
        let old = link.state
        link.state = state
        // After a renegotiation the link of a consumer that was there before comes back no further than to paused.
        let isNew = state == PW_LINK_STATE_ACTIVE && old != PW_LINK_STATE_ACTIVE
        let isBack = state == PW_LINK_STATE_PAUSED && old.rawValue < state.rawValue && link.wasActive
        link.wasActive = link.wasActive || isNew
        if isNew || isBack { onConsumer?(link.output) }
    }

    fileprivate static func changed(_ context: UnsafeMutableRawPointer, _ state: pw_link_state) {
        let link = Unmanaged<Link>.fromOpaque(context).takeUnretainedValue()
        link.owner.changed(link, state)
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

private func linkInfo(_ context: UnsafeMutableRawPointer?, _ info: UnsafePointer<pw_link_info>?) {
    guard let context, let info else { return }
    PipeWire.changed(context, info.pointee.state)
}
