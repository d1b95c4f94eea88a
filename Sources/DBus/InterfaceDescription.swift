// SPDX-License-Identifier: MIT

/// An interface as its XML describes it: the single source of what the object server checks and serves.
///
/// Spec: <https://dbus.freedesktop.org/doc/dbus-specification.html#introspection-format>
public struct InterfaceDescription: Sendable {
    /// One argument of a method or a signal.
    public struct Argument: Equatable, Sendable {
        /// Its name; empty when the XML has none.
        public let name: String
        /// Its single complete type.
        public let type: Signature
    }

    /// A method.
    public struct Method: Equatable, Sendable {
        /// Its name.
        public let name: MemberName
        /// What it takes.
        public let inputs: [Argument]
        /// What it answers.
        public let outputs: [Argument]
        /// Annotations by name.
        public let annotations: [String: String]
        /// The types of what it takes.
        public var inputSignature: Signature { Signature(joining: inputs.map(\.type)) }
        /// The types of what it answers.
        public var outputSignature: Signature { Signature(joining: outputs.map(\.type)) }
    }

    /// A signal.
    public struct Signal: Equatable, Sendable {
        /// Its name.
        public let name: MemberName
        /// What it carries.
        public let arguments: [Argument]
        /// Annotations by name.
        public let annotations: [String: String]
        /// The types of what it carries.
        public var signature: Signature { Signature(joining: arguments.map(\.type)) }
    }

    /// A property.
    public struct Property: Equatable, Sendable {
        /// What may be done with it.
        public enum Access: String, Sendable { case read, write, readwrite }
        /// What `PropertiesChanged` says about it.
        public enum Changes: String, Sendable {
            /// Its new value.
            case announced = "true"
            /// That it changed.
            case invalidated = "invalidates"
            /// Nothing: it never changes.
            case constant = "const"
            /// Nothing.
            case silent = "false"
        }
        /// Its name.
        public let name: MemberName
        /// Its single complete type.
        public let type: Signature
        /// What may be done with it.
        public let access: Access
        /// What is announced when it changes.
        public let changes: Changes
        /// Annotations by name.
        public let annotations: [String: String]
    }

    /// The interface's name.
    public let name: InterfaceName
    /// Its methods, in the order of the XML.
    public let methods: [Method]
    /// Its signals, in the order of the XML.
    public let signals: [Signal]
    /// Its properties, in the order of the XML.
    public let properties: [Property]
    /// Annotations by name.
    public let annotations: [String: String]
    /// The XML of the interface as it was read, with the comments before and in it.
    public let source: String
    /// The declarations of XML name spaces that ``source`` relies on: attributes of the element around it.
    let namespaces: [String: String]

    /// Reads the interfaces of a `<node>`.
    public static func parse(_ xml: String) throws(XMLError) -> [InterfaceDescription] { try NodeDescription(parsing: xml).interfaces }

    /// The method of that name.
    public func method(_ name: MemberName) -> Method? { methods.first { $0.name == name } }
    /// The signal of that name.
    public func signal(_ name: MemberName) -> Signal? { signals.first { $0.name == name } }
    /// The property of that name.
    public func property(_ name: MemberName) -> Property? { properties.first { $0.name == name } }
}
