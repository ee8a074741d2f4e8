/// The words of the command line.
struct Options: Sendable {
    struct Invalid: Error {
        let description: String
    }

    /// Few samples, nothing lost.
    private(set) var isShort = false
    private(set) var samples = 30
    /// The one table that is wanted.
    private(set) var only: String?
    private(set) var earlier = "Benchmarks/earlier.json"
    /// The page that takes the tables.
    private(set) var file: String?
    private(set) var commit = "unknown"

    init(_ words: [String]) throws(Invalid) {
        var words = words[...]
        var samples: Int?
        while let word = words.popFirst() {
            switch word {
            case "--short": isShort = true
            case "--samples":
                guard let number = words.popFirst().flatMap({ Int($0) }), number > 0 else {
                    throw Invalid(description: "--samples needs a number above 0")
                }
                samples = number
            case "--only":
                let name = try Self.value(of: word, &words)
                guard ["connect", "switch"].contains(name) else {
                    throw Invalid(description: "there is no table '\(name)'")
                }
                only = name
            case "--earlier": earlier = try Self.value(of: word, &words)
            case "--write": file = try Self.value(of: word, &words)
            case "--commit": commit = try Self.value(of: word, &words)
            default: throw Invalid(description: "'\(word)' is not understood")
            }
        }
        // The page has all tables, of a full run.
        if file != nil, isShort || only != nil {
            throw Invalid(description: "--write goes with neither --short nor --only")
        }
        self.samples = samples ?? (isShort ? 7 : 30)
    }

    func wants(_ table: String) -> Bool { only == nil || only == table }

    private static func value(of word: String, _ words: inout ArraySlice<String>) throws(Invalid) -> String {
        guard let value = words.popFirst() else { throw Invalid(description: "\(word) needs a value") }
        return value
    }
}
