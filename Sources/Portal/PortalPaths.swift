// SPDX-License-Identifier: MIT
import DBus

/// Where the portal puts the requests and sessions of one connection.
///
/// Spec: https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.portal.Request.html
struct PortalPaths {
    /// The portal's own object.
    static let desktop: ObjectPath = "/org/freedesktop/portal/desktop"

    /// The connection's unique name as one element of a path.
    private let sender: String

    init(caller: BusName) {
        sender = String(caller.text.drop { $0 == ":" }.map { $0 == "." ? "_" : $0 })
    }

    /// The parent of all sessions of the connection.
    var sessions: ObjectPath { path("session/\(sender)") }

    /// The request with this handle token.
    func request(_ token: String) -> ObjectPath { path("request/\(sender)/\(token)") }

    /// The session with this handle token.
    func session(_ token: String) -> ObjectPath { path("session/\(sender)/\(token)") }

    /// Whether a session belongs to the connection.
    func isOwnSession(_ handle: ObjectPath) -> Bool { handle != sessions && handle.isInside(sessions) }

    private func path(_ tail: String) -> ObjectPath {
        // A unique name and a token hold nothing that a path may not: the alternative never comes.
        ObjectPath("\(Self.desktop)/\(tail)") ?? Self.desktop
    }
}
