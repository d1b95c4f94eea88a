// SPDX-License-Identifier: MIT

/// The last element of a request's or a session's object path, chosen by the caller.
///
/// 128 random bits: not to be guessed by others, and never used twice. Only `[A-Za-z0-9_]`, because another character
/// aborts the whole portal up to xdg-desktop-portal 1.20.
struct HandleToken: Hashable, Sendable {
    let text: String

    /// A fresh token.
    init() {
        // Reads getrandom(2).
        var generator = SystemRandomNumberGenerator()
        let digits = (0..<4).map { _ in
            let word = String(generator.next() as UInt32, radix: 16)
            return String(repeating: "0", count: 8 - word.count) + word
        }
        text = "vitrine_" + digits.joined()
    }
}
