import RigSupport
import Testing

extension RigSuite {
    /// Somebody else answers in place of the door (B34). The two tests take 25 s.
    @Suite(.timeLimit(Length.limit(minutes: 4))) struct PortalScenarioTests {
        private static let words = "the network needs sign-in or is intercepted"

        // B34; with RIG_LONG=1 the portal opens after two minutes.
        @Test func `A portal in place of the door is named, teaches nothing and is left soon`() async throws {
            try await withTopology { net in
                let tunnel = try await Tunnel(net)
                let door = try await tunnel.startServer()
                _ = try await net.nat.firewall.drop(.udp)
                try await net.nat.interceptTCP(port: 8443, to: 1443)
                _ = try await startPortal(net)
                // It counts what goes to anybody but the door.
                for rule in ["ip daddr != { 127.0.0.0/8, \(Topology.doorAddress) }", "ip6 daddr != ::1"] {
                    _ = try await net.client.firewall.add("\(rule) meta l4proto { tcp, udp } counter", .output)
                }
                let client = try await tunnel.startClient()
                let told = try await client.errors.line(
                    containing: "warning main: 1006 path lost (\(Self.words): ", within: .seconds(30))
                #expect(told.text.contains("CN=portal.example") && told.text.contains("next attempt in"))
                // Also while the next dial goes on, which takes seconds.
                for state in ["Waiting · ", "Connecting · attempt "] {
                    _ = try await eventually("a status that tells it", within: .seconds(30)) {
                        let status = try? await tunnel.ask("status", "--json")
                        return status?.contains("\(state)") == true && status?.contains(Self.words) == true ? true : nil
                    }
                }
                // Time for the backoff to grow.
                try await Task.sleep(for: Length.of(.seconds(120), short: .seconds(8)))
                let lines = client.errors.all.filter { $0.contains("warning main:") }
                #expect(lines.count <= (Length.isFull ? 6 : 4), "the same again is counted: \(lines)")
                #expect(lines.allSatisfy { $0.contains(Self.words) })

                // Nothing is remembered of a network that lets nobody through, and no certificate is let pass.
                let paths = try await tunnel.status().paths
                #expect(paths.allSatisfy { $0.winner == nil && $0.demotions.isEmpty }, "\(paths)")
                #expect(try await !net.client.run("cat", tunnel.pathsFile).contains(Topology.doorAddress))
                #expect(!client.errors.all.contains { $0.contains("connected ·") })
                #expect(!door.errors.all.contains { $0.contains("opened /forward") })
                let counters = try await net.client.run("nft", "list", "table", "inet", "rig")
                #expect(counters.split(separator: "counter packets 0 ").count == 3, "\(counters)")

                // Signed in: the next dial comes by itself.
                try await net.nat.stopIntercepting()
                let opened = ContinuousClock.now
                let connected = try await client.errors.line(containing: "connected · WebSocket", within: .seconds(30))
                print("through \(connected.at - opened) after the portal opened")
                #expect(connected.at - opened < .seconds(11))
                _ = try await tunnel.connectWhenUsable(within: .seconds(10))
                // QUIC was not let through before or after, and is held to have failed at nothing.
                #expect(try await tunnel.status().paths.allSatisfy(\.demotions.isEmpty))
                #expect(!client.errors.all.contains { $0.contains("stands back on this network") })
            }
        }

        // B34: without TLS the portal sends to its page.
        @Test func `A redirect to a sign-in page is told and never followed`() async throws {
            try await withTopology { net in
                try await net.nat.interceptTCP(port: 80, to: 1080)
                let portal = try net.nat.listenTCP("0.0.0.0", port: 1080)
                async let request = blocking {
                    let visitor = try portal.accept(within: .seconds(10))
                    let request = try visitor.receive()
                    try visitor.send(
                        "HTTP/1.1 302 Found\r\nLocation: http://203.0.113.6/login\r\nContent-Length: 0\r\n\r\n".utf8)
                    visitor.close()
                    return String(decoding: request, as: UTF8.self)
                }
                let pipe = try net.client.startTransportKit("pipe", ["pipe", "ws://\(Topology.doorAddress)/word"])
                #expect(try await pipe.exitCode(within: .seconds(20)) == 1)
                #expect(try await request.hasPrefix("GET /word HTTP/1.1\r\n"))
                let told = try await pipe.errors.line(containing: Self.words)
                #expect(told.text.contains("302"))
                #expect(throws: (any Error).self, "nobody comes to the page") {
                    _ = try portal.accept(within: .milliseconds(500))
                }
            }
        }

        /// Listens at the NAT with a certificate of its own.
        private func startPortal(_ net: Topology) async throws -> Program {
            let file = try net.rig.write(
                """
                listeners:
                  portal:
                    url: "wss://0.0.0.0:1443"
                    transports: [websocket]
                    tls: { selfSigned: portal.example, directory: portal }
                    routes: { /login: { service: echo } }
                """, to: "portal.yaml")
            let portal = try net.nat.startTransportKit(
                "portal", ["run", file], environment: ["STATE_DIRECTORY": "\(net.rig.folder)/kept-portal"])
            _ = try await portal.output.line(containing: "ready", within: .seconds(20))
            return portal
        }
    }
}
