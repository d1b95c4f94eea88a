// SPDX-License-Identifier: MIT

/// Whether there is sound to take, and why not, as PipeWire last said.
public struct SoundDevices: Equatable, Sendable {
    /// What is missing for each input, in words, with the remedy; an input that can be taken has none.
    private let faults: [SoundInput: String]

    init(faults: [SoundInput: String]) { self.faults = faults }

    /// The same thing is missing for all.
    init(allMissing fault: String) { faults = Dictionary(uniqueKeysWithValues: SoundInput.allCases.map { ($0, fault) }) }

    /// Nobody has looked yet.
    static let unseen = SoundDevices(allMissing: "PipeWire was not asked yet: try again")

    /// Whether an input can be taken.
    public func has(_ input: SoundInput) -> Bool { faults[input] == nil }

    /// What keeps a mix from being taken; nil when nothing does.
    public func fault(of mix: SoundMix) -> String? { mix.inputs.lazy.compactMap { faults[$0] }.first }
}
