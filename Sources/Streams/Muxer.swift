// SPDX-License-Identifier: MIT
import Encoding
import Sound

/// Packs one stream: says what bytes go before each packet's own.
protocol Muxer {
    /// What goes before the packet, the beginning of the stream included when it is the first.
    mutating func prefix(of packet: Packet) -> [UInt8]
    /// Says whether sound comes with the pictures. Too late for a stream that has begun: it has said what is in it.
    mutating func carrySound(_ carriesSound: Bool)
    /// What goes before the packet of sound; nil when it cannot be in the stream.
    mutating func prefix(of sound: SoundPacket) -> [UInt8]?
}

/// Formats that have no place for sound carry the pictures alone.
extension Muxer {
    mutating func carrySound(_ carriesSound: Bool) {}
    mutating func prefix(of sound: SoundPacket) -> [UInt8]? { nil }
}
