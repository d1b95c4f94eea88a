// SPDX-License-Identifier: MIT
import CPipeWire
import Loop

let log = Log("sound")

/// PipeWire's library, set up once a process and kept.
private let isLibraryReady: Bool = {
    pw_init(nil, nil)
    return true
}()

/// What lives on the sound thread: PipeWire's loop, the connection, and the feeds of tracks.
final class SoundLoop {
    enum Command: Sendable {
        /// Says what devices there are as soon as that is known, and from then on whenever it changes.
        case connect
        case open(SoundRequest)
        case close(id: UInt64)
        case stop
    }

    private unowned let loop: EventLoop
    private let reports: Inbox<SoundDevices>
    private let bell: FileDescriptor
    private var pipewire: UnsafeMutablePointer<pw_loop>?
    private var context: OpaquePointer?
    private var remote: SoundRemote?
    private var watches: [Watch] = []
    private var feeds: [UInt64: SoundFeed] = [:]

    init(_ loop: EventLoop, bell: FileDescriptor, reports: Inbox<SoundDevices>) {
        (self.loop, self.bell, self.reports) = (loop, bell, reports)
        watches.append(
            loop.watch(bell.raw, for: .read) { [unowned self] _ in
                bell.silence()
                for feed in feeds.values { feed.drain() }
            })
    }

    func handle(_ command: Command) {
        switch command {
        case .connect: connect()
        case .open(let request): open(request)
        case .close(let id): feeds.removeValue(forKey: id)?.close()
        case .stop: stop()
        }
    }

    private func connect() {
        if let remote {
            if remote.isKnown { reports.send(remote.devices) }
            return
        }
        _ = isLibraryReady
        guard let context = sharedContext() else {
            reports.send(SoundDevices(allMissing: "PipeWire's library cannot start: is libspa-0.2-modules installed?"))
            return
        }
        let made = SoundRemote()
        made.onKnown = { [unowned self, unowned made] in
            reports.send(made.devices)
            if let core = made.core { for feed in feeds.values { feed.connect(core) } }
        }
        made.onChanged = { [unowned self, unowned made] in
            reports.send(made.devices)
            for feed in feeds.values { feed.devicesChanged() }
        }
        made.onLost = { [unowned self] in loop.later { [weak self] in self?.lose() } }
        do throws(Errno) {
            try made.connect(context)
            remote = made
        } catch {
            reports.send(SoundLoop.missing("\(error)"))
        }
    }

    private static func missing(_ why: String) -> SoundDevices {
        SoundDevices(allMissing: "PipeWire does not answer (\(why)): 'systemctl --user start pipewire wireplumber' starts it")
    }

    private func sharedContext() -> OpaquePointer? {
        if let context { return context }
        guard let pipewire = pw_loop_new(nil) else { return nil }
        guard let context = pw_context_new(pipewire, pw_properties_new_string("application.name=Vitrine"), 0) else {
            pw_loop_destroy(pipewire)
            return nil
        }
        (self.pipewire, self.context) = (pipewire, context)
        cpw_loop_enter(pipewire)
        watches.append(loop.watch(cpw_loop_get_fd(pipewire), for: .read) { _ in _ = cpw_loop_iterate(pipewire, 0) })
        return context
    }

    private func open(_ request: SoundRequest) {
        connect()
        guard let feed = SoundFeed(request, bell: bell, on: loop) else {
            log.error("no memory for an encoder of sound")
            return
        }
        feeds[request.id] = feed
        if let remote, remote.isKnown, let core = remote.core { feed.connect(core) }
    }

    /// PipeWire is gone; what was shared ends with it.
    private func lose() {
        for feed in feeds.values { feed.close() }
        remote?.close()
        remote = nil
        reports.send(SoundLoop.missing("it has gone"))
    }

    private func stop() {
        for feed in feeds.values { feed.close() }
        feeds = [:]
        remote?.close()
        remote = nil
        for watch in watches { watch.cancel() }
        if let context { pw_context_destroy(context) }
        if let pipewire {
            cpw_loop_leave(pipewire)
            pw_loop_destroy(pipewire)
        }
        (context, pipewire) = (nil, nil)
    }
}
