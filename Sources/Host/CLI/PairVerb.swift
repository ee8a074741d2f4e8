internal import TransportHost
internal import TransportKit

/// `pair`: brings a box and a new client together.
enum PairVerb: Verb {
    static let name = "pair"
    static let usage = "[CONFIG] [--json] | --join CONFIG [flags]"
    static let summary = "Lets one new device reach a box, and makes the config of that device"
    static let details = """
        On a box: asks the host that runs CONFIG, or the only one that runs here, for a line of text, and prints it, on a
        terminal also as a QR code. The line lets in one device within ten minutes: show it to nobody else.

        On the new device, with --join: reads that line from standard input, reaches the box once, and writes CONFIG, which
        forwards a local port to each service of the box. It makes a key for the device where there is none. A file that is
        there is never overwritten.

            transportkit pair --join phone.yaml < line.txt
        """
    static let operands = 0...1
    static let flags: [Flag] = [
        Flag("--json", "print one line of JSON"),
        Flag("--qr", "print the QR code also where standard output is no terminal"),
        Flag("--join", "CONFIG", "read a line and write this config file"),
        Flag("--key", "FILE", "--join: the key of the device; device.key beside CONFIG unless said otherwise"),
        Flag("--trust", "FILE", "--join: trust the certificates in this PEM file instead of the machine's own"),
        Flag("--port", "PORT", "--join: the local port of the first service; 8080 unless said otherwise"),
        Flag("--timeout", "DURATION", "--join: how long to try; 30s unless said otherwise"),
    ]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        if let config = arguments.value("--join") { return try await join(config, arguments) }
        for flag in ["--key", "--trust", "--port", "--timeout"] where arguments.has(flag) {
            throw UsageError("\(flag) goes with --join")
        }
        let (report, json) = try ControlClient.ask(
            ControlRequest(request: .pair), configFile: arguments.operands.first, for: PairReport.self)
        if !report.isLinked {
            Console.complain("transportkit: the box is not linked to its door right now; the line is good once it is")
        }
        if arguments.has("--json") { return ExitCode.saying(json) }
        let code = ExitCode.saying(report.line)
        guard code == ExitCode.done, arguments.has("--qr") || Console.isTerminal else { return code }
        guard let picture = QRCode.lines(report.line) else {
            Console.complain("transportkit: the line is too long for a QR code")
            return code
        }
        return ExitCode.saying(picture.joined(separator: "\n"))
    }

    private static func join(_ config: String, _ arguments: Arguments) async throws -> Int32 {
        guard arguments.operands.isEmpty else { throw UsageError("--join asks no host; leave the other file out") }
        if arguments.has("--qr") { throw UsageError("--qr does not go with --join") }
        var settings = Joining.Settings(config: config)
        settings.key = arguments.value("--key")
        settings.trustFile = arguments.value("--trust")
        if let text = arguments.value("--port") {
            guard let port = UInt16(text), port > 0 else { throw UsageError("--port must be 1 to 65535") }
            settings.port = port
        }
        if let limit = try DialFlags.duration("--timeout", arguments) { settings.timeout = limit }
        let report = try await Joining.run(settings)
        return ExitCode.saying(arguments.has("--json") ? report.json : report.lines.joined(separator: "\n"))
    }
}
