internal import Foundation
internal import RigSupport

/// The page that shows the tables: what stands between two marks in it is replaced.
enum Page {
    private static let (begin, end) = ("<!-- tables: begin -->", "<!-- tables: end -->")

    static func write(_ text: String, into file: String, commit: String) throws {
        let url = URL(fileURLWithPath: file)
        let page = try String(contentsOf: url, encoding: .utf8)
        guard let first = page.range(of: begin), let last = page.range(of: end), first.upperBound <= last.lowerBound
        else { throw RigFailure("\(file) has no place for tables: \(begin) and \(end)") }
        let date = Date().formatted(.iso8601.year().month().day())
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let origin = "Measured \(date) at commit \(commit), on a machine with \(processors) processors."
        try (page[..<first.upperBound] + "\n\(origin)\n\n\(text)\n" + page[last.lowerBound...])
            .write(to: url, atomically: true, encoding: .utf8)
    }
}
