// SPDX-License-Identifier: MIT

/// An interface of an object: what its XML describes, and what does it.
public final class ExportedInterface {
    /// What the XML says.
    public let description: InterfaceDescription
    let methods: [MemberName: (Call) -> Void]
    let properties: [MemberName: Property]

    /// Binds handlers to the members of an interface.
    ///
    /// - Precondition: the handlers are exactly the XML's methods, and its properties with a setter for each that can be written.
    public init(_ description: InterfaceDescription, methods: [MemberName: (Call) -> Void], properties: [MemberName: Property] = [:]) {
        let (name, described) = (description.name, description.properties)
        let strayMethods = Set(methods.keys).symmetricDifference(description.methods.map(\.name))
        precondition(strayMethods.isEmpty, "\(name): methods of only one of XML and code: \(strayMethods)")
        let strayProperties = Set(properties.keys).symmetricDifference(described.map(\.name))
        precondition(strayProperties.isEmpty, "\(name): properties of only one of XML and code: \(strayProperties)")
        let straySetters = described.filter { ($0.access != .read) != (properties[$0.name]?.set != nil) }.map(\.name)
        precondition(straySetters.isEmpty, "\(name): properties that can be written in only one of XML and code: \(straySetters)")
        (self.description, self.methods, self.properties) = (description, methods, properties)
    }

    var name: InterfaceName { description.name }

    /// The present value of a property, nil when it cannot be read or has not the type of the XML, which is our mistake.
    func value(of property: InterfaceDescription.Property) -> Value? {
        guard property.access != .write, let value = properties[property.name]?.get() else { return nil }
        guard value.signature == property.type else {
            log.error("The property \(name).\(property.name) has a value of the type \"\(value.signature)\", not \"\(property.type)\".")
            return nil
        }
        return value
    }

    /// All values that can be read, by name.
    var values: [String: Value] {
        description.properties.reduce(into: [:]) { values, property in values[property.name.text] = value(of: property) }
    }
}

/// What reads and writes a property.
public struct Property {
    /// The present value.
    public let get: () -> Value
    let set: ((Value, Call) -> Void)?
    /// Brings the value up to date before it is read on the bus, then calls back.
    let refresh: ((@escaping () -> Void) -> Void)?

    /// Binds a property to its value.
    ///
    /// - Parameter get: the present value, of the XML's type.
    /// - Parameter set: gets a value of the XML's type and answers the call: `reply()` or `fail`. It also announces the change.
    /// - Parameter refresh: for a value that has to be asked for elsewhere: who reads it waits for that.
    public init(
        get: @escaping () -> Value, set: ((Value, Call) -> Void)? = nil, refresh: ((@escaping () -> Void) -> Void)? = nil
    ) {
        (self.get, self.set, self.refresh) = (get, set, refresh)
    }
}
