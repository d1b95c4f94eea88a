// SPDX-License-Identifier: MIT
import CPipeWire
import Glibc
import Loop
import PipeWire

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
    /// `PW_TYPE_INTERFACE_Node`, which is put together from macros that Swift cannot import.
    private static let nodeInterface = "PipeWire:Interface:Node"

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
    private var registry: Registry?
    private var proxy: OpaquePointer?
    /// Of the node; it must not move.
    private let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)

    /// - Parameter serial: the node must have it, when it is known; numbers are used again.
    init(node: UInt32, serial: UInt64?, on connection: RemoteConnection) {
        (self.node, wantedSerial, self.connection) = (node, serial, connection)
        hook.initialize(to: spa_hook())
    }

    deinit {
        close()
        hook.deallocate()
    }

    /// Connects. What there is becomes known before the next ``sync()`` is answered.
    func connect(_ context: OpaquePointer, _ remote: FileDescriptor) throws(CaptureError) {
        guard let core = try connection?.connect(context, remote) else { return }
        let made: Registry
        do throws(Errno) {
            made = try Registry(core, log: log)
        } catch {
            throw .cannotConnect(error)
        }
        registry = made
        made.onSynced = { [unowned self] in onSynced?($0) }
        made.onLost = { [unowned self] in onLost?() }
        made.onAnnounced = { [unowned self] in announced($0, $1, $2) }
        made.onRemoved = { [unowned self] in removed($0) }
    }

    /// Asks for an answer when everything so far is done.
    ///
    /// - Returns: what ``onSynced`` will be called with; nil without a connection.
    func sync() -> Int32? { registry?.sync() }

    /// Asks the node what it offers, at first or again. The answer is complete before the next ``sync()`` is answered.
    func askForFormats() {
        guard let registry, hasNode, let proxy = proxy ?? cpw_registry_bind_node(registry.raw, node) else { return }
        if self.proxy == nil {
            _ = cpw_node_add_listener(proxy, hook, RemoteEvents.node, Unmanaged.passUnretained(self).toOpaque())
        }
        self.proxy = proxy
        formats = ProducerFormats()
        _ = cpw_node_enum_params(proxy, SPA_PARAM_EnumFormat.rawValue)
    }

    /// Lets go of the connection, which ends when nobody else has it.
    func close() {
        if let proxy { pw_proxy_destroy(proxy) }
        registry?.close()
        (proxy, registry, connection) = (nil, nil, nil)
    }

    // MARK: - What PipeWire says

    private func announced(_ id: UInt32, _ type: String, _ property: (String) -> String?) {
        guard id == node, type == Remote.nodeInterface else { return }
        let serial = property(PW_KEY_OBJECT_SERIAL).flatMap { UInt64($0) }
        guard wantedSerial == nil || serial == nil || wantedSerial == serial else { return }
        (hasNode, self.serial) = (true, serial)
    }

    private func removed(_ id: UInt32) {
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

/// The table of callbacks.
///
/// SAFETY: `nonisolated(unsafe)` because it is a pointer; written once, here, and only read afterwards.
private enum RemoteEvents {
    nonisolated(unsafe) static let node = {
        let events = UnsafeMutablePointer<pw_node_events>.allocate(capacity: 1)
        events.initialize(to: pw_node_events())
        events.pointee.version = UInt32(PW_VERSION_NODE_EVENTS)
        events.pointee.info = onNodeInfo
        events.pointee.param = onNodeParam
        return events
    }()
}

private func remote(_ context: UnsafeMutableRawPointer?) -> Remote? {
    context.map { Unmanaged<Remote>.fromOpaque($0).takeUnretainedValue() }
}

private func onNodeInfo(_ context: UnsafeMutableRawPointer?, _ info: UnsafePointer<pw_node_info>?) {
    if let info { remote(context)?.informed(info) }
}

private func onNodeParam(
    _ context: UnsafeMutableRawPointer?, _ sequence: Int32, _ id: UInt32, _ index: UInt32, _ next: UInt32, _ param: UnsafePointer<spa_pod>?
) {
    if let param, id == SPA_PARAM_EnumFormat.rawValue { remote(context)?.offered(param) }
}
