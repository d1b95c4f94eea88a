// SPDX-License-Identifier: MIT
import CPipeWire
import Loop

/// The sound of one track: its inputs, put together and packed.
///
/// Thread: the sound thread's.
final class SoundFeed {
    /// How long the session manager gets to know a device before it is asked for it again.
    private static let retryDelay = Duration.milliseconds(300)
    /// How often it is asked without any device having come or gone.
    private static let greatestRetryCount = 10

    private unowned let loop: EventLoop
    private let request: SoundRequest
    private let ports: [SoundPort]
    private let encoder: OpusStream
    private var mixer: Mixer
    private var retry: Timer?
    private var retriesLeft = SoundFeed.greatestRetryCount
    private var core: OpaquePointer?

    /// - Returns: nil without memory for an encoder.
    init?(_ request: SoundRequest, bell: FileDescriptor, on loop: EventLoop) {
        guard let encoder = OpusStream() else { return nil }
        (self.request, self.encoder, self.loop) = (request, encoder, loop)
        let inputs = request.mix.inputs
        ports = inputs.map { SoundPort($0, bell: bell) }
        mixer = Mixer(SampleClock(epoch: .now), inputCount: inputs.count)
        for port in ports { port.onBroken = { [unowned self, unowned port] in broke(port) } }
    }

    func connect(_ core: OpaquePointer) {
        self.core = core
        for port in ports where !port.isConnected {
            if !port.connect(core) { broke(port) }
        }
    }

    /// A device came or went: an input that had none may have one now.
    func devicesChanged() {
        retriesLeft = SoundFeed.greatestRetryCount
        if ports.contains(where: { !$0.isConnected }) { scheduleRetry() }
    }

    func close() {
        retry?.cancel()
        core = nil
        for port in ports { port.close() }
    }

    /// Puts together what has come, and hands it over.
    func drain() {
        for (index, port) in ports.enumerated() {
            port.ring.drain { block, time in mixer.add(block, at: time, to: index) }
        }
        while let frame = mixer.next() {
            guard let bytes = encoder.encode(frame.samples) else { continue }
            request.deliver(SoundPacket(bytes: bytes, time: frame.time, period: request.period))
        }
    }

    private func broke(_ port: SoundPort) {
        // Inside a callback of the stream.
        loop.later { [weak self, weak port] in
            port?.close()
            self?.scheduleRetry()
        }
    }

    private func scheduleRetry() {
        guard retry == nil, core != nil, retriesLeft > 0 else { return }
        retriesLeft -= 1
        retry = loop.after(SoundFeed.retryDelay) { [unowned self] in
            retry = nil
            if let core { connect(core) }
        }
    }
}

/// What a track asks for.
struct SoundRequest: Sendable {
    let id: UInt64
    let mix: SoundMix
    /// See ``SoundGate``.
    let period: UInt64
    /// Called on the sound thread.
    let deliver: @Sendable (SoundPacket) -> Void
}
