// SPDX-License-Identifier: MIT
import CLinux
import Glibc

/// One of the kernel's namespaces that lie in each other: of users, or of process numbers.
///
/// A process gets into a deeper one only. Spec: `namespaces(7)`, `ioctl_ns(2)`.
public final class Namespace: Equatable {
    /// What it is a namespace of, by its name in `/proc/PID/ns`.
    public enum Kind: String, Sendable { case user, pid }

    private let descriptor: FileDescriptor
    private let identity: Files.Identity

    private init?(_ raw: Int32) {
        guard raw >= 0 else { return nil }
        descriptor = FileDescriptor(owning: raw)
        var status = stat()
        guard fstat(raw, &status) == 0 else { return nil }
        identity = Files.Identity(status)
    }

    /// That of a process; nil when it cannot be looked at.
    ///
    /// - Parameter process: its number, or `self`.
    public convenience init?(_ kind: Kind, of process: String) {
        self.init(open("/proc/\(process)/ns/\(kind.rawValue)", O_RDONLY | O_CLOEXEC))
    }

    /// The one that this lies in; nil when that is out of this process's sight: it lies in this one itself.
    public var parent: Namespace? { Namespace(clinux_parent_namespace(descriptor.raw)) }

    /// This one, and those that it lies in, from the inside to the outside, as far as this process sees.
    public var withParents: [Namespace] { Array(sequence(first: self) { $0.parent }) }

    /// Whether both are the same namespace.
    public static func == (left: Namespace, right: Namespace) -> Bool { left.identity == right.identity }
}
