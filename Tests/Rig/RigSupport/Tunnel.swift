internal import Foundation

/// `transportkit run` at the door and at the client, with one forward to an echo service behind the door.
///
/// An application of the client connects to 127.0.0.1, port 9000, and reaches the echo at the door's port 7000.
package struct Tunnel: Sendable {
    /// What the configuration files say beyond the plain case.
    package struct Options: Sendable {
        /// The host in the client's URL.
        package var host = Topology.doorAddress
        package var transports = "[quic, websocket]"
        /// Lines for the carrier, for example `race: parallel`.
        package var carrier: [String] = []
        /// Lines for the door's file, for example `transports: { … }`.
        package var door: [String] = []
        /// Lines for the listener.
        package var listener: [String] = []
        package var doorTransports = "[quic, websocket]"
        /// What the certificate is for, besides `door.test` and the door's two addresses.
        package var names: [String] = []
        package var doorURL = "wss://[::]:8443"
        package var logLevel = "debug"
        /// The port behind the door that the forward leads to; another than the echo's is the test's to serve.
        package var target: UInt16 = 7000
        /// Further carriers of the client.
        package var carriers: [String] = []
        /// Further forwards of the client.
        package var forwards: [String] = []

        package init() {}
    }

    package static let localPort: UInt16 = 9000

    package let topology: Topology
    package let echo: EchoService
    private let options: Options
    private let serverFile: String
    private let clientFile: String

    /// Writes the files and starts the echo; neither program runs yet.
    package init(_ topology: Topology, _ options: Options = Options()) async throws {
        self.topology = topology
        self.options = options
        let rig = topology.rig
        echo = try await EchoService(in: topology.door, port: 7000, rig: rig)
        let names = ["door.test", Topology.doorAddress, Topology.doorAddress6] + options.names
        serverFile = try rig.write(
            """
            log: { level: \(options.logLevel) }
            grace: 1s
            \(options.door.joined(separator: "\n"))
            listeners:
              public:
                url: "\(options.doorURL)"
                transports: \(options.doorTransports)
                tls:
                  selfSigned: [\(names.map { "\"\($0)\"" }.joined(separator: ", "))]
                  directory: state
                routes:
                  /forward: { service: forward, allow: ["tcp://127.0.0.1:7000", "tcp://127.0.0.1:7001"] }
                  /echo: { service: echo }
            \(options.listener.map { "    \($0)" }.joined(separator: "\n"))
            """, to: "server.yaml")
        clientFile = try rig.write(
            """
            log: { level: \(options.logLevel) }
            grace: 1s
            carriers:
              main:
                kind: direct
                url: "wss://\(options.host):8443/forward"
                transports: \(options.transports)
                tls: { trust: { file: state/certificate.pem, optional: true } }
            \(options.carrier.map { "    \($0)" }.joined(separator: "\n"))
            \(options.carriers.map { "  \($0)" }.joined(separator: "\n"))
            forwards:
              - { listen: "tcp://127.0.0.1:\(Self.localPort)", carrier: main, to: "tcp://127.0.0.1:\(options.target)" }
            \(options.forwards.map { "  - \($0)" }.joined(separator: "\n"))
            """, to: "client.yaml")
    }

    /// Starts the server at the door and waits until it is bound.
    package func startServer(environment: [String: String] = [:]) async throws -> Program {
        try await start("server", topology.door, serverFile, environment)
    }

    /// Takes the server's key and certificate away, so that it makes others at its next start.
    package func forgetServerKey() async throws {
        try await runTool([
            "rm", "\(topology.rig.folder)/state/key.pem", "\(topology.rig.folder)/state/certificate.pem",
        ])
    }

    /// Starts the client and waits until its forward is bound; that says nothing about the carrier.
    package func startClient(environment: [String: String] = [:]) async throws -> Program {
        try await start("client", topology.client, clientFile, environment)
    }

    /// What `transportkit VERB CONFIG` says of the client.
    package func ask(_ verb: String, _ flags: String...) async throws -> String {
        let program = try topology.client.startTransportKit(
            "asker", [verb, clientFile] + flags, environment: homes("client"))
        let code = try await program.exitCode(within: .seconds(10))
        try await program.settle()
        guard code == 0 else { throw RigFailure("\(verb) ended with \(code): \(program.transcript)") }
        return program.output.all.joined(separator: "\n")
    }

    /// What a program keeps for the next run, it keeps in the rig's folder.
    private func homes(_ name: String) -> [String: String] {
        ["HOME": topology.rig.folder, "XDG_STATE_HOME": "\(topology.rig.folder)/kept-\(name)"]
    }

    /// What the client keeps of the paths it has been on.
    package var pathsFile: String { "\(topology.rig.folder)/kept-client/transportkit/paths.json" }

    private func start(
        _ name: String, _ namespace: Namespace, _ file: String, _ environment: [String: String]
    ) async throws -> Program {
        let program = try namespace.startTransportKit(
            name, ["run", file], environment: homes(name).merging(environment) { $1 })
        _ = try await program.output.line(containing: "ready", within: .seconds(20))
        return program
    }

    /// Opens a connection of an application to the forward.
    package func connect() async throws -> RawSocket {
        try await topology.client.connectTCP("127.0.0.1", port: Self.localPort)
    }

    /// Opens connections until one answers, and returns it with the time that took.
    package func connectWhenUsable(within limit: Duration) async throws -> (socket: RawSocket, after: Duration) {
        let started = ContinuousClock.now
        let word = Array("are you there?".utf8)
        let socket = try await eventually("an answer through the forward", within: limit) { () -> RawSocket? in
            guard let socket = try? await connect() else { return nil }
            return (try? await socket.echo(word, within: limit)) == word ? socket : nil
        }
        return (socket, .now - started)
    }
}
