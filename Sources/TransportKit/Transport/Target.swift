/// What a dialer asks for: the path and query of the URL (R5).
public struct Target: Sendable, Hashable {
    /// The longest target, in bytes of UTF-8.
    public static let limit = 4096

    /// The path with its leading slash.
    public let path: String
    /// What follows the question mark, or nil without one. It may hold a token: never log it.
    public let query: String?

    /// Reads a path and query.
    ///
    /// - Returns: nil where it is empty, longer than 4,096 bytes, does not start with a slash, or has a control
    ///   character, a space or a fragment.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.limit, text.hasPrefix("/") else { return nil }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "#") }) else { return nil }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts[0])
        query = parts.count == 2 ? String(parts[1]) : nil
    }

    private init() {
        path = "/"
        query = nil
    }

    /// The target `/`.
    public static let root = Target()

    /// Path and query, as they go on the wire.
    public var wireForm: String { query.map { "\(path)?\($0)" } ?? path }
}

extension Target: CustomStringConvertible {
    /// The path; a query is only hinted at, because it may hold a secret (B23).
    public var description: String { query == nil ? path : "\(path)?…" }
}
