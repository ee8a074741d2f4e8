internal import TransportKit

/// Rows in columns that line up, within a width; the last column is broken into lines where it is too long.
///
/// What stands in it may be somebody else's text: it is made fit for a terminal.
package struct TextTable {
    private let width: Int
    private let indent: String
    private var rows: [[String]] = []

    /// How many characters a cell keeps, and the last one of a row.
    private static let (cellLimit, sentenceLimit) = (300, 4000)

    /// Starts a table whose first row is its head.
    package init(_ head: [String], indent: Int = 0, width: Int = 100) {
        self.width = width
        self.indent = String(repeating: " ", count: indent)
        add(head)
    }

    /// Whether there is nothing below the head.
    package var isEmpty: Bool { rows.count == 1 }

    /// Adds a row.
    package mutating func add(_ row: [String]) {
        rows.append(
            row.enumerated().map { index, cell in
                cell.printable(limit: index == row.count - 1 ? Self.sentenceLimit : Self.cellLimit)
            })
    }

    /// The table as lines.
    package var lines: [String] {
        guard let columns = rows.map(\.count).max(), columns > 0 else { return [] }
        let widths = (0..<columns - 1).map { column in
            rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
        }
        let room = max(width - indent.count - widths.reduce(0) { $0 + $1 + 2 }, 20)
        let margin = indent + String(repeating: " ", count: widths.reduce(0) { $0 + $1 + 2 })
        return rows.flatMap { row -> [String] in
            var start = indent
            for (column, columnWidth) in widths.enumerated() {
                let cell = row.indices.contains(column) ? row[column] : ""
                start += cell + String(repeating: " ", count: columnWidth - cell.count + 2)
            }
            let last = row.count == columns ? row[columns - 1] : ""
            return Self.broken(last, at: room).enumerated().map { index, part in
                Self.trimmed((index == 0 ? start : margin) + part)
            }
        }
    }

    /// Text in lines of at most `width` characters, broken between words where there are any.
    package static func broken(_ text: String, at width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if !line.isEmpty, line.count + 1 + word.count <= width {
                line += " " + word
                continue
            }
            if !line.isEmpty { lines.append(line) }
            line = String(word)
            while line.count > width {
                lines.append(String(line.prefix(width)))
                line = String(line.dropFirst(width))
            }
        }
        return lines + [line]
    }

    private static func trimmed(_ line: String) -> String {
        String(line.reversed().drop { $0 == " " }.reversed())
    }
}
