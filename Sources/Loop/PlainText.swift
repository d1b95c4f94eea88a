// SPDX-License-Identifier: MIT

extension String {
    /// This text, which may be anybody's, as it can stand beside other text for people to read.
    ///
    /// Control characters, and what turns the direction of writing round or is otherwise not seen, become U+FFFD: they could show what
    /// stands beside them as something else. The joiners stay, of which some scripts and emoji are made.
    public var asPlainText: String {
        if utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return self }
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars { result.append(scalar.isPlain ? scalar : "\u{FFFD}") }
        return String(result)
    }
}

extension Unicode.Scalar {
    fileprivate var isPlain: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: false
        case .format: value == 0x200C || value == 0x200D
        default: true
        }
    }
}
