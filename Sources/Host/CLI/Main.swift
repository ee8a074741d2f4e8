import Glibc
internal import TransportHost
internal import TransportIO
internal import TransportKit

/// The program `transportkit`: picks the verb and turns what it throws into an exit code.
@main
struct Main {
    /// Every verb, in the order of the help.
    static var verbs: [any Verb.Type] {
        [
            DemoVerb.self, RunVerb.self, CheckVerb.self, StatusVerb.self, ExplainVerb.self, PipeVerb.self,
            ForwardVerb.self, EchoVerb.self, KeygenVerb.self,
            PairVerb.self, DevicesVerb.self,
        ]
    }

    static func main() async {
        // A reader that goes away must not end the program (B26); writes then fail instead.
        signal(SIGPIPE, SIG_IGN)
        Console.claimDescriptors()
        FreedMemory.keep()
        let words = Array(CommandLine.arguments.dropFirst())
        // Also before its arguments are read a host ends well (B24).
        if verbs.contains(where: { $0.name == words.first && $0.stopsOnSignals }) { HostProgram.hearSignals() }
        exit(await run(words))
    }

    private static func run(_ words: [String]) async -> Int32 {
        do {
            try OpenFileLimit.raise()
            return try await perform(words)
        } catch let error as UsageError {
            Console.complain("transportkit: \(error.message)")
            return ExitCode.usage
        } catch let errors as ConfigErrors {
            let count = errors.errors.count
            Console.complain("\(errors)\n\(count == 1 ? "1 error" : "\(count) errors"); nothing was started")
            return ExitCode.usage
        } catch let close as Close where close.origin == .path {
            // Nobody closed anything, so the number tells a person nothing.
            Console.complain("transportkit: \(close.reason.printable(limit: 2000))")
            return ExitCode.failed
        } catch {
            Console.complain("transportkit: \(error)")
            return ExitCode.failed
        }
    }

    private static func perform(_ words: [String]) async throws -> Int32 {
        guard let first = words.first else {
            Console.complain(Help.overview)
            return ExitCode.usage
        }
        switch first {
        case "--help", "-h", "help":
            let verb = words.count > 1 ? verbs.first { $0.name == words[1] } : nil
            return ExitCode.saying(verb.map(Help.text) ?? Help.overview)
        case "--version":
            return ExitCode.saying("transportkit \(HostVersion.text)")
        default:
            break
        }
        guard let verb = verbs.first(where: { $0.name == first }) else {
            let names = verbs.map { $0.name }
            let hint = Words.nearest(to: first, among: names).map { "did you mean '\($0)'? " } ?? ""
            let what = first.hasPrefix("-") ? "flag" : "verb"
            throw UsageError(
                "unknown \(what) '\(first)'; \(hint)there are \(Words.list(names + ["--help", "--version"]))")
        }
        let rest = Array(words.dropFirst())
        if rest.contains("--help") || rest.contains("-h") {
            return ExitCode.saying(Help.text(of: verb))
        }
        return try await verb.run(Arguments(rest, verb: verb))
    }
}

/// What the program ends with.
enum ExitCode {
    static let done: Int32 = 0
    static let failed: Int32 = 1
    static let usage: Int32 = 2

    /// Writes the result of the program; one that nobody gets is no success.
    static func saying(_ result: String) -> Int32 {
        if Console.say(result) { return done }
        Console.complain("transportkit: \(Console.outputFailure())")
        return failed
    }
}

/// The command line is wrong.
struct UsageError: Error {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
