// SPDX-License-Identifier: MIT
extension NodeDescription {
    /// Reads a `<node>`.
    public init(parsing xml: String) throws(XMLError) { throw XMLError(line: 1, message: "not yet") }
}
