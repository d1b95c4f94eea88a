// SPDX-License-Identifier: MIT
import DBus

/// What `Response` says of a request.
enum PortalResponse {
    case success([String: Value])
    /// The person said no. Also before the picker should have been there: some desktops ask early.
    case cancelled
    /// It ended otherwise. The portal's 2, and all that is not defined.
    case ended

    /// Reads the signal's arguments. Nil when they are not `(ua{sv})`.
    init?(_ arguments: [Value]) {
        guard arguments.count >= 2, let code = arguments[0].asUInt32, let results = arguments[1].asOptions else { return nil }
        switch code {
        case 0: self = .success(results)
        case 1: self = .cancelled
        default: self = .ended
        }
    }
}

extension Value {
    /// A path, whether it came as an object path or as a string.
    var pathValue: ObjectPath? { asObjectPath ?? asString.flatMap { ObjectPath($0) } }

    /// A string that says something.
    var asNonEmptyString: String? { asString.flatMap { $0.isEmpty ? nil : $0 } }

    /// Both numbers of an `(ii)`.
    fileprivate var asPair: (Int32, Int32)? {
        guard let members = asStructure, members.count == 2, let first = members[0].asInt32, let second = members[1].asInt32 else {
            return nil
        }
        return (first, second)
    }
}

extension CastStream {
    /// Reads the `streams` of Start's results, `a(ua{sv})`.
    ///
    /// - Returns: at least one stream; or why the portal's answer cannot be used.
    static func list(from value: Value?) -> Result<[CastStream], PortalError> {
        guard let elements = value?.asArray else { return .failure(.malformed(.start, "no streams")) }
        if elements.isEmpty { return .failure(.malformed(.start, "an empty list of streams")) }
        var streams: [CastStream] = []
        for element in elements {
            guard let members = element.asStructure, members.count >= 2, let node = members[0].asUInt32, let details = members[1].asOptions
            else { return .failure(.malformed(.start, "streams of another form than a(ua{sv})")) }
            // PipeWire's "any": a consumer of it would get whatever camera comes first.
            if node == .max { return .failure(.malformed(.start, "a stream without a node")) }
            streams.append(CastStream(node: node, details))
        }
        return .success(streams)
    }

    private init(node: UInt32, _ details: [String: Value]) {
        self.init(node: node)
        serial = details["pipewire-serial"]?.asUInt64
        id = details["id"]?.asNonEmptyString
        position = details["position"]?.asPair.map { Position(x: $0.0, y: $0.1) }
        logicalSize = details["size"]?.asPair.flatMap { $0.0 > 0 && $0.1 > 0 ? LogicalSize(width: $0.0, height: $0.1) : nil }
        sourceType = details["source_type"]?.asUInt32.map { SourceTypes(rawValue: $0) }
        mappingID = details["mapping_id"]?.asNonEmptyString
    }
}

extension PortalProperties {
    /// Reads the answer to GetAll. Nil when it does not even say a version.
    init?(_ answer: [Value]) {
        guard let values = answer.first?.asOptions, let version = values["version"]?.asUInt32, version > 0 else { return nil }
        self.init(
            version: version,
            sourceTypes: SourceTypes(rawValue: values["AvailableSourceTypes"]?.asUInt32 ?? 0),
            cursorModes: CursorModes(rawValue: version >= 2 ? values["AvailableCursorModes"]?.asUInt32 ?? 0 : 0))
    }
}
