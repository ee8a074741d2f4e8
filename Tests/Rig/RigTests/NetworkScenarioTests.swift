import RigSupport
import Testing

extension RigSuite {
    /// Networks that go, come back as others, or are not what they seem.
    @Suite(.timeLimit(Length.limit(minutes: 4))) struct NetworkScenarioTests {
        private static let word = Array("still there?".utf8)

        // B06; with RIG_LONG=1 the link is away for a minute.
        @Test(arguments: ["[quic]", "[websocket]"])
        func `A network that comes back with another address is used without waiting`(transports: String) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                var options = Tunnel.Options()
                options.transports = transports
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                let descriptors = client.openDescriptors
                try await net.loseRoutes()
                try await net.client.removeAddress("192.168.1.2", from: "eth0")
                _ = try await client.errors.line(containing: "the network is gone", within: .seconds(10))
                // Somebody wants to go on meanwhile, and makes the session's end known.
                await #expect(throws: (any Error).self) {
                    try await socket.echo(Self.word, within: .milliseconds(100))
                }
                try await Task.sleep(for: Length.of(.seconds(60), short: .seconds(8)))
                let quiet = client.errors.count
                try await net.client.addAddress("192.168.1.77", to: "eth0")
                try await net.useNetwork(net.home)
                let (next, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("back with another address over \(transports) after \(after)")
                #expect(after < .seconds(3))
                #expect(try await next.echo(Self.word) == Self.word)
                socket.close()
                // R60: once for the edge.
                let woken = client.errors.all.dropFirst(quiet).filter { $0.hasSuffix("host: the network is back") }
                #expect(woken.count == 1)
                #expect(client.isRunning)
                _ = try await eventually("the descriptors of before", within: .seconds(10)) {
                    client.openDescriptors <= descriptors + 1 ? true : nil
                }
            }
        }

        // B25; with RIG_LONG=1 the network comes after a minute.
        @Test func `A client that starts before its network is connected soon after that is up`() async throws {
            try await withTopology(.resolver) { net in
                let names = try NameServer(in: net.resolver, rig: net.rig)
                names.set("door.test", [Topology.doorAddress])
                try await net.loseRoutes()
                try await net.client.linkDown("eth0")
                var options = Tunnel.Options()
                options.host = "door.test"
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                // The port is there from the start, and an application is refused instead of kept for ever.
                let early = try await tunnel.connect()
                await #expect(throws: RawSocket.Failure.self) { try await early.echo(Self.word, within: .seconds(20)) }
                try await Task.sleep(for: Length.of(.seconds(60), short: .seconds(3)))
                #expect(client.isRunning)
                try await net.client.linkUp("eth0")
                try await net.useNetwork(net.home)
                let (_, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("connected \(after) after the network came up")
                #expect(after < .seconds(5))
                #expect(client.isRunning)
                // A failure that repeats is counted, not repeated.
                let complaints = client.errors.all.filter { $0.contains("warning main:") }
                #expect(complaints.count <= 12, "\(complaints)")
            }
        }

        // B48, R54
        @Test func `What was found out on a network survives a restart, whatever became of the file`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                let tunnel = try await Tunnel(net)
                _ = try await tunnel.startServer()
                let file = tunnel.pathsFile
                // QUIC gets through its handshake and is cut right after.
                _ = try await net.link.drop(.both, "udp:8443 after=40")
                var client = try await tunnel.startClient()
                let (cut, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                await #expect(throws: RawSocket.Failure.self) {
                    try await cut.echo([UInt8](repeating: 1, count: 200_000), within: .seconds(2))
                }
                _ = try await client.errors.line(containing: "QUIC stands back on this network", within: .seconds(120))
                _ = try await tunnel.connectWhenUsable(within: .seconds(10))
                try await client.terminate()
                try await net.link.reset()
                let known = try await net.client.run("cat", file)
                #expect(known.contains(#""demotion""#))
                #expect(!known.contains("192.168.1.1"), "the network is kept as a hash alone")

                client = try await tunnel.startClient()
                _ = try await client.errors.line(containing: "WebSocket opened first", within: .seconds(10))
                #expect(try await tunnel.ask("status").contains("Connected · WebSocket"))
                try await client.terminate()

                // Damaged, or of a newer version: an empty memory allows QUIC, and the start works.
                for (text, isKept) in [("{\"version\":1,\"pat", false), ("{\"version\":9}", true)] {
                    _ = try await net.client.run("sh", "-c", "printf '%s' '\(text)' > \(file)")
                    client = try await tunnel.startClient()
                    _ = try await client.errors.line(containing: "QUIC opened first", within: .seconds(10))
                    try await client.terminate()
                    #expect(try await net.client.run("cat", file).contains(text) == isKept)
                }
            }
        }

        // B48, short: the 200 dials are DirectCarrierTests'.
        @Test func `A service without QUIC keeps nobody else on the network from it`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                var options = Tunnel.Options()
                options.carriers = [
                    #"bare: { kind: direct, url: "wss://198.51.100.10:8444/forward", demotion: evidence, "#
                        + "tls: { trust: { file: bare/certificate.pem, optional: true } } }"
                ]
                options.forwards = [#"{ listen: "tcp://127.0.0.1:9001", carrier: bare, to: "tcp://127.0.0.1:7000" }"#]
                let tunnel = try await Tunnel(net, options)
                var server = try await tunnel.startServer()
                var bare = try await startBare(net)
                let client = try await tunnel.startClient()
                _ = try await tunnel.connectWhenUsable(within: .seconds(10))
                for count in 1...2 {
                    _ = try await eventually("session \(count) without QUIC", within: .seconds(20)) {
                        client.errors.all.count { $0.contains("bare: connected · WebSocket") } >= count ? true : nil
                    }
                    try await bare.kill()
                    bare = try await startBare(net)
                }
                _ = try await client.errors.line(
                    containing: ":8444: QUIC stands back on this network", within: .seconds(20))
                // A new session to the other door, dialled with all that in mind.
                try await server.kill()
                let start = client.errors.count
                server = try await tunnel.startServer()
                _ = try await client.errors.line(
                    containing: "main: connected · QUIC", from: start, within: .seconds(20))
                let stepsBack = try await tunnel.status().paths.filter { !$0.demotions.isEmpty }.map(\.destination)
                #expect(stepsBack == ["198.51.100.10:8444"])
            }
        }

        /// A door without QUIC.
        private func startBare(_ net: Topology) async throws -> Program {
            let file = try net.rig.write(
                """
                listeners:
                  bare:
                    url: "wss://[::]:8444"
                    transports: [websocket]
                    tls: { selfSigned: "198.51.100.10", directory: bare }
                    routes: { /forward: { service: forward, allow: ["tcp://127.0.0.1:7000"] } }
                """, to: "bare.yaml")
            let bare = try net.door.startTransportKit(
                "bare", ["run", file], environment: ["STATE_DIRECTORY": "\(net.rig.folder)/kept-bare"])
            _ = try await bare.output.line(containing: "ready", within: .seconds(20))
            return bare
        }

        // B17
        @Test func `A door that moves to another address is found there, and a silent resolver ends nothing`()
            async throws
        {
            try await withTopology(.resolver) { net in
                let names = try NameServer(in: net.resolver, rig: net.rig)
                names.set("door.test", [Topology.doorAddress])
                var options = Tunnel.Options()
                options.host = "door.test"
                let tunnel = try await Tunnel(net, options)
                var door = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                _ = try await tunnel.connectWhenUsable(within: .seconds(10))
                // The resolver fails at that moment: the last address is as good as any.
                names.set(.failing)
                try await door.kill()
                door = try await tunnel.startServer()
                let (_, again) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("back without a resolver after \(again)")
                // Now the door moves.
                try await door.kill()
                // In this order: a second address of the same network would go with the first.
                try await net.door.removeAddress(Topology.doorAddress, from: "eth0")
                try await net.door.addAddress("198.51.100.11", to: "eth0")
                try await net.door.ip("route replace default via 198.51.100.1")
                door = try await tunnel.startServer()
                names.set("door.test", ["198.51.100.11"])
                names.set(.answering)
                let (_, after) = try await tunnel.connectWhenUsable(within: .seconds(60))
                print("found at the other address after \(after)")
                // The session that stood is given up after 5 s without an answer, and the next dial asks for the name.
                #expect(after < .seconds(12))
                #expect(client.isRunning)
            }
        }
    }
}
