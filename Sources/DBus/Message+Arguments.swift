// SPDX-License-Identifier: MIT
import CDBus
import Loop

extension Message {
    /// Takes the values out of the message. Descriptors are duplicated into objects that own them.
    ///
    /// - Throws: `malformed` when there are more values than any message of ours needs, or no descriptor is left.
    func arguments() throws(DBusError) -> [Value] {
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(raw, &iterator) != 0 else { return [] }
        var reader = ArgumentReader()
        return try reader.readAll(&iterator)
    }

    /// Puts the values behind those that are there already.
    ///
    /// - Throws: `malformed` when the protocol does not allow them. The message must not be sent then.
    func append(_ values: [Value]) throws(DBusError) {
        try WireRules.check(values)
        var iterator = DBusMessageIter()
        dbus_message_iter_init_append(raw, &iterator)
        for value in values { try appendValue(value, &iterator) }
    }
}

// MARK: - Reading

/// Reads the arguments of one message; the library has validated the bytes and the depth.
private struct ArgumentReader {
    /// How many values may still come: a message of bytes costs many times its size once it is decoded.
    private var budget = 1_000_000

    mutating func readAll(_ iterator: inout DBusMessageIter) throws(DBusError) -> [Value] {
        var values: [Value] = []
        while dbus_message_iter_get_arg_type(&iterator) != Int32(CDBUS_TYPE_INVALID) {
            values.append(try read(&iterator))
            dbus_message_iter_next(&iterator)
        }
        return values
    }

    private mutating func read(_ iterator: inout DBusMessageIter) throws(DBusError) -> Value {
        budget -= 1
        guard budget >= 0 else { throw .malformed("The message has more than a million values.") }
        switch Int(dbus_message_iter_get_arg_type(&iterator)) {
        case Int(CDBUS_TYPE_BYTE): return .byte(basic(&iterator, 0))
        case Int(CDBUS_TYPE_BOOLEAN): return .bool(basic(&iterator, dbus_bool_t.zero) != 0)
        case Int(CDBUS_TYPE_INT16): return .int16(basic(&iterator, 0))
        case Int(CDBUS_TYPE_UINT16): return .uint16(basic(&iterator, 0))
        case Int(CDBUS_TYPE_INT32): return .int32(basic(&iterator, 0))
        case Int(CDBUS_TYPE_UINT32): return .uint32(basic(&iterator, 0))
        case Int(CDBUS_TYPE_INT64): return .int64(basic(&iterator, 0))
        case Int(CDBUS_TYPE_UINT64): return .uint64(basic(&iterator, 0))
        case Int(CDBUS_TYPE_DOUBLE): return .double(basic(&iterator, 0))
        case Int(CDBUS_TYPE_STRING): return .string(text(&iterator))
        case Int(CDBUS_TYPE_OBJECT_PATH): return .objectPath(ObjectPath(validated: text(&iterator)))
        case Int(CDBUS_TYPE_SIGNATURE): return .signature(Signature(validated: text(&iterator)))
        case Int(CDBUS_TYPE_UNIX_FD): return .descriptor(try descriptor(&iterator))
        case Int(CDBUS_TYPE_ARRAY): return try array(&iterator)
        case Int(CDBUS_TYPE_STRUCT): return .structure(try contents(&iterator))
        case Int(CDBUS_TYPE_VARIANT):
            guard let value = try contents(&iterator).first else { throw .malformed("The message has an empty variant.") }
            return .variant(value)
        case let type: throw .malformed("The message has a value of the unknown type \(type).")
        }
    }

    private mutating func contents(_ iterator: inout DBusMessageIter) throws(DBusError) -> [Value] {
        var inner = DBusMessageIter()
        dbus_message_iter_recurse(&iterator, &inner)
        return try readAll(&inner)
    }

    private mutating func array(_ iterator: inout DBusMessageIter) throws(DBusError) -> Value {
        guard let codes = dbus_message_iter_get_signature(&iterator) else { throw .outOfMemory }
        let element = String(cString: codes).dropFirst()
        dbus_free(codes)
        guard element.first == "{" else { return .array(of: Signature(validated: String(element)), try contents(&iterator)) }
        var entries: [Value.Entry] = []
        var inner = DBusMessageIter()
        dbus_message_iter_recurse(&iterator, &inner)
        while dbus_message_iter_get_arg_type(&inner) == Int32(CDBUS_TYPE_DICT_ENTRY) {
            let pair = try contents(&inner)
            guard pair.count == 2 else { throw .malformed("The message has an incomplete entry of a dictionary.") }
            entries.append(Value.Entry(key: pair[0], value: pair[1]))
            dbus_message_iter_next(&inner)
        }
        let (key, value) = (element.dropFirst().prefix(1), element.dropFirst(2).dropLast())
        return .dictionary(key: Signature(validated: String(key)), value: Signature(validated: String(value)), entries)
    }

    private func basic<Number: BitwiseCopyable>(_ iterator: inout DBusMessageIter, _ zero: Number) -> Number {
        var number = zero
        withUnsafeMutablePointer(to: &number) { dbus_message_iter_get_basic(&iterator, $0) }
        return number
    }

    private func text(_ iterator: inout DBusMessageIter) -> String {
        var bytes: UnsafePointer<CChar>?
        dbus_message_iter_get_basic(&iterator, &bytes)
        return bytes.map { String(cString: $0) } ?? ""
    }

    private func descriptor(_ iterator: inout DBusMessageIter) throws(DBusError) -> FileDescriptor {
        var number: Int32 = -1
        dbus_message_iter_get_basic(&iterator, &number)
        guard number >= 0 else { throw .malformed("The descriptor in the message cannot be duplicated.") }
        return FileDescriptor(owning: number)
    }
}

// MARK: - Writing

/// Writes a value that ``WireRules`` has let through.
private func appendValue(_ value: Value, _ iterator: inout DBusMessageIter) throws(DBusError) {
    switch value {
    case .byte(let number): try appendBasic(CDBUS_TYPE_BYTE, number, &iterator)
    case .bool(let flag): try appendBasic(CDBUS_TYPE_BOOLEAN, dbus_bool_t(flag ? 1 : 0), &iterator)
    case .int16(let number): try appendBasic(CDBUS_TYPE_INT16, number, &iterator)
    case .uint16(let number): try appendBasic(CDBUS_TYPE_UINT16, number, &iterator)
    case .int32(let number): try appendBasic(CDBUS_TYPE_INT32, number, &iterator)
    case .uint32(let number): try appendBasic(CDBUS_TYPE_UINT32, number, &iterator)
    case .int64(let number): try appendBasic(CDBUS_TYPE_INT64, number, &iterator)
    case .uint64(let number): try appendBasic(CDBUS_TYPE_UINT64, number, &iterator)
    case .double(let number): try appendBasic(CDBUS_TYPE_DOUBLE, number, &iterator)
    case .string(let text): try appendText(CDBUS_TYPE_STRING, text, &iterator)
    case .objectPath(let path): try appendText(CDBUS_TYPE_OBJECT_PATH, path.text, &iterator)
    case .signature(let signature): try appendText(CDBUS_TYPE_SIGNATURE, signature.text, &iterator)
    case .descriptor(let descriptor):
        guard dbus_message_iter_append_basic(&iterator, Int32(CDBUS_TYPE_UNIX_FD), [descriptor.raw]) != 0 else {
            throw .malformed("The descriptor \(descriptor.raw) cannot be duplicated.")
        }
    case .array(let element, let elements): try appendContainer(CDBUS_TYPE_ARRAY, element.text, elements, &iterator)
    case .structure(let fields): try appendContainer(CDBUS_TYPE_STRUCT, nil, fields, &iterator)
    case .variant(let content): try appendContainer(CDBUS_TYPE_VARIANT, content.signature.text, [content], &iterator)
    case .dictionary(let key, let value, let entries):
        try inContainer(CDBUS_TYPE_ARRAY, "{\(key)\(value)}", &iterator) { inner throws(DBusError) in
            for entry in entries { try appendContainer(CDBUS_TYPE_DICT_ENTRY, nil, [entry.key, entry.value], &inner) }
        }
    }
}

private func appendBasic<Number: BitwiseCopyable>(_ type: Int, _ number: Number, _ iterator: inout DBusMessageIter) throws(DBusError) {
    let isAppended = withUnsafePointer(to: number) { dbus_message_iter_append_basic(&iterator, Int32(type), $0) != 0 }
    guard isAppended else { throw .outOfMemory }
}

private func appendText(_ type: Int, _ text: String, _ iterator: inout DBusMessageIter) throws(DBusError) {
    let isAppended = text.withCString { bytes in
        var bytes: UnsafePointer<CChar>? = bytes
        return dbus_message_iter_append_basic(&iterator, Int32(type), &bytes) != 0
    }
    guard isAppended else { throw .outOfMemory }
}

private func appendContainer(
    _ type: Int, _ signature: String?, _ contents: [Value], _ iterator: inout DBusMessageIter
) throws(DBusError) {
    try inContainer(type, signature, &iterator) { inner throws(DBusError) in
        for value in contents { try appendValue(value, &inner) }
    }
}

private func inContainer(
    _ type: Int, _ signature: String?, _ iterator: inout DBusMessageIter, _ body: (inout DBusMessageIter) throws(DBusError) -> Void
) throws(DBusError) {
    var inner = DBusMessageIter()
    guard dbus_message_iter_open_container(&iterator, Int32(type), signature, &inner) != 0 else { throw .outOfMemory }
    do throws(DBusError) {
        try body(&inner)
    } catch {
        dbus_message_iter_abandon_container(&iterator, &inner)
        throw error
    }
    guard dbus_message_iter_close_container(&iterator, &inner) != 0 else { throw .outOfMemory }
}
