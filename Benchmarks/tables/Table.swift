internal import Foundation

/// Measurements as rows of words, with what a reader must know about them.
struct Table: Sendable {
    /// A short name, for files about the table.
    let name: String
    let title: String
    let columns: [String]
    var rows: [[String]] = []
    var notes: [String] = []

    /// The table as Markdown.
    var markdown: String {
        let head = [columns, columns.map { _ in "---" }]
        let lines = (head + rows).map { "| \($0.joined(separator: " | ")) |" }
        let notes = notes.map { "- \($0)" }
        return (["### \(title)", ""] + lines + (notes.isEmpty ? [] : [""] + notes)).joined(separator: "\n")
    }
}

/// A number, as a cell has it.
func cell(_ number: Double, digits: Int = 0) -> String { String(format: "%.\(digits)f", number) }

/// Several of them in one cell.
func cell(_ numbers: [Double]?) -> String {
    numbers.map { $0.map { cell($0) }.joined(separator: " / ") } ?? ""
}
