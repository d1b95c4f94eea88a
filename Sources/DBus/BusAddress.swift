// SPDX-License-Identifier: MIT
import Glibc

/// Which bus.
public enum BusAddress: Equatable, Sendable {
    /// The user's.
    case session
    /// The machine's.
    case system
    /// Any other, in the form of the specification: `unix:path=/…`.
    ///
    /// <https://dbus.freedesktop.org/doc/dbus-specification.html#addresses>
    case at(String)

    /// The address in the specification's form; nil when there is none.
    ///
    /// It is made here because the library would start a bus of its own rather than say that there is none.
    var text: String? {
        switch self {
        case .at(let address): return address
        case .system: return variable("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
        case .session:
            if let address = variable("DBUS_SESSION_BUS_ADDRESS") { return address }
            guard let directory = variable("XDG_RUNTIME_DIR") else { return nil }
            return "unix:path=\(escaped("\(directory)/bus"))"
        }
    }
}

private func variable(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// Escapes what may not stand for itself in an address.
private func escaped(_ path: String) -> String {
    path.utf8.reduce(into: "") { text, byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "*"):
            text.unicodeScalars.append(Unicode.Scalar(byte))
        default:
            text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}
