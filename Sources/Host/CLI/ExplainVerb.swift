internal import TransportHost

/// `explain`: why a carrier travels as it does, and how it would by other policies.
enum ExplainVerb: Verb {
    static let name = "explain"
    static let usage = "CARRIER [CONFIG] [--json] | --replay TRACE [flags]"
    static let summary = "Says why a carrier of a running host travels as it does"
    static let details = """
        Asks the host that runs CONFIG, or the only one that runs here, for the last sessions that CARRIER has opened or
        tried to: what was dialled when and at which address, what each layer took, in milliseconds, what the memory said
        at the start, and why the winner won. Exits with 1 where nobody answers.

        With --replay it asks nobody: it plays a trace that `run --trace` has written through two pairs of policies and
        shows, dial by dial, what would have been dialled, what would have carried it and after how long, and what would
        have stood back. Lines that are none of a trace are left out and counted.
        """
    static let operands = 0...2
    static let flags: [Flag] = [
        Flag("--json", "print the answer as one line of JSON"),
        Flag("--replay", "TRACE", "play this trace instead of asking a host"),
        Flag("--race", "A[,B]", "the race policies of the two; head-start,adaptive unless said otherwise"),
        Flag("--demotion", "X[,Y]", "the demotion policies of the two; day,evidence unless said otherwise"),
    ]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        if let trace = arguments.value("--replay") { return try await replay(trace, arguments) }
        for flag in ["--race", "--demotion"] where arguments.has(flag) {
            throw UsageError("\(flag) goes with --replay")
        }
        guard let carrier = arguments.operands.first else {
            throw UsageError("usage: transportkit \(name) \(usage)")
        }
        let (report, json) = try ControlClient.ask(
            ControlRequest(request: .explain, carrier: carrier), configFile: arguments.operands.dropFirst().first,
            for: ExplainReport.self)
        return ExitCode.saying(arguments.has("--json") ? json : StatusText.lines(report).joined(separator: "\n"))
    }

    private static func replay(_ trace: String, _ arguments: Arguments) async throws -> Int32 {
        guard arguments.operands.isEmpty else { throw UsageError("--replay asks no host; leave the carrier out") }
        let race = try names("--race", arguments, usually: ["head-start", "adaptive"])
        let demotion = try names("--demotion", arguments, usually: ["day", "evidence"])
        let pairs: [(race: String, demotion: String)] = [
            (race[0], demotion[0]), (race[race.count - 1], demotion[demotion.count - 1]),
        ]
        let policies: [ReplayReport.Policies]
        do {
            policies = try await ReplayReport.policies(race: pairs.map(\.race), demotion: pairs.map(\.demotion))
        } catch let error as TraceError {
            throw UsageError("\(error)")
        }
        let report = ReplayReport(try Trace.read(file: trace), policies)
        return ExitCode.saying(arguments.has("--json") ? report.json : report.lines.joined(separator: "\n"))
    }

    /// One or two names. Where only one of the two flags stands there, the other's policy is the usual one for both.
    private static func names(
        _ flag: String, _ arguments: Arguments, usually: [String]
    ) throws(UsageError) -> [String] {
        guard let text = arguments.value(flag) else {
            let isAlone = !arguments.has("--race") && !arguments.has("--demotion")
            return isAlone ? usually : [usually[0]]
        }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard (1...2).contains(names.count) else { throw UsageError("\(flag) needs one name, or two with a comma") }
        return names
    }
}
