internal import TransportHost
internal import TransportKit

/// `pipe`: standard input as messages, answers to standard output.
enum PipeVerb: Verb {
    static let name = "pipe"
    static let usage = "URL [flags]"
    static let summary = "Sends standard input as messages and prints the answers"
    static let details = """
        Each line is a message, and each answer is printed as a line; with --raw whatever is there is a message of up to
        64 KiB, and answers are written as they are.

        When the input has ended it waits for the answers: until there are as many as messages were sent (with --raw: as
        many bytes), or until none has come for the linger time. Then it closes, and exits with 0 only if the service has
        taken everything that was sent; with 1 if that is not known, if the service closed early, or if whoever reads
        standard output has gone.

            printf 'hello\\n' | transportkit pipe wss://127.0.0.1:8443/echo --trust certificate.pem
        """
    static let operands = 1...1
    static let flags: [Flag] =
        [
            Flag("--lines", "each line is a message; this is so unless said otherwise"),
            Flag("--raw", "bytes as they come"),
            Flag("--linger", "DURATION", "how long to wait for answers that do not come; 2s unless said otherwise"),
            Flag("--quiet", "say nothing but errors"),
        ] + DialFlags.all

    static func run(_ arguments: Arguments) async throws -> Int32 {
        if arguments.has("--lines"), arguments.has("--raw") { throw UsageError("--lines and --raw exclude each other") }
        let settings = Pipe.Settings(
            dial: try DialFlags.settings(url: arguments.operands[0], arguments),
            mode: arguments.has("--raw") ? .raw : .lines,
            linger: try DialFlags.duration("--linger", arguments) ?? .seconds(2))
        let level: LogLevel = arguments.has("--quiet") ? .error : .info
        let isDelivered = try await Pipe.run(settings, log: Log(level: level, sink: StandardErrorLog()))
        return isDelivered ? ExitCode.done : ExitCode.failed
    }
}
