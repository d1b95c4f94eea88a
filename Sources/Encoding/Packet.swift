// SPDX-License-Identifier: MIT
public import Frames
public import Loop

/// One encoded picture. Its bytes are shared by all that read it and never copied.
public final class Packet: Sendable {
    /// The codec's bytes.
    public let bytes: [UInt8]
    /// When the picture was taken. Times of one encoding grow by at least a millisecond from packet to packet, farewells left aside.
    public let time: Instant
    /// When its frame was shown by the producer's own time stamp, or reached the program where that cannot be; nil when no frame caused it.
    public let origin: Instant?
    /// Whether decoding may begin here.
    public let isKeyFrame: Bool
    /// Whether it shows the placeholder: only for those who have had a real picture.
    public let isPlaceholder: Bool
    /// Whether it is the last picture once more, for those alone who asked for it. No later packet builds on it.
    public let isRepetition: Bool
    /// Whether this repetition is for streams that end, and have had the very picture: nobody else may see it, since it may be hidden by now.
    public let isFarewell: Bool
    /// Pixels; the same for all packets of an encoding.
    public let size: PixelSize
    /// What may look different from the packet before, of raw pictures.
    public let damage: Damage
    /// Which of the times it belongs to that a mute, or the end of a broadcast, divides an encoding into. Each begins with a key frame.
    public let period: Int
    /// Number of the frame that it shows; of the placeholder, of the last one before.
    public let frame: UInt64
    /// The most pictures a second that its encoding makes at present; 0 is no limit.
    public let frameRate: UInt32

    /// A packet of those bytes.
    public init(
        bytes: [UInt8], time: Instant, origin: Instant? = nil, isKeyFrame: Bool, isPlaceholder: Bool = false, isRepetition: Bool = false,
        isFarewell: Bool = false,
        size: PixelSize, damage: Damage = .everything, period: Int = 0, frame: UInt64 = 0, frameRate: UInt32 = 0
    ) {
        (self.bytes, self.time, self.origin, self.size) = (bytes, time, origin, size)
        (self.isKeyFrame, self.isPlaceholder, self.isRepetition) = (isKeyFrame, isPlaceholder, isRepetition)
        (self.damage, self.period, self.frame, self.isFarewell, self.frameRate) = (damage, period, frame, isFarewell, frameRate)
    }
}

/// Which packets of an encoding may be sent now: none that shows what was hidden since.
public struct Showable: Equatable, Sendable {
    /// The present ``Packet/period``.
    public let period: Int
    /// Number of the oldest frame that was not withdrawn.
    public let oldestFrame: UInt64

    /// Whether a packet is among them.
    public func includes(_ packet: Packet) -> Bool {
        packet.period == period && (packet.isPlaceholder || packet.frame >= oldestFrame)
    }
}
