// SPDX-License-Identifier: MIT
import Loop
import PipeWire

let log = Log("sound")

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
    private var pipewire: PipeWireLoop?
    private var remote: SoundRemote?
    private var watch: Watch?
    private var feeds: [UInt64: SoundFeed] = [:]

    init(_ loop: EventLoop, bell: FileDescriptor, reports: Inbox<SoundDevices>) {
        (self.loop, self.bell, self.reports) = (loop, bell, reports)
        watch = loop.watch(bell.raw, for: .read) { [unowned self] _ in
            bell.silence()
            for feed in feeds.values { feed.drain() }
        }
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
        guard let pipewire = pipewire ?? (try? PipeWireLoop(on: loop, application: "Vitrine")) else {
            reports.send(SoundDevices(allMissing: "PipeWire's library cannot start: is libspa-0.2-modules installed?"))
            return
        }
        self.pipewire = pipewire
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
            try made.connect(pipewire.context)
            remote = made
        } catch {
            reports.send(SoundLoop.missing("\(error)"))
        }
    }

    private static func missing(_ why: String) -> SoundDevices {
        SoundDevices(allMissing: "PipeWire does not answer (\(why)): 'systemctl --user start pipewire wireplumber' starts it")
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
        watch?.cancel()
        pipewire?.close()
        pipewire = nil
    }
}
