internal import Foundation

/// The programs of this package, which are built beside the tests.
enum Built {
    static let transportkit = path("transportkit")
    static let linkshaper = path("linkshaper")

    private static func path(_ name: String) -> String {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
    }
}
