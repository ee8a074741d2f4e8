internal import TransportHost
internal import TransportKit

/// `forward`: one listening forward without a config file.
enum ForwardVerb: Verb {
    static let name = "forward"
    static let usage = "LISTEN URL TO [flags]"
    static let summary = "Forwards one local port through a service"
    static let details = """
        LISTEN is the local address, tcp://address:port; port 0 takes a free one, and the address is printed. URL is a
        route of the service `forward` of another transportkit, TO the address that it is to reach. Prints `ready` once
        the port is bound, and stops like `run`.

            transportkit forward tcp://127.0.0.1:9000 wss://door.example/forward tcp://127.0.0.1:9001
        """
    static let stopsOnSignals = true
    static let operands = 3...3
    static let flags = DialFlags.all

    static func run(_ arguments: Arguments) async throws -> Int32 {
        let dial = try DialFlags.settings(url: arguments.operands[1], arguments)
        let listen = try endpoint(arguments.operands[0], allowsAnyPort: true)
        let to = try endpoint(arguments.operands[2], allowsAnyPort: false)
        try await HostProgram.forward(listen, dial, to) { bound in
            if let address = bound.forwards.first ?? nil { Console.say("listening at tcp://\(address)") }
            Console.say("ready")
        }
        return ExitCode.done
    }

    private static func endpoint(_ text: String, allowsAnyPort: Bool) throws(UsageError) -> TCPEndpoint {
        do {
            return try TCPEndpoint(text, allowsAnyPort: allowsAnyPort)
        } catch {
            throw UsageError("'\(text)': \(error)")
        }
    }
}
