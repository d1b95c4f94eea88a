// SPDX-License-Identifier: MIT
public import Loop
import Synchronization

/// Twenty milliseconds of sound, as Opus. Its bytes are shared by all that read it and never copied.
///
/// Spec: [RFC 6716](https://www.rfc-editor.org/rfc/rfc6716).
public struct SoundPacket: Sendable {
    /// An Opus packet.
    public let bytes: [UInt8]
    /// When its first sample was taken.
    public let time: Instant
    /// See ``SoundGate``.
    let period: UInt64

    /// A packet of those bytes, of a gate's period.
    public init(bytes: [UInt8], time: Instant, period: UInt64) { (self.bytes, self.time, self.period) = (bytes, time, period) }
}

/// Says which packets may still be written: none that was taken before a mute, or in it.
///
/// Thread: any.
public final class SoundGate: Sendable {
    /// The present period; 0 while nothing may pass.
    private let period = Atomic<UInt64>(0)

    /// A closed gate.
    public init() {}

    /// From now on packets of this period pass, and no others.
    public func open(for period: UInt64) { self.period.store(period, ordering: .sequentiallyConsistent) }

    /// From now on nothing passes.
    public func close() { period.store(0, ordering: .sequentiallyConsistent) }

    /// Whether a packet may be written now.
    public func lets(_ packet: SoundPacket) -> Bool { period.load(ordering: .sequentiallyConsistent) == packet.period }
}
