/// One verb of the program.
protocol Verb {
    /// The word that picks it.
    static var name: String { get }
    /// What follows the word, for the help.
    static var usage: String { get }
    /// One line on what it does.
    static var summary: String { get }
    /// The rest of its help.
    static var details: String { get }
    /// How many words it takes that are no flags.
    static var operands: ClosedRange<Int> { get }
    /// Its flags.
    static var flags: [Flag] { get }
    /// Whether it runs until a signal stops it, and then ends well.
    static var stopsOnSignals: Bool { get }

    /// Does it, and returns the exit code.
    static func run(_ arguments: Arguments) async throws -> Int32
}

extension Verb {
    static var stopsOnSignals: Bool { false }
}

/// A flag of a verb.
struct Flag {
    /// The flag with its dashes.
    let name: String
    /// What its value is called in the help; nil for a flag without one.
    let value: String?
    /// Whether it may be given several times.
    let isRepeatable: Bool
    /// What it does.
    let help: String

    init(_ name: String, _ help: String) {
        self.init(name, nil, help)
    }

    init(_ name: String, _ value: String?, isRepeatable: Bool = false, _ help: String) {
        self.name = name
        self.value = value
        self.isRepeatable = isRepeatable
        self.help = help
    }
}

/// The text that `--help` prints.
enum Help {
    static var overview: String {
        let width = Main.verbs.map { $0.name.count }.max() ?? 0
        let lines = Main.verbs.map { verb in
            "  \(verb.name)\(String(repeating: " ", count: width - verb.name.count))  \(verb.summary)"
        }
        return """
            usage: transportkit VERB …

            Keeps conversations alive over whatever the network lets through: QUIC where it works, WebSocket where it
            does not.

            \(lines.joined(separator: "\n"))

            `transportkit VERB --help` says more about each. `transportkit --version` names the version.
            Results go to standard output, progress and errors to standard error.
            Exit codes: 0 done, 1 failed while running, 2 bad usage or config.
            """
    }

    static func text(of verb: any Verb.Type) -> String {
        var parts = ["usage: transportkit \(verb.name) \(verb.usage)", verb.summary + "."]
        if !verb.details.isEmpty { parts.append(verb.details) }
        let left = verb.flags.map { flag in flag.name + (flag.value.map { " " + $0 } ?? "") }
        let width = left.map(\.count).max() ?? 0
        let lines = zip(left, verb.flags).map { words, flag in
            let indent = String(repeating: " ", count: width + 4)
            let help = flag.help.split(separator: "\n").joined(separator: "\n\(indent)")
            return "  \(words)\(String(repeating: " ", count: width - words.count))  \(help)"
        }
        if !lines.isEmpty { parts.append(lines.joined(separator: "\n")) }
        return parts.joined(separator: "\n\n")
    }
}
