// SPDX-License-Identifier: MIT

extension [UInt8] {
    /// Adds a number, its lowest byte first.
    mutating func appendLittleEndian(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
