// SPDX-License-Identifier: MIT

/// The word that somebody probably meant; nil when none is near enough to be worth saying.
///
/// - Parameter words: of two that are as near, the first wins.
func nearestWord(to typed: String, in words: [String]) -> String? {
    if typed.count >= 2, let whole = words.first(where: { $0.hasPrefix(typed) }) { return whole }
    let candidates = words.map { ($0, editDistance(typed, $0)) }
    guard let best = candidates.min(by: { $0.1 < $1.1 }) else { return nil }
    // One slip in a short word, two in a longer one.
    return best.1 <= (max(typed.count, best.0.count) < 5 ? 1 : 2) ? best.0 : nil
}

/// The number of letters that must be added, left out, replaced or swapped with their neighbour to make one word of another.
///
/// This is the restricted Damerau-Levenshtein distance.
func editDistance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left), Array(right))
    if left.isEmpty || right.isEmpty { return max(left.count, right.count) }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
        var current = [row]
        for column in 1...right.count {
            let isSame = left[row - 1] == right[column - 1]
            var best = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (isSame ? 0 : 1))
            if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                best = min(best, beforeLast[column - 2] + 1)
            }
            current.append(best)
        }
        (beforeLast, last) = (last, current)
    }
    return last[right.count]
}
