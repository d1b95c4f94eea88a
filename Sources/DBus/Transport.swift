// SPDX-License-Identifier: MIT
import CDBus
import Loop

/// A connection of the library, driven by an event loop.
///
/// Messages are popped instead of dispatched: the library's dispatcher must not be entered again from a handler, and
/// who waits in one for the answer to a call does that. Its timeouts are not used either: they only serve the library's own pending calls.
///
/// Ownership: closes the library's connection in ``close()``, which the owner calls before it lets go.
final class Transport {
    /// Gets every message, one at a time, from the loop.
    var receive: ((Message) -> Void)?

    private let loop: EventLoop
    private var raw: OpaquePointer?
    private var watches: [OpaquePointer: Watch] = [:]
    private var isDeliveryScheduled = false
    private var streak = 0

    /// Connects and says Hello. Blocks meanwhile: for the program's start only.
    static func open(_ address: BusAddress, on loop: EventLoop) throws(DBusError) -> (transport: Transport, uniqueName: BusName) {
        guard let text = address.text else {
            throw .cannotConnect("neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set")
        }
        var error = CDBus.DBusError()
        dbus_error_init(&error)
        defer { dbus_error_free(&error) }
        guard let raw = dbus_connection_open_private(text, &error) else { throw cannotConnect(error) }
        dbus_connection_set_exit_on_disconnect(raw, 0)
        guard dbus_bus_register(raw, &error) != 0, let name = dbus_bus_get_unique_name(raw).flatMap({ BusName(String(cString: $0)) }) else {
            dbus_connection_close(raw)
            dbus_connection_unref(raw)
            throw cannotConnect(error)
        }
        return (try Transport(owning: raw, loop), name)
    }

    private init(owning raw: OpaquePointer, _ loop: EventLoop) throws(DBusError) {
        (self.raw, self.loop) = (raw, loop)
        let context = Unmanaged.passUnretained(self).toOpaque()
        dbus_connection_set_dispatch_status_function(raw, dispatchStatusChanged, context, nil)
        guard dbus_connection_set_watch_functions(raw, addWatch, removeWatch, toggleWatch, context, nil) != 0 else {
            close()
            throw .outOfMemory
        }
        scheduleDelivery()
    }

    /// Whether the bus is still there, as far as is known.
    var isConnected: Bool { raw.map { dbus_connection_get_is_connected($0) != 0 } ?? false }

    /// What the bus has not taken yet.
    var queuedBytes: Int { raw.map { dbus_connection_get_outgoing_size($0) } ?? 0 }

    /// Queues a message; the loop writes it.
    ///
    /// - Returns: its serial number.
    @discardableResult
    func send(_ message: Message) throws(DBusError) -> UInt32 {
        guard let raw, isConnected else { throw .disconnected }
        guard dbus_message_contains_unix_fds(message.raw) == 0 || dbus_connection_can_send_type(raw, Int32(CDBUS_TYPE_UNIX_FD)) != 0 else {
            throw .malformed("This bus does not carry descriptors.")
        }
        var serial: dbus_uint32_t = 0
        guard dbus_connection_send(raw, message.raw, &serial) != 0 else { throw .outOfMemory }
        return serial
    }

    /// Writes what is queued; waits for a bus that does not read, but no longer than `limit`.
    func flush(within limit: Duration) {
        let deadline = Instant.now + limit
        while let raw, dbus_connection_has_messages_to_send(raw) != 0 {
            let left = (deadline - .now).nanoseconds / 1_000_000
            guard left > 0, dbus_connection_read_write(raw, Int32(clamping: left)) != 0 else { return }
        }
    }

    /// Ends the connection. Nothing is received afterwards.
    func close() {
        guard let raw else { return }
        dbus_connection_set_dispatch_status_function(raw, nil, nil, nil)
        dbus_connection_set_watch_functions(raw, nil, nil, nil, nil, nil)
        self.raw = nil
        for watch in watches.values { watch.cancel() }
        watches = [:]
        receive = nil
        dbus_connection_close(raw)
        dbus_connection_unref(raw)
    }

    // MARK: Messages

    fileprivate func scheduleDelivery() {
        guard let raw, !isDeliveryScheduled else { return }
        let status = dbus_connection_get_dispatch_status(raw)
        guard status != DBUS_DISPATCH_COMPLETE else { return }
        isDeliveryScheduled = true
        let body = { [weak self] in
            self?.isDeliveryScheduled = false
            self?.deliver()
        }
        if status == DBUS_DISPATCH_NEED_MEMORY {
            loop.after(.milliseconds(100), body)
        } else if streak < 64 {
            loop.later(body)
        } else {
            // Whoever floods us must not keep the loop from everything else.
            streak = 0
            loop.after(.zero, body)
        }
    }

    private func deliver() {
        guard let raw else { return }
        guard let message = dbus_connection_pop_message(raw).map(Message.init(owning:)) else {
            streak = 0
            return scheduleDelivery()
        }
        streak += 1
        // Before the handler runs: it may run the loop itself.
        scheduleDelivery()
        receive?(message)
    }

    // MARK: Watches

    fileprivate func update(_ watch: OpaquePointer) {
        guard dbus_watch_get_enabled(watch) != 0 else { return remove(watch) }
        guard watches[watch] == nil else { return }
        let flags = dbus_watch_get_flags(watch)
        var interest: Readiness = []
        if flags & DBUS_WATCH_READABLE.rawValue != 0 { interest.insert(.read) }
        if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { interest.insert(.write) }
        watches[watch] = loop.watch(dbus_watch_get_unix_fd(watch), for: interest) { [weak self] readiness in
            self?.handle(watch, readiness)
        }
    }

    fileprivate func remove(_ watch: OpaquePointer) { watches.removeValue(forKey: watch)?.cancel() }

    private func handle(_ watch: OpaquePointer, _ readiness: Readiness) {
        var flags: UInt32 = 0
        if readiness.contains(.read) { flags |= DBUS_WATCH_READABLE.rawValue }
        if readiness.contains(.write) { flags |= DBUS_WATCH_WRITABLE.rawValue }
        if readiness.contains(.hangUp) { flags |= DBUS_WATCH_HANGUP.rawValue }
        if !readiness.isDisjoint(with: .error) { flags |= DBUS_WATCH_ERROR.rawValue }
        dbus_watch_handle(watch, flags)
        scheduleDelivery()
    }
}

private func cannotConnect(_ error: CDBus.DBusError) -> DBusError {
    .cannotConnect(error.message.map { String(cString: $0) } ?? "The bus gave no name to this connection.")
}

private func transport(_ context: UnsafeMutableRawPointer?) -> Transport? {
    context.map { Unmanaged<Transport>.fromOpaque($0).takeUnretainedValue() }
}

private func addWatch(_ watch: OpaquePointer?, _ context: UnsafeMutableRawPointer?) -> dbus_bool_t {
    guard let watch else { return 0 }
    transport(context)?.update(watch)
    return 1
}

private func removeWatch(_ watch: OpaquePointer?, _ context: UnsafeMutableRawPointer?) {
    if let watch { transport(context)?.remove(watch) }
}

private func toggleWatch(_ watch: OpaquePointer?, _ context: UnsafeMutableRawPointer?) {
    if let watch { transport(context)?.update(watch) }
}

private func dispatchStatusChanged(_: OpaquePointer?, _ status: DBusDispatchStatus, _ context: UnsafeMutableRawPointer?) {
    if status != DBUS_DISPATCH_COMPLETE { transport(context)?.scheduleDelivery() }
}
