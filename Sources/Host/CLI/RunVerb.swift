internal import TransportHost

/// `run`: runs a config file.
enum RunVerb: Verb {
    static let name = "run"
    static let usage = "CONFIG [--trace FILE]"
    static let summary = "Runs the listeners and forwards of a config file"
    static let details = """
        Prints `ready` on standard output once everything is bound; the log goes to standard error. A network that is
        down ends nothing: forwards stay bound, and connections on them wait for a while and are then reset.

        SIGTERM, SIGINT or SIGHUP stops it: nothing new is accepted, transfers go on until they end or `grace` is over,
        peers are told 1001, and the exit code is 0. A second signal ends it at once, with 1. `nohup` keeps SIGHUP away.
        """
    static let stopsOnSignals = true
    static let operands = 1...1
    static let flags: [Flag] = [
        Flag("--trace", "FILE", "write what carriers see on their paths, for `explain --replay`")
    ]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        if let trace = arguments.value("--trace"), let problem = Trace.problem(addingTo: trace) {
            throw UsageError("--trace: \(problem)")
        }
        try await HostProgram.run(configFile: arguments.operands[0], trace: arguments.value("--trace")) {
            Console.say("ready")
        }
        return ExitCode.done
    }
}
