// SPDX-License-Identifier: MIT

/// Rows of words under headings, padded into columns.
struct TextTable {
    private var rows: [[String]]
    private let numeric: Set<Int>

    /// - Parameter numeric: indices of the columns that are aligned to the right.
    init(headings: [String] = [], numeric: Set<Int> = []) {
        rows = headings.isEmpty ? [] : [headings]
        self.numeric = numeric
    }

    /// Adds a row; it may be shorter than others.
    mutating func add(_ row: [String]) { rows.append(row) }

    /// The lines, without blanks at their ends.
    var lines: [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                return numeric.contains(column) ? padding + cell : cell + padding
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}

/// Breaks a paragraph between words.
///
/// - Parameters:
///   - width: the longest line; a longer word stands on a line of its own.
///   - indent: blanks before each line but the first.
func wrapped(_ text: String, width: Int, indent: Int = 0) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
        if !line.isEmpty, line.count + 1 + word.count > width - indent {
            lines.append(line)
            line = ""
        }
        line += line.isEmpty ? String(word) : " \(word)"
    }
    lines.append(line)
    let margin = String(repeating: " ", count: indent)
    return lines.enumerated().map { $0.offset == 0 ? $0.element : margin + $0.element }
}
