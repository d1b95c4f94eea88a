// SPDX-License-Identifier: MIT

/// Which signals are wanted. What is nil matches everything.
public struct MatchRule: Hashable, Sendable {
    /// Who sends it: a unique name, or a name that is followed from owner to owner.
    public var sender: BusName?
    /// The object.
    public var path: ObjectPath?
    /// An object with all that lie below it.
    public var pathNamespace: ObjectPath?
    /// The interface.
    public var interface: InterfaceName?
    /// The signal's name.
    public var member: MemberName?
    /// The first argument, which must be a string.
    public var argument0: String?

    /// A rule of the given parts.
    public init(
        sender: BusName? = nil, path: ObjectPath? = nil, pathNamespace: ObjectPath? = nil,
        interface: InterfaceName? = nil, member: MemberName? = nil, argument0: String? = nil
    ) {
        (self.sender, self.path, self.pathNamespace) = (sender, path, pathNamespace)
        (self.interface, self.member, self.argument0) = (interface, member, argument0)
    }

    /// The rule in the bus's own words.
    ///
    /// <https://dbus.freedesktop.org/doc/dbus-specification.html#message-bus-routing-match-rules>
    public var text: String {
        let parts: [(String, String?)] = [
            ("sender", sender?.text), ("path", path?.text), ("path_namespace", pathNamespace?.text),
            ("interface", interface?.text), ("member", member?.text), ("arg0", argument0),
        ]
        return parts.reduce(into: "type='signal'") { rule, part in
            guard let value = part.1 else { return }
            // An apostrophe can only stand outside of quotes, after a backslash.
            let escaped = value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
            rule += ",\(part.0)='\(escaped)'"
        }
    }
}
