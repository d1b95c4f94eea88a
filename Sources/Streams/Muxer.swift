// SPDX-License-Identifier: MIT
import Encoding

/// Packs one stream: says what bytes go before each packet's own.
protocol Muxer {
    /// What goes before the packet, the beginning of the stream included when it is the first.
    mutating func prefix(of packet: Packet) -> [UInt8]
}
