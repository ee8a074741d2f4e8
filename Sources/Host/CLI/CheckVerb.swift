internal import TransportHost

/// `check`: makes everything a config file asks for and starts none of it.
enum CheckVerb: Verb {
    static let name = "check"
    static let usage = "CONFIG"
    static let summary = "Checks a config file and starts nothing"
    static let details = """
        Reads the file, resolves every name, reads every certificate and says all that is wrong, each as
        file:line:column: path: what; what is allowed. It says the same as `run` would, and exits with 0 where `run`
        would go on to bind its ports, else with 2.
        """
    static let operands = 1...1
    static let flags: [Flag] = []

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let file = arguments.operands[0]
        let summary = try await HostProgram.check(configFile: file)
        return ExitCode.saying("\(file): ok, \(summary)")
    }
}
