// SPDX-License-Identifier: MIT
public import Encoding
public import Frames
public import Loop

/// What a track's streams have in common, as a preset says it. It may change while they run.
public struct StreamRates: Equatable, Sendable {
    /// The greatest size sent; nil is no limit. The size of a stream is fixed from its first picture on: a change is for later ones.
    public var maxSize: PixelSize?
    /// The greatest number of pictures a second; 0 is no limit.
    public var frameRate: UInt32
    /// Bit/s; 0 is chosen from the size.
    public var bitrate: UInt32

    /// Rates of that size, pictures a second, and bits a second.
    public init(maxSize: PixelSize?, frameRate: UInt32, bitrate: UInt32) {
        (self.maxSize, self.frameRate, self.bitrate) = (maxSize, frameRate, bitrate)
    }
}

/// What one reader asked for. What is nil is the track's, and follows it.
public struct StreamOptions: Equatable, Sendable {
    /// How the pictures are packed.
    public enum Format: Equatable, Sendable {
        /// WebM.
        case webm
        /// IVF: nothing but sizes and times between the pictures.
        case ivf
        /// Raw pictures, YUV4MPEG2.
        case y4m
        /// Raw pictures in shared memory, announced on a socket.
        case frames
    }

    /// What comes while there is no real picture.
    public enum Placeholder: Equatable, Sendable {
        /// A picture that says so.
        case picture
        /// Nothing.
        case hold
        /// A picture while the track is muted; the stream ends with the broadcast.
        case end
    }

    /// How the pictures are packed.
    public var format: Format
    /// What compresses them, in a format that is not raw.
    public var codec: VideoCodec
    /// What comes while there is no real picture.
    public var placeholder: Placeholder
    /// The greatest size.
    public var maxSize: PixelSize?
    /// Pictures a second; 0 is no limit.
    public var frameRate: UInt32?
    /// Bit/s; 0 is chosen from the size.
    public var bitrate: UInt32?

    /// Options of a stream.
    public init(
        format: Format = .webm, codec: VideoCodec = .vp8, placeholder: Placeholder = .picture, maxSize: PixelSize? = nil,
        frameRate: UInt32? = nil, bitrate: UInt32? = nil
    ) {
        (self.format, self.codec, self.placeholder, self.maxSize) = (format, codec, placeholder, maxSize)
        (self.frameRate, self.bitrate) = (frameRate, bitrate)
    }

    /// What the pictures are turned into before they are packed.
    var encoding: Codec {
        switch format {
        case .webm, .ivf: .video(codec)
        case .y4m, .frames: .raw
        }
    }

    /// A packer for one stream; nil when it is no stream of bytes.
    func makeMuxer() -> (any Muxer)? {
        switch format {
        case .webm: WebMMuxer(codec)
        case .ivf: IVFMuxer(codec)
        case .y4m: Y4MMuxer()
        case .frames: nil
        }
    }
}

extension StreamOptions {
    /// What of a stream is the track's, and changes with it. Streams share an encoder only when the same of each does.
    struct Followed: Equatable {
        let maxSize, frameRate, bitrate: Bool
    }

    var followed: Followed { Followed(maxSize: maxSize == nil, frameRate: frameRate == nil, bitrate: bitrate == nil) }
}

/// Why there is no stream for a reader.
public enum StreamsError: Error, Equatable, Sendable {
    /// So many raw readers are the most that a track has.
    case rawReaderLimit(Int)
    /// So many encodings are the most that there are at a time.
    case encodingLimit(Int)
    /// No descriptor or thread could be had.
    case outOfResources(Errno)
    /// The track is closed, or the program ends.
    case closed
}

/// What happens to a stream, told on the main loop, never inside a call of this module.
public enum StreamEvent: Equatable, Sendable {
    /// The first picture was sent: size and epoch are known.
    case started
    /// It is over; nothing comes after this.
    case ended(StreamEnd)
}

/// Why a stream is over.
public enum StreamEnd: Equatable, Sendable {
    /// The reading end is closed everywhere.
    case readerGone
    /// It was asked to end.
    case finished
    /// The encoder failed; in words.
    case failed(String)
}

/// What was counted of one stream since it began.
public struct StreamStatistics: Equatable, Sendable {
    /// Pictures written in full.
    public var sent: UInt64 = 0
    /// Pictures that this reader did not get, because it read too slowly.
    public var coalesced: UInt64 = 0
    /// Bytes written.
    public var bytes: UInt64 = 0
    /// Bytes that wait for the reader.
    public var queuedBytes: UInt64 = 0
    /// Those of the pictures sent with which decoding may begin.
    public var keyFrames: UInt64 = 0

    /// Nothing counted.
    public init() {}
}
