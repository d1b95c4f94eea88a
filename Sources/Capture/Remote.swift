// SPDX-License-Identifier: MIT
import CPipeWire
import Glibc
import Loop

/// A connection to PipeWire. The last that lets go of it ends it: not inside a callback, and after everything that was made on it.
///
/// Thread: capture.
final class RemoteConnection {
    /// The connection's core; nil before it was made.
    private(set) var core: OpaquePointer?

    deinit {
        if let core { pw_core_disconnect(core) }
    }

    /// Connects, unless it was done.
    ///
    /// - Parameter remote: the portal's descriptor, which is duplicated.
    /// - Returns: the core.
    func connect(_ context: OpaquePointer, _ remote: FileDescriptor) throws(CaptureError) -> OpaquePointer {
        if let core { return core }
        let descriptor: Int32
        do throws(Errno) {
            descriptor = try remote.duplicateRaw()
        } catch {
            throw .cannotConnect(error)
        }
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout.size(ofValue: type))
        // PipeWire would wait for ever for something that is no socket.
        guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 else {
            let reason = Errno.last
            Glibc.close(descriptor)
            throw .cannotConnect(reason)
        }
        // The descriptor becomes PipeWire's.
        guard let core = pw_context_connect_fd(context, descriptor, nil, 0) else { throw .cannotConnect(.last) }
        self.core = core
        return core
    }
}

/// What a connection announces of one granted node. Several nodes may have one connection: each hears what concerns all of it.
///
/// Thread: capture. The callbacks' context is unretained: ``close()`` comes before this object goes, and never inside a callback.
final class Remote {
    /// PipeWire answered everything that was asked before.
    var onSynced: ((Int32) -> Void)?
    /// The connection is gone.
    var onLost: (() -> Void)?
    /// The granted node is gone.
    var onNodeRemoved: (() -> Void)?
    /// The granted node may offer something else than before.
    var onFormatsChanged: (() -> Void)?
    /// The granted node is broken, in PipeWire's words.
    var onNodeFailed: ((String) -> Void)?

    /// The granted node's serial, once it was announced.
    private(set) var serial: UInt64?
    /// Whether the granted node is there.
    private(set) var hasNode = false
    /// What the node offers, as far as it was asked.
    private(set) var formats = ProducerFormats()
    /// The connection, for streams.
    var core: OpaquePointer? { registry == nil ? nil : connection?.core }

    private var connection: RemoteConnection?
    private let node: UInt32
    private let wantedSerial: UInt64?
    private var registry: OpaquePointer?
    private var proxy: OpaquePointer?
    /// Of core, registry and node; they must not move.
    private let hooks: UnsafeMutablePointer<spa_hook>

    /// - Parameter serial: the node must have it, when it is known; numbers are used again.
    init(node: UInt32, serial: UInt64?, on connection: RemoteConnection) {
        (self.node, wantedSerial, self.connection) = (node, serial, connection)
        hooks = .allocate(capacity: 3)
        hooks.initialize(repeating: spa_hook(), count: 3)
    }

    deinit {
        close()
        hooks.deallocate()
    }

    /// Connects. What there is becomes known before the next ``sync()`` is answered.
    func connect(_ context: OpaquePointer, _ remote: FileDescriptor) throws(CaptureError) {
        guard let core = try connection?.connect(context, remote) else { return }
        let me = Unmanaged.passUnretained(self).toOpaque()
        guard let registry = cpw_core_get_registry(core) else { throw .cannotConnect(.last) }
        self.registry = registry
        _ = cpw_core_add_listener(core, hooks, RemoteEvents.core, me)
        _ = cpw_registry_add_listener(registry, hooks + 1, RemoteEvents.registry, me)
    }

    /// Asks for an answer when everything so far is done.
    ///
    /// - Returns: what ``onSynced`` will be called with; nil without a connection.
    func sync() -> Int32? { core.map { cpw_core_sync($0, 0, 0) } }

    /// Asks the node what it offers, at first or again. The answer is complete before the next ``sync()`` is answered.
    func askForFormats() {
        guard let registry, hasNode, let proxy = proxy ?? cpw_registry_bind_node(registry, node) else { return }
        if self.proxy == nil {
            _ = cpw_node_add_listener(proxy, hooks + 2, RemoteEvents.node, Unmanaged.passUnretained(self).toOpaque())
        }
        self.proxy = proxy
        formats = ProducerFormats()
        _ = cpw_node_enum_params(proxy, SPA_PARAM_EnumFormat.rawValue)
    }

    /// Lets go of the connection, which ends when nobody else has it.
    func close() {
        if let proxy { pw_proxy_destroy(proxy) }
        if let registry {
            // The core may stay, for others.
            spa_hook_remove(hooks)
            pw_proxy_destroy(registry)
        }
        (proxy, registry, connection) = (nil, nil, nil)
    }

    // MARK: - What PipeWire says

    fileprivate func done(_ id: UInt32, _ sequence: Int32) {
        if id == UInt32(PW_ID_CORE) { onSynced?(sequence) }
    }

    /// Errors of the core itself are not all the end: destroying a node brings some that say nothing about the connection.
    fileprivate func failed(_ id: UInt32, _ result: Int32, _ message: String) {
        log.debug("PipeWire says of object \(id): \(message) (\(Errno(result)))")
        if id == UInt32(PW_ID_CORE) && result == -EPIPE { onLost?() }
    }

    fileprivate func announced(_ id: UInt32, isNode: Bool, serial: UInt64?) {
        guard id == node, isNode, wantedSerial == nil || serial == nil || wantedSerial == serial else { return }
        (hasNode, self.serial) = (true, serial)
    }

    fileprivate func removed(_ id: UInt32) {
        guard id == node, hasNode else { return }
        hasNode = false
        onNodeRemoved?()
    }

    fileprivate func informed(_ info: UnsafePointer<pw_node_info>) {
        if info.pointee.state == PW_NODE_STATE_ERROR {
            onNodeFailed?(info.pointee.error.map { String(cString: $0) } ?? "no reason given")
        } else if info.pointee.change_mask & UInt64(PW_NODE_CHANGE_MASK_PARAMS) != 0 {
            onFormatsChanged?()
        }
    }

    fileprivate func offered(_ param: UnsafePointer<spa_pod>) { formats.add(param) }
}

/// The tables of callbacks.
///
/// SAFETY: `nonisolated(unsafe)` because they are pointers; each is written once, here, and only read afterwards.
private enum RemoteEvents {
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

    nonisolated(unsafe) static let node = {
        let events = UnsafeMutablePointer<pw_node_events>.allocate(capacity: 1)
        events.initialize(to: pw_node_events())
        events.pointee.version = UInt32(PW_VERSION_NODE_EVENTS)
        events.pointee.info = onNodeInfo
        events.pointee.param = onNodeParam
        return events
    }()
}

/// `PW_TYPE_INTERFACE_Node`, which is put together from macros that Swift cannot import.
private let nodeInterface = "PipeWire:Interface:Node"

private func remote(_ context: UnsafeMutableRawPointer?) -> Remote? {
    context.map { Unmanaged<Remote>.fromOpaque($0).takeUnretainedValue() }
}

private func onCoreDone(_ context: UnsafeMutableRawPointer?, _ id: UInt32, _ sequence: Int32) { remote(context)?.done(id, sequence) }

private func onCoreError(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _ sequence: Int32, _ result: Int32, _ message: UnsafePointer<CChar>?
) {
    remote(context)?.failed(id, result, message.map { String(cString: $0) } ?? "")
}

private func onGlobal(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _ permissions: UInt32, _ type: UnsafePointer<CChar>?, _ version: UInt32,
    _ properties: UnsafePointer<spa_dict>?
) {
    let serial = properties.flatMap { spa_dict_lookup($0, PW_KEY_OBJECT_SERIAL) }.flatMap { UInt64(String(cString: $0)) }
    remote(context)?.announced(id, isNode: type.map { String(cString: $0) } == nodeInterface, serial: serial)
}

private func onGlobalRemove(_ context: UnsafeMutableRawPointer?, _ id: UInt32) { remote(context)?.removed(id) }

private func onNodeInfo(_ context: UnsafeMutableRawPointer?, _ info: UnsafePointer<pw_node_info>?) {
    if let info { remote(context)?.informed(info) }
}

private func onNodeParam(
    _ context: UnsafeMutableRawPointer?, _ sequence: Int32, _ id: UInt32, _ index: UInt32, _ next: UInt32, _ param: UnsafePointer<spa_pod>?
) {
    if let param, id == SPA_PARAM_EnumFormat.rawValue { remote(context)?.offered(param) }
}
