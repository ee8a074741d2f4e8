@preconcurrency internal import Glibc
internal import TransportIO

/// One measurement or one server of a measurement. `bin/compare` runs them beside other programs.
struct Command: Sendable {
    let name: String
    let usage: String
    let run: @Sendable (inout Arguments) async throws -> Void
}

@main
struct Bench {
    static let commands: [Command] =
        LoopPingPong.commands + RawSockets.commands + QUICBench.commands + WireServer.commands + WireClients.commands

    static func main() async {
        signal(SIGPIPE, SIG_IGN)
        FreedMemory.keep()
        var arguments = Arguments(Array(CommandLine.arguments.dropFirst()))
        let name = arguments.next()
        guard let command = commands.first(where: { $0.name == name }) else {
            let list = commands.map { "  bench \($0.name) \($0.usage)" }.joined(separator: "\n")
            complain("usage:\n\(list)")
            exit(2)
        }
        do {
            try await command.run(&arguments)
        } catch {
            complain("bench \(command.name): \(error)")
            exit(error is Arguments.Invalid ? 2 : 1)
        }
    }

    /// Prints the result of a measurement as one JSON object, which is all that goes to standard output.
    static func report(_ value: Double, unit: String, _ extra: [(String, Double)] = []) {
        let fields = extra.map { ",\"\($0.0)\":\($0.1)" }.joined()
        say("{\"value\":\(value),\"unit\":\"\(unit)\"\(fields)}")
    }

    /// Says that a server is bound.
    static func ready() { say("ready") }

    private static func say(_ line: String) {
        print(line)
        fflush(stdout)
    }

    private static func complain(_ line: String) {
        fputs(line + "\n", stderr)
    }
}

/// The words of a command line, taken one after the other.
struct Arguments {
    struct Invalid: Error, CustomStringConvertible {
        let description: String
    }

    private var words: [String]

    init(_ words: [String]) {
        self.words = words
    }

    /// Takes the next word that is no flag.
    mutating func next() -> String? {
        words.isEmpty ? nil : words.removeFirst()
    }

    /// Takes the next word.
    mutating func required(_ what: String) throws(Invalid) -> String {
        guard let word = next() else { throw Invalid(description: "\(what) is missing") }
        return word
    }

    /// Takes the next word as a number.
    mutating func number(_ what: String) throws(Invalid) -> Int {
        let word = try required(what)
        guard let number = Int(word) else { throw Invalid(description: "\(what) is no number: \(word)") }
        return number
    }

    /// Takes `--name value` from anywhere on the line.
    mutating func flag(_ name: String) throws(Invalid) -> String? {
        guard let index = words.firstIndex(of: "--\(name)") else { return nil }
        guard index + 1 < words.count else { throw Invalid(description: "--\(name) needs a value") }
        let value = words[index + 1]
        words.removeSubrange(index...(index + 1))
        return value
    }

    /// Takes `--name value` from anywhere on the line as a number.
    mutating func flag(_ name: String, default fallback: Int) throws(Invalid) -> Int {
        guard let word = try flag(name) else { return fallback }
        guard let number = Int(word) else { throw Invalid(description: "--\(name) is no number: \(word)") }
        return number
    }
}
