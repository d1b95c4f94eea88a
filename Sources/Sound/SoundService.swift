// SPDX-License-Identifier: MIT
public import Loop

/// The sound of all tracks, and what devices there are for it.
///
/// Its thread and its connection to PipeWire exist only while a track sends sound, or while somebody waits to hear what there is.
///
/// Thread: the main loop's.
public final class SoundService {
    /// How long PipeWire has to say what devices there are.
    private static let patience = Duration.seconds(3)
    /// How long one waits for it who wants no sound now.
    private static let glancePatience = Duration.seconds(1)

    /// Names what a track takes sound by.
    public struct FeedID: Sendable {
        let number: UInt64
    }

    /// What there was when it was last looked.
    public private(set) var devices = SoundDevices.unseen
    /// Called when ``devices`` has changed.
    public var onChanged: (() -> Void)?

    private let loop: EventLoop
    private let reports: Inbox<SoundDevices>
    private var thread: (thread: LoopThread, commands: Inbox<SoundLoop.Command>)?
    private var waiting: [() -> Void] = []
    private var limit: Timer?
    /// Whether PipeWire was asked and has not answered. Until it does, nobody waits for it who wants no sound now.
    private var isUnanswered = false
    private var open: Set<UInt64> = []
    private var lastID: UInt64 = 0
    private var isShutDown = false

    /// - Parameter loop: the main loop, where all calls and events come.
    public init(on loop: EventLoop) {
        self.loop = loop
        final class Receiver { weak var service: SoundService? }
        let receiver = Receiver()
        reports = loop.makeInbox { receiver.service?.noteAnswer($0) }
        receiver.service = self
    }

    /// Looks what devices there are, and calls back with ``devices`` up to date.
    public func look(_ completion: @escaping () -> Void) {
        guard let commands = startedThread() else { return completion() }
        waiting.append(completion)
        if limit == nil {
            limit = loop.after(SoundService.patience) { [unowned self] in
                isUnanswered = true
                noteDevices(SoundDevices(allMissing: "PipeWire does not answer: 'systemctl --user restart pipewire wireplumber' may help"))
            }
        }
        commands.send(.connect)
    }

    /// The same for one who only wants to know: calls back within a second, at once while PipeWire hangs, with what is known by then.
    /// ``onChanged`` follows when that was out of date.
    public func glance(_ completion: @escaping () -> Void) {
        if isUnanswered {
            look {}
            return completion()
        }
        var waits: Timer?
        let once = {
            guard waits != nil else { return }
            waits?.cancel()
            waits = nil
            completion()
        }
        waits = loop.after(SoundService.glancePatience) { [unowned self] in
            isUnanswered = true
            once()
        }
        look(once)
    }

    /// Begins to take sound.
    ///
    /// - Parameters:
    ///   - gate: opened for what is taken from now on.
    ///   - deliver: called on another thread, with each packet.
    /// - Returns: for ``close(_:)``; nil when there is no thread to be had.
    public func open(_ mix: SoundMix, _ gate: SoundGate, deliver: @escaping @Sendable (SoundPacket) -> Void) -> FeedID? {
        guard let commands = startedThread() else { return nil }
        lastID += 1
        gate.open(for: lastID)
        open.insert(lastID)
        commands.send(.open(SoundRequest(id: lastID, mix: mix, period: lastID, deliver: deliver)))
        return FeedID(number: lastID)
    }

    /// Takes no more sound.
    public func close(_ id: FeedID) {
        guard open.remove(id.number) != nil else { return }
        thread?.commands.send(.close(id: id.number))
        endThreadIfUnused()
    }

    /// Ends everything, without events.
    public func shutdown() {
        isShutDown = true
        (waiting, open) = ([], [])
        endThreadIfUnused()
    }

    private func noteAnswer(_ devices: SoundDevices) {
        isUnanswered = false
        noteDevices(devices)
    }

    private func noteDevices(_ devices: SoundDevices) {
        limit?.cancel()
        limit = nil
        let isNews = devices != self.devices
        self.devices = devices
        let completions = waiting
        waiting = []
        for completion in completions { completion() }
        if isNews { onChanged?() }
        endThreadIfUnused()
    }

    private func startedThread() -> Inbox<SoundLoop.Command>? {
        if isShutDown { return nil }
        if let thread { return thread.commands }
        let reports = self.reports
        do throws(Errno) {
            let bell = try FileDescriptor.makeBell()
            let started = try LoopThread.start(name: "sound") { loop in
                let sound = SoundLoop(loop, bell: bell, reports: reports)
                return loop.makeInbox { (command: SoundLoop.Command) in sound.handle(command) }
            }
            thread = (started.thread, started.result)
            return started.result
        } catch {
            log.error("no thread for sound: \(error)")
            return nil
        }
    }

    private func endThreadIfUnused() {
        guard waiting.isEmpty, open.isEmpty, let thread else { return }
        limit?.cancel()
        limit = nil
        thread.commands.send(.stop)
        thread.thread.stop()
        self.thread = nil
    }
}
