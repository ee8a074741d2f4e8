internal import TransportHost

/// `explain`: why a carrier travels as it does.
enum ExplainVerb: Verb {
    static let name = "explain"
    static let usage = "CARRIER [CONFIG] [--json]"
    static let summary = "Says why a carrier of a running host travels as it does"
    static let details = """
        Asks the host that runs CONFIG, or the only one that runs here, for the last sessions that CARRIER has opened or
        tried to: what was dialled when and at which address, what each layer took, in milliseconds, what the memory said
        at the start, and why the winner won. Exits with 1 where nobody answers.
        """
    static let operands = 1...2
    static let flags: [Flag] = [Flag("--json", "print the answer as one line of JSON")]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let request = ControlRequest(request: .explain, carrier: arguments.operands[0])
        let (report, json) = try ControlClient.ask(
            request, configFile: arguments.operands.count > 1 ? arguments.operands[1] : nil, for: ExplainReport.self)
        return ExitCode.saying(arguments.has("--json") ? json : StatusText.lines(report).joined(separator: "\n"))
    }
}
