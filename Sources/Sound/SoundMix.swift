// SPDX-License-Identifier: MIT

/// Where sound is taken from.
public enum SoundInput: Sendable, Hashable, CaseIterable {
    /// What the default output plays, whoever plays it.
    case system
    /// The default input.
    case microphone
}

/// Which sound goes with a picture, by the contract's names.
public enum SoundMix: String, Sendable, CaseIterable {
    case none, system, microphone
    /// System and microphone, mixed.
    case both

    /// What is mixed.
    public var inputs: [SoundInput] {
        switch self {
        case .none: []
        case .system: [.system]
        case .microphone: [.microphone]
        case .both: [.system, .microphone]
        }
    }
}
