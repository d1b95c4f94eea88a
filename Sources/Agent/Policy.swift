// SPDX-License-Identifier: MIT

/// Who may do what (README.md, "Who may do what"), in one place.
///
/// The boundary is the sandbox. Programs of the same user outside one can read each other's memory: between them the rules guard
/// against accidents.
enum Act: CaseIterable, Sendable {
    /// StopBroadcast, StopCapture, SetScreenShare(false), Muted = true: stopping is always safe.
    case stop
    /// StartBroadcast on a listening track, SetScreenShare(true): always through the picker.
    case start
    /// Subscribe.
    case subscribe
    /// Everything else that changes a track.
    case manage
}

/// What a caller is to a track.
struct Standing: Equatable, Sendable {
    /// It owns the track.
    var isOwner: Bool
    /// It is on the track's list of those who may subscribe.
    var isAllowed: Bool
    var isSandboxed: Bool
    /// The track is the desktop track, which nobody owns.
    var isDesktopTrack: Bool
}

enum Policy {
    static func permits(_ act: Act, _ standing: Standing) -> Bool {
        switch act {
        case .stop, .start:
            standing.isOwner || !standing.isSandboxed
        case .subscribe:
            standing.isOwner || standing.isAllowed || (standing.isDesktopTrack && !standing.isSandboxed)
        case .manage:
            standing.isOwner || (standing.isDesktopTrack && !standing.isSandboxed)
        }
    }
}
