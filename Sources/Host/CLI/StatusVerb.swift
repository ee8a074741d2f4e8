internal import TransportHost

/// `status`: what a running host says of itself.
enum StatusVerb: Verb {
    static let name = "status"
    static let usage = "[CONFIG] [--json]"
    static let summary = "Says what a running host is doing"
    static let details = """
        Asks the host that runs CONFIG, or the only one that runs here: its carriers, how they travel and since when; what
        won and what stands back on each network, until when and why; its forwards and listeners. Exits with 1 where
        nobody answers.
        """
    static let operands = 0...1
    static let flags: [Flag] = [Flag("--json", "print the answer as one line of JSON")]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let (report, json) = try ControlClient.ask(
            ControlRequest(request: .status), configFile: arguments.operands.first, for: StatusReport.self)
        return ExitCode.saying(arguments.has("--json") ? json : StatusText.lines(report).joined(separator: "\n"))
    }
}
