// SPDX-License-Identifier: MIT

/// The identifiers of the elements that are written or read here, length marker included.
///
/// Spec: [RFC 8794](https://www.rfc-editor.org/rfc/rfc8794), [RFC 9559](https://www.rfc-editor.org/rfc/rfc9559).
public enum ElementID: UInt32, Sendable {
    case ebml = 0x1A45_DFA3
    case ebmlVersion = 0x4286
    case ebmlReadVersion = 0x42F7
    case ebmlMaxIDLength = 0x42F2
    case ebmlMaxSizeLength = 0x42F3
    case docType = 0x4282
    case docTypeVersion = 0x4287
    case docTypeReadVersion = 0x4285
    case segment = 0x1853_8067
    case void = 0xEC
    case seekHead = 0x114D_9B74
    case seek = 0x4DBB
    case seekID = 0x53AB
    case seekPosition = 0x53AC
    case info = 0x1549_A966
    case timestampScale = 0x2AD7B1
    case duration = 0x4489
    case muxingApp = 0x4D80
    case writingApp = 0x5741
    case tracks = 0x1654_AE6B
    case trackEntry = 0xAE
    case trackNumber = 0xD7
    case trackUID = 0x73C5
    case trackType = 0x83
    case flagLacing = 0x9C
    case language = 0x22B59C
    case codecID = 0x86
    case codecPrivate = 0x63A2
    case codecDelay = 0x56AA
    case seekPreRoll = 0x56BB
    case audio = 0xE1
    case samplingFrequency = 0xB5
    case channels = 0x9F
    case video = 0xE0
    case flagInterlaced = 0x9A
    case pixelWidth = 0xB0
    case pixelHeight = 0xBA
    case colour = 0x55B0
    case matrixCoefficients = 0x55B1
    case chromaSitingHorizontal = 0x55B7
    case chromaSitingVertical = 0x55B8
    case range = 0x55B9
    case cluster = 0x1F43_B675
    case timestamp = 0xE7
    case simpleBlock = 0xA3
    case cues = 0x1C53_BB6B
    case cuePoint = 0xBB
    case cueTime = 0xB3
    case cueTrackPositions = 0xB7
    case cueTrack = 0xF7
    case cueClusterPosition = 0xF1

    /// The identifier as it stands in a file.
    public var bytes: [UInt8] {
        let count = (32 - rawValue.leadingZeroBitCount + 7) / 8
        return (0..<count).reversed().map { UInt8(truncatingIfNeeded: rawValue >> UInt32(8 * $0)) }
    }
}

/// Bytes of EBML elements, one after the other.
public struct EBML {
    /// What was appended so far.
    public private(set) var bytes: [UInt8] = []

    /// Nothing yet.
    public init() {}

    /// Appends an element that holds an unsigned integer, in as few bytes as it takes.
    public mutating func append(_ id: ElementID, _ value: UInt64) {
        let count = max(1, (64 - value.leadingZeroBitCount + 7) / 8)
        appendHeader(id, byteCount: UInt64(count))
        appendBigEndian(value, count)
    }

    /// Appends an element that holds ASCII text.
    public mutating func append(_ id: ElementID, _ text: StaticString) {
        appendHeader(id, byteCount: UInt64(text.utf8CodeUnitCount))
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// Appends an element that holds these bytes.
    public mutating func append(_ id: ElementID, _ content: [UInt8]) {
        appendHeader(id, byteCount: UInt64(content.count))
        bytes += content
    }

    /// Appends an element that holds a number as a float of eight bytes.
    public mutating func appendFloat(_ id: ElementID, _ value: Double) {
        appendHeader(id, byteCount: 8)
        appendBigEndian(value.bitPattern, 8)
    }

    /// Appends an element that readers skip, to keep a place free.
    ///
    /// - Parameter byteCount: of the whole element, 2 to 128.
    public mutating func appendVoid(byteCount: Int) { append(.void, [UInt8](repeating: 0, count: byteCount - 2)) }

    /// Appends elements that are there already.
    public mutating func append(_ elements: [UInt8]) { bytes += elements }

    /// Appends an element that holds the elements which `body` appends.
    public mutating func append(_ id: ElementID, _ body: (inout EBML) -> Void) {
        var content = EBML()
        body(&content)
        appendHeader(id, byteCount: UInt64(content.bytes.count))
        bytes.append(contentsOf: content.bytes)
    }

    /// Appends the identifier and the size of an element whose content follows by other means.
    public mutating func appendHeader(_ id: ElementID, byteCount: UInt64) {
        appendIdentifier(id)
        var count = 1
        // All ones mean "unknown".
        while count < 8 && byteCount >= (UInt64(1) << UInt64(7 * count)) - 1 { count += 1 }
        appendBigEndian(byteCount | UInt64(1) << UInt64(7 * count), count)
    }

    /// Appends the beginning of an element that lasts until one comes that cannot be inside it, or until the end.
    ///
    /// The size takes ``sizeByteCount`` bytes: ``size(_:)`` of a later size fits in its place.
    public mutating func appendUnsizedHeader(_ id: ElementID) {
        appendIdentifier(id)
        appendBigEndian(0x01FF_FFFF_FFFF_FFFF, EBML.sizeByteCount)
    }

    /// Bytes that a size takes which was left open.
    public static let sizeByteCount = 8

    /// A size for the place of one that was left open.
    public static func size(_ byteCount: UInt64) -> [UInt8] { bigEndian(byteCount | 1 << 56, sizeByteCount) }

    /// The lowest `count` bytes of a number, the highest first.
    public static func bigEndian(_ value: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
    }

    /// Appends the lowest `count` bytes of a number, the highest first.
    public mutating func appendBigEndian(_ value: UInt64, _ count: Int) {
        for index in stride(from: count - 1, through: 0, by: -1) { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index))) }
    }

    /// Whether elements hold this text somewhere.
    public static func contains(_ elements: [UInt8], _ text: StaticString) -> Bool {
        text.withUTF8Buffer { text in elements.indices.contains { elements[$0...].starts(with: text) } }
    }

    private mutating func appendIdentifier(_ id: ElementID) { bytes += id.bytes }
}
