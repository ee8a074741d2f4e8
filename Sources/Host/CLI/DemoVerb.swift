internal import TransportHost

/// `demo`: shows the package at work.
enum DemoVerb: Verb {
    static let name = "demo"
    static let usage = "[--json]"
    static let summary = "Shows a race, a forwarded port and a fallback, all on loopback"
    static let details = """
        Runs a listener, a client and a small web server in this process, on loopback ports of their own. Prints what was
        dialled, what won and why, and a forwarded HTTP request with its answer; then lets no UDP through and shows the
        next session come up on the WebSocket. Needs no configuration and takes about a second. Exits with 0 if all of it
        went as it should.
        """
    static let operands = 0...0
    static let flags: [Flag] = [
        Flag("--json", "print one JSON object instead of the timeline, which then goes to standard error")
    ]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let asJSON = arguments.has("--json")
        let report = try await Demo.run { line in
            if asJSON {
                Console.complain(line)
            } else {
                Console.say(line)
            }
        }
        let code = asJSON ? ExitCode.saying(report.json) : ExitCode.done
        return report.isAsExpected ? code : ExitCode.failed
    }
}
