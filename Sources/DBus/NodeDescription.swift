// SPDX-License-Identifier: MIT

/// An object as its XML describes it.
public struct NodeDescription: Sendable {
    /// Its interfaces.
    public let interfaces: [InterfaceDescription]
    /// The names of its children, as the XML has them: for well-behaved services one element of a path each.
    public let children: [String]

    /// Reads a `<node>`. Elements that the specification does not know are stepped over.
    ///
    /// - Throws: where it is no XML, or describes what cannot be: wrong names or types, members that come twice.
    public init(parsing xml: String) throws(XMLError) {
        let document = Array(xml.utf8)
        let root = try XMLElement(parsing: document)
        guard root.name == "node" else { throw XMLError(line: root.line, message: "The element is <\(root.name)>, not <node>.") }
        let namespaces = root.attributes.filter { $0.key.hasPrefix("xmlns:") }
        var interfaces: [InterfaceDescription] = []
        for element in root.children where element.name == "interface" {
            let description = try InterfaceDescription(element, in: document, namespaces: namespaces)
            guard interfaces.allSatisfy({ $0.name != description.name }) else { throw element.error("\(description.name) comes twice.") }
            interfaces.append(description)
        }
        self.interfaces = interfaces
        children = root.children.filter { $0.name == "node" }.compactMap { $0.attributes["name"] }
    }
}

extension InterfaceDescription {
    fileprivate init(_ element: XMLElement, in document: [UInt8], namespaces: [String: String]) throws(XMLError) {
        var (methods, signals, properties): ([Method], [Signal], [Property]) = ([], [], [])
        let annotations = element.annotations
        for child in element.children {
            switch child.name {
            case "method": methods.append(try Method(child))
            case "signal": signals.append(try Signal(child))
            case "property": properties.append(try Property(child, of: annotations))
            default: break
            }
        }
        for names in [methods.map(\.name), signals.map(\.name), properties.map(\.name)] {
            var seen: Set<MemberName> = []
            for name in names {
                guard seen.insert(name).inserted else { throw element.error("The member \(name) comes twice.") }
            }
        }
        // The white space before the first comment or the tag stays behind.
        let source = document[element.extent].drop { $0 == 0x20 || 0x09...0x0d ~= $0 }
        self.init(
            name: try element.validName(), methods: methods, signals: signals, properties: properties, annotations: annotations,
            source: String(decoding: source, as: UTF8.self), namespaces: namespaces)
    }
}

extension InterfaceDescription.Method {
    fileprivate init(_ element: XMLElement) throws(XMLError) {
        let arguments = try element.arguments()
        self.init(
            name: try element.validName(), inputs: arguments.filter { $0.direction != "out" }.map(\.argument),
            outputs: arguments.filter { $0.direction == "out" }.map(\.argument), annotations: element.annotations)
    }
}

extension InterfaceDescription.Signal {
    fileprivate init(_ element: XMLElement) throws(XMLError) {
        self.init(name: try element.validName(), arguments: try element.arguments().map(\.argument), annotations: element.annotations)
    }
}

extension InterfaceDescription.Property {
    fileprivate init(_ element: XMLElement, of interface: [String: String]) throws(XMLError) {
        let access = element.attributes["access"] ?? ""
        guard let access = Access(rawValue: access) else { throw element.error("A property has the access \"\(access)\".") }
        let annotations = element.annotations
        let changes = annotations[emitsChangedSignal] ?? interface[emitsChangedSignal]
        self.init(
            name: try element.validName(), type: try element.type(), access: access,
            changes: changes.flatMap { Changes(rawValue: $0) } ?? .announced, annotations: annotations)
    }
}

private let emitsChangedSignal = "org.freedesktop.DBus.Property.EmitsChangedSignal"

extension XMLElement {
    fileprivate func error(_ message: String) -> XMLError { XMLError(line: line, message: message) }

    fileprivate func validName<Name: ValidatedName>() throws(XMLError) -> Name {
        let text = attributes["name"] ?? ""
        guard let name = Name(text) else { throw error("<\(self.name)> has the name \"\(text)\".") }
        return name
    }

    fileprivate func type() throws(XMLError) -> Signature {
        let text = attributes["type"] ?? ""
        guard let type = Signature(text), type.isSingle else { throw error("<\(name)> has the type \"\(text)\".") }
        return type
    }

    fileprivate func arguments() throws(XMLError) -> [(argument: InterfaceDescription.Argument, direction: String)] {
        var arguments: [(argument: InterfaceDescription.Argument, direction: String)] = []
        for child in children where child.name == "arg" {
            let argument = InterfaceDescription.Argument(name: child.attributes["name"] ?? "", type: try child.type())
            arguments.append((argument, child.attributes["direction"] ?? "in"))
        }
        guard Signature(arguments.map(\.argument.type.text).joined()) != nil else { throw error("<\(name)> has too many arguments.") }
        return arguments
    }

    fileprivate var annotations: [String: String] {
        children.filter { $0.name == "annotation" }.reduce(into: [:]) { annotations, child in
            if let name = child.attributes["name"] { annotations[name] = child.attributes["value"] ?? "" }
        }
    }
}
