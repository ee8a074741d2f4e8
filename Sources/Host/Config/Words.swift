internal import TransportKit

/// Words for messages to people.
package enum Words {
    /// `a, b and c`.
    package static func list(_ words: [String], joint: String = "and") -> String {
        guard words.count > 1, let last = words.last else { return words.first ?? "nothing" }
        return "\(words.dropLast().joined(separator: ", ")) \(joint) \(last)"
    }

    /// The word that somebody most likely meant, or nil where none is close.
    package static func nearest(to word: String, among words: [String]) -> String? {
        let written = Array(word.lowercased().unicodeScalars.prefix(64))
        let tolerance = max(1, written.count / 3)
        let ranked = words.map { ($0, distance(written, Array($0.lowercased().unicodeScalars.prefix(64)))) }
        guard let best = ranked.min(by: { $0.1 < $1.1 }), best.1 <= tolerance else { return nil }
        return best.0
    }

    /// How many characters are to be added, left out, replaced or swapped with their neighbour (optimal string alignment).
    private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
        guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
        var rows = [Array(0...right.count)]
        for row in 1...left.count {
            var current = [row]
            for column in 1...right.count {
                let isSame = left[row - 1] == right[column - 1]
                var best = min(
                    rows[row - 1][column] + 1, current[column - 1] + 1, rows[row - 1][column - 1] + (isSame ? 0 : 1))
                if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                    best = min(best, rows[row - 2][column - 2] + 1)
                }
                current.append(best)
            }
            rows.append(current)
        }
        return rows[left.count][right.count]
    }
}

extension Words {
    /// A duration in milliseconds with one decimal, such as `4.7 ms`.
    package static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int((duration.inMilliseconds * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10)) ms"
    }
}
