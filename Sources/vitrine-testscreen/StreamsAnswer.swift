// SPDX-License-Identifier: MIT
import DBus

/// The results of a granted Start, as the settings want them.
struct StreamsAnswer {
    let settings: Settings
    let sources: [VideoSource]

    var results: [String: Value] {
        switch settings.fault {
        case .noStreams: [:]
        case .wrongType: ["streams": .string("none")]
        default: ["streams": .array(of: "(ua{sv})", sources.map(describe))]
        }
    }

    private func describe(_ source: VideoSource) -> Value {
        let size = settings.logicalSize ?? source.size
        let left = sources.prefix { $0 !== source }.reduce(settings.position.x) { sum, other in
            sum &+ Int32(clamping: (settings.logicalSize ?? other.size).width)
        }
        var properties: [String: Value] = [
            "id": .string("\(settings.streamID)-\(source.index)"),
            "position": .structure([.int32(left), .int32(settings.position.y)]),
            "size": .structure([.int32(Int32(clamping: size.width)), .int32(Int32(clamping: size.height))]),
            "source_type": .uint32(settings.sourceType),
        ]
        for key in settings.omitted { properties[key] = nil }
        let node: UInt32 =
            switch settings.fault {
            case .invalidNode: .max
            // Ids count up from zero and are used again: so many nodes nobody has.
            case .deadNode: 1_000_000
            default: source.node ?? .max
            }
        return .structure([.uint32(node), .options(properties)])
    }
}
