// SPDX-License-Identifier: MIT

/// How the pointer comes with the picture.
public enum CursorMode: UInt32, CaseIterable, Sendable, CustomStringConvertible {
    /// It does not.
    case hidden = 1
    /// Drawn into the pixels.
    case embedded = 2
    /// Beside the pixels, as metadata of the PipeWire buffers.
    case metadata = 4

    /// The mode's name in the options of the agent.
    public var description: String {
        switch self {
        case .hidden: "hidden"
        case .embedded: "embedded"
        case .metadata: "metadata"
        }
    }
}

/// The cursor modes that a portal offers.
public struct CursorModes: OptionSet, Hashable, Sendable, CustomStringConvertible {
    /// The portal's `AvailableCursorModes`.
    public let rawValue: UInt32
    /// Takes the portal's bits, also those that have no name here.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Whether the mode is among them.
    public func contains(_ mode: CursorMode) -> Bool { rawValue & mode.rawValue != 0 }

    /// The names, as a person reads them: `hidden, embedded`.
    public var description: String {
        let names = CursorMode.allCases.filter { contains($0) }.map(\.description)
        return names.isEmpty ? "none" : names.joined(separator: ", ")
    }
}
