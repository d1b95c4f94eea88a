// SPDX-License-Identifier: MIT

/// The kinds of source that a picker may offer, with the portal's bits.
public struct SourceTypes: OptionSet, Hashable, Sendable, CustomStringConvertible {
    /// The portal's `AvailableSourceTypes` and `types`.
    public let rawValue: UInt32
    /// Takes the portal's bits, also those that have no name here.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A whole monitor.
    public static let monitor = SourceTypes(rawValue: 1)
    /// One window.
    public static let window = SourceTypes(rawValue: 2)
    /// A monitor that exists for the share only.
    public static let virtual = SourceTypes(rawValue: 4)

    /// The names, as a person reads them: `monitor or window`.
    public var description: String {
        let names = [(SourceTypes.monitor, "monitor"), (.window, "window"), (.virtual, "virtual monitor")].filter { contains($0.0) }
        return names.isEmpty ? "nothing" : names.map(\.1).joined(separator: " or ")
    }
}
