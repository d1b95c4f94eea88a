// SPDX-License-Identifier: MIT
import Glibc

/// The number that a failed system call left behind.
public struct Errno: Error, Equatable, Sendable, CustomStringConvertible {
    /// The value of `errno(3)`.
    public let code: Int32

    /// Wraps a code that a library returned.
    ///
    /// - Parameter code: a value of `errno(3)`; the sign that PipeWire puts before it is taken off.
    public init(_ code: Int32) { self.code = code < 0 ? -code : code }

    /// The calling thread's last error.
    public static var last: Errno { Errno(errno) }

    /// The system's sentence for the code.
    public var description: String {
        var buffer = [CChar](repeating: 0, count: 128)
        return buffer.withUnsafeMutableBufferPointer { pointer in
            guard let base = pointer.baseAddress, strerror_r(code, base, pointer.count) == 0 else { return "error \(code)" }
            return String(cString: base)
        }
    }

    /// Runs a system call again for as long as a signal interrupts it.
    ///
    /// - Throws: what the call left in `errno` when it returned a negative number.
    @discardableResult
    public static func check<Number: SignedInteger>(_ call: () -> Number) throws(Errno) -> Number {
        while true {
            let result = call()
            if result >= 0 { return result }
            if errno != EINTR { throw Errno.last }
        }
    }
}
