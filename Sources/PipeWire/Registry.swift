// SPDX-License-Identifier: MIT
import CPipeWire
public import Loop

/// What a connection to PipeWire says: which objects there are, that it has answered, that it is gone. Several may listen to one connection.
///
/// Thread: that of the loop that iterates PipeWire. The callbacks' context is unretained: ``close()`` comes before this object goes, and never inside a
/// callback.
public final class Registry {
    /// PipeWire answered everything that was asked before.
    public var onSynced: ((_ sequence: Int32) -> Void)?
    /// The connection is gone.
    public var onLost: (() -> Void)?
    /// There is an object of that type, with properties that can be asked for.
    public var onAnnounced: ((_ id: UInt32, _ type: String, _ property: (String) -> String?) -> Void)?
    /// An object is gone.
    public var onRemoved: ((_ id: UInt32) -> Void)?

    /// PipeWire's own, to bind objects with.
    public let raw: OpaquePointer

    private let core: OpaquePointer
    private let log: Log
    private var isOpen = true
    /// Of core and registry; they must not move.
    private let hooks: UnsafeMutablePointer<spa_hook>

    /// Listens to a connection. What there is becomes known before the next ``sync()`` is answered.
    ///
    /// - Parameter log: gets what PipeWire says of objects.
    public init(_ core: OpaquePointer, log: Log) throws(Errno) {
        guard let raw = cpw_core_get_registry(core) else { throw .last }
        (self.core, self.raw, self.log) = (core, raw, log)
        hooks = .allocate(capacity: 2)
        hooks.initialize(repeating: spa_hook(), count: 2)
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = cpw_core_add_listener(core, hooks, RegistryEvents.core, me)
        _ = cpw_registry_add_listener(raw, hooks + 1, RegistryEvents.registry, me)
    }

    deinit {
        close()
        hooks.deallocate()
    }

    /// Asks for an answer when everything so far is done.
    ///
    /// - Returns: what ``onSynced`` will be called with.
    @discardableResult
    public func sync() -> Int32 { cpw_core_sync(core, 0, 0) }

    /// Listens no more. The connection may stay, for others.
    public func close() {
        guard isOpen else { return }
        isOpen = false
        spa_hook_remove(hooks)
        pw_proxy_destroy(raw)
    }

    fileprivate func done(_ id: UInt32, _ sequence: Int32) {
        if id == UInt32(PW_ID_CORE) { onSynced?(sequence) }
    }

    /// Errors of the core itself are not all the end: destroying a node brings some that say nothing about the connection.
    fileprivate func failed(_ id: UInt32, _ result: Int32, _ message: String) {
        log.debug("PipeWire says of object \(id): \(message) (\(Errno(result)))")
        if id == UInt32(PW_ID_CORE) && result == -EPIPE { onLost?() }
    }
}

/// The tables of callbacks.
///
/// SAFETY: `nonisolated(unsafe)` because they are pointers; each is written once, here, and only read afterwards.
private enum RegistryEvents {
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

private func registry(_ context: UnsafeMutableRawPointer?) -> Registry? {
    context.map { Unmanaged<Registry>.fromOpaque($0).takeUnretainedValue() }
}

private func onCoreDone(_ context: UnsafeMutableRawPointer?, _ id: UInt32, _ sequence: Int32) { registry(context)?.done(id, sequence) }

private func onCoreError(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _ sequence: Int32, _ result: Int32, _ message: UnsafePointer<CChar>?
) {
    registry(context)?.failed(id, result, message.map { String(cString: $0) } ?? "")
}

private func onGlobal(
    _ context: UnsafeMutableRawPointer?, _ id: UInt32, _ permissions: UInt32, _ type: UnsafePointer<CChar>?, _ version: UInt32,
    _ properties: UnsafePointer<spa_dict>?
) {
    registry(context)?.onAnnounced?(id, type.map { String(cString: $0) } ?? "") { key in
        properties.flatMap { spa_dict_lookup($0, key) }.map { String(cString: $0) }
    }
}

private func onGlobalRemove(_ context: UnsafeMutableRawPointer?, _ id: UInt32) { registry(context)?.onRemoved?(id) }
