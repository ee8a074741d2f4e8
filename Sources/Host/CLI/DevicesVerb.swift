internal import TransportHost

/// `devices`: who may reach a box.
enum DevicesVerb: Verb {
    static let name = "devices"
    static let usage = "[CONFIG] [--json] | name DEVICE NAME [CONFIG] | revoke DEVICE [CONFIG]"
    static let summary = "Lists, names and removes the devices of a box"
    static let details = """
        Asks the host that runs CONFIG, or the only one that runs here. DEVICE is a public key, the beginning of one, or a
        name. A device that is revoked loses its sessions at once and must be paired again to come back. After each the
        devices are listed.
        """
    static let operands = 0...4
    static let flags: [Flag] = [Flag("--json", "print the answer as one line of JSON")]

    static func run(_ arguments: Arguments) async throws -> Int32 {
        var request = ControlRequest(request: .devices)
        var words = arguments.operands[...]
        switch words.first {
        case "name":
            guard (3...4).contains(words.count) else { throw usageError }
            request = ControlRequest(request: .name, device: words[1], name: words[2])
            words = words.dropFirst(3)
        case "revoke":
            guard (2...3).contains(words.count) else { throw usageError }
            request = ControlRequest(request: .revoke, device: words[1])
            words = words.dropFirst(2)
        default:
            guard words.count <= 1 else { throw usageError }
        }
        let (report, json) = try ControlClient.ask(request, configFile: words.first, for: DevicesReport.self)
        return ExitCode.saying(arguments.has("--json") ? json : report.lines.joined(separator: "\n"))
    }

    private static var usageError: UsageError { UsageError("usage: transportkit \(name) \(usage)") }
}
