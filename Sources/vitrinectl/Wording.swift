// SPDX-License-Identifier: MIT
import Loop

/// A text of another program, made safe for a terminal and for one line: what is not printable becomes `\u{…}`.
func printable(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar.properties.generalCategory {
        // Format characters can turn the direction of what follows.
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse:
            result += "\\u{\(String(scalar.value, radix: 16))}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

/// A time as people read it: `0:07`, `12:34`, `1:02:03`.
func clockTime(_ duration: Duration) -> String {
    let seconds = max(0, duration.nanoseconds / 1_000_000_000)
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60)
    let twoDigits = { (number: Int64) in number < 10 ? "0\(number)" : "\(number)" }
    return hours > 0
        ? "\(hours):\(twoDigits(minutes)):\(twoDigits(seconds % 60))" : "\(minutes):\(twoDigits(seconds % 60))"
}

/// An amount of bytes as people read it: `999 B`, `1.5 kB`, `12.3 MB`.
func byteCount(_ bytes: UInt64) -> String {
    var (divisor, unit): (UInt64, String) = (1, "B")
    for (factor, name) in [(1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB"), (1_000_000_000_000, "TB")] as [(UInt64, String)]
    where bytes >= factor {
        (divisor, unit) = (factor, name)
    }
    if divisor == 1 { return "\(bytes) B" }
    return "\(bytes / divisor).\(bytes % divisor * 10 / divisor) \(unit)"
}

/// `1 reader`, `2 readers`.
func counted(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
