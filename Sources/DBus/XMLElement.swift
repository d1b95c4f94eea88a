// SPDX-License-Identifier: MIT

/// What is wrong with a piece of XML.
public struct XMLError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The line, from 1.
    public let line: Int
    /// What is wrong there.
    public let message: String
    /// Both, for people.
    public var description: String { "line \(line): \(message)" }
}

/// An element of a document: as much of XML as introspection data needs.
///
/// Text, comments and processing instructions are stepped over, document types are not looked into.
struct XMLElement {
    let name: String
    let attributes: [String: String]
    /// The line on which it begins, from 1.
    let line: Int
    /// Where it lies in the document's bytes, together with the comments that stand before it.
    var extent: Range<Int>
    var children: [XMLElement] = []

    /// Reads the document's one element.
    init(parsing document: [UInt8]) throws(XMLError) {
        var reader = XMLReader(document)
        var open: [XMLElement] = []
        var root: XMLElement?
        while true {
            let start = reader.position
            switch try reader.next() {
            case .start(let name, let attributes, let line, let isEmpty):
                guard root == nil else { throw reader.error("There is a second element <\(name)> after the end.") }
                guard open.count < 64 else { throw reader.error("The elements are too deep.") }
                let element = XMLElement(name: name, attributes: attributes, line: line, extent: start..<reader.position)
                if isEmpty { XMLElement.close(element, &open, &root) } else { open.append(element) }
            case .end(let name):
                guard var element = open.popLast(), element.name == name else {
                    throw reader.error("The end tag </\(name)> closes nothing.")
                }
                element.extent = element.extent.lowerBound..<reader.position
                XMLElement.close(element, &open, &root)
            case .finished:
                if let element = open.last { throw reader.error("The element <\(element.name)> has no end.") }
                guard let root else { throw reader.error("There is no element.") }
                self = root
                return
            }
        }
    }

    private init(name: String, attributes: [String: String], line: Int, extent: Range<Int>) {
        (self.name, self.attributes, self.line, self.extent) = (name, attributes, line, extent)
    }

    private static func close(_ element: XMLElement, _ open: inout [XMLElement], _ root: inout XMLElement?) {
        if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
    }
}

/// Escapes a string for an attribute.
func escapedForXML(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
        switch scalar {
        case "<": escaped += "&lt;"
        case "&": escaped += "&amp;"
        case "\"": escaped += "&quot;"
        default: escaped.unicodeScalars.append(scalar)
        }
    }
}

/// Cuts a document into tags.
private struct XMLReader {
    enum Event {
        case start(name: String, attributes: [String: String], line: Int, isEmpty: Bool)
        case end(name: String)
        case finished
    }

    private let bytes: [UInt8]
    private(set) var position = 0
    private var tagPosition = 0
    private var tagLine = 1

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func error(_ message: String) -> XMLError { XMLError(line: line, message: message) }

    /// Counted from the last tag on, so that a long document is counted once.
    private var line: Int { tagLine + bytes[min(tagPosition, position)..<position].count { $0 == newline } }

    mutating func next() throws(XMLError) -> Event {
        while let index = bytes[position...].firstIndex(of: lessThan) {
            position = index
            if skip("<!--") {
                try skip(past: "-->")
            } else if skip("<![CDATA[") {
                try skip(past: "]]>")
            } else if skip("<?") {
                try skip(past: "?>")
            } else if skip("<!") {
                try skipDeclaration()
            } else if skip("</") {
                let name = try readName()
                skipSpace()
                guard skip(">") else { throw error("The end tag of <\(name)> is not closed.") }
                return .end(name: name)
            } else {
                return try readStart()
            }
        }
        position = bytes.count
        return .finished
    }

    private mutating func readStart() throws(XMLError) -> Event {
        (tagLine, tagPosition) = (line, position)
        position += 1
        let name = try readName()
        var attributes: [String: String] = [:]
        while true {
            let hasSpace = skipSpace()
            if skip("/>") { return .start(name: name, attributes: attributes, line: tagLine, isEmpty: true) }
            if skip(">") { return .start(name: name, attributes: attributes, line: tagLine, isEmpty: false) }
            guard hasSpace else { throw error("The tag <\(name)> is not closed.") }
            let attribute = try readName()
            skipSpace()
            guard skip("=") else { throw error("The attribute \(attribute) has no value.") }
            skipSpace()
            guard attributes.updateValue(try readValue(attribute), forKey: attribute) == nil else {
                throw error("The attribute \(attribute) comes twice.")
            }
        }
    }

    private mutating func readName() throws(XMLError) -> String {
        let start = position
        while position < bytes.count, isNameByte(bytes[position]) { position += 1 }
        guard position > start else { throw error("A name is missing.") }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func readValue(_ attribute: String) throws(XMLError) -> String {
        guard position < bytes.count, bytes[position] == quote || bytes[position] == apostrophe else {
            throw error("The value of the attribute \(attribute) is not quoted.")
        }
        let mark = bytes[position]
        position += 1
        var value: [UInt8] = []
        while position < bytes.count, bytes[position] != mark {
            switch bytes[position] {
            case lessThan: throw error("The value of the attribute \(attribute) has no end.")
            case UInt8(ascii: "&"): value += try readReference().utf8
            case let byte:
                value.append(isSpace(byte) ? space : byte)
                position += 1
            }
        }
        guard position < bytes.count else { throw error("The value of the attribute \(attribute) has no end.") }
        position += 1
        return String(decoding: value, as: UTF8.self)
    }

    private mutating func readReference() throws(XMLError) -> String {
        position += 1
        // The longest reference that means something is a number of eight digits.
        guard let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else { throw error("A reference has no end.") }
        let name = String(decoding: bytes[position..<end], as: UTF8.self)
        position = end + 1
        switch name {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "quot": return "\""
        case "apos": return "'"
        default:
            let digits = name.hasPrefix("#x") ? name.dropFirst(2) : name.hasPrefix("#") ? name.dropFirst() : ""
            guard let number = UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10), number != 0, let scalar = Unicode.Scalar(number)
            else { throw error("The reference &\(name); means nothing.") }
            return String(scalar)
        }
    }

    /// A document type: brackets and quotes may hide its end.
    private mutating func skipDeclaration() throws(XMLError) {
        var depth = 0
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case quote, apostrophe: try skip(past: byte == quote ? "\"" : "'")
            case UInt8(ascii: "["), lessThan: depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ">"):
                if depth <= 0 { return }
                // The declarations inside of the brackets.
                if depth > 1 { depth -= 1 }
            default: break
            }
        }
        throw error("A declaration has no end.")
    }

    private mutating func skip(_ text: StaticString) -> Bool {
        let wanted = text.description.utf8
        guard bytes[position...].starts(with: wanted) else { return false }
        position += wanted.count
        return true
    }

    private mutating func skip(past text: StaticString) throws(XMLError) {
        let start = position
        while position < bytes.count {
            if skip(text) { return }
            position += 1
        }
        position = start
        throw error("There is no \(text) to end this.")
    }

    @discardableResult
    private mutating func skipSpace() -> Bool {
        let start = position
        while position < bytes.count, isSpace(bytes[position]) { position += 1 }
        return position > start
    }
}

private let newline = UInt8(ascii: "\n")
private let space = UInt8(ascii: " ")
private let lessThan = UInt8(ascii: "<")
private let quote = UInt8(ascii: "\"")
private let apostrophe = UInt8(ascii: "'")

private func isSpace(_ byte: UInt8) -> Bool { byte == space || byte == newline || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r") }

private func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "-"), UInt8(ascii: "."), 0x80...0xff:
        true
    default: false
    }
}
