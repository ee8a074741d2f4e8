import Glibc
import RigSupport
import Testing

extension RigSuite {
    /// What happens to the door, or between it and a forward that is open.
    @Suite(.timeLimit(.minutes(3))) struct DoorScenarioTests {
        private static let word = Array("still there?".utf8)

        // B07
        @Test(arguments: ["quic", "websocket"])
        func `A door that was killed and started again is back within three seconds`(transport: String) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                var options = Tunnel.Options()
                options.transports = "[\(transport)]"
                let tunnel = try await Tunnel(net, options)
                let first = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                try await first.kill()
                _ = try await tunnel.startServer()
                let (next, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("back over \(transport) after \(after)")
                #expect(after < .seconds(3))
                #expect(try await next.echo(Self.word) == Self.word)
                // The connection of before is ended, and never by a clean end.
                await #expect(throws: RawSocket.Failure.self) { try await socket.echo(Self.word) }
            }
        }

        // B07: a secret that has changed makes nothing of what the new door says to the old session.
        @Test func `A door that starts anew with another key is back as soon as the path counts as lost`() async throws
        {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                var options = Tunnel.Options()
                options.transports = "[quic]"
                let tunnel = try await Tunnel(net, options)
                let first = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                try await first.kill()
                try await tunnel.forgetServerKey()
                _ = try await tunnel.startServer()
                // What is written now fails in the end, and never vanishes.
                try socket.send(Self.word)
                let (next, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("back after \(after)")
                #expect(after < .seconds(10))
                #expect(try await next.echo(Self.word) == Self.word)
                let failure = await #expect(throws: RawSocket.Failure.self) {
                    try await blocking { try socket.receive(exactly: 1) }
                }
                #expect(failure?.isTimeout == false)
                #expect(client.errors.all.contains { $0.contains("unanswered") }, "not by a reset")
            }
        }

        // B29
        @Test func `Where UDP is refused, WebSocket starts without waiting for its head start`() async throws {
            try await withTopology { net in
                _ = try await net.nat.firewall.reject(.udp)
                var options = Tunnel.Options()
                options.carrier = ["race: head-start"]
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (_, after) = try await tunnel.connectWhenUsable(within: .seconds(10))
                print("usable beside a refusal after \(after)")
                #expect(after < .milliseconds(200))
            }
        }

        // B32
        @Test func `A NAT that forgets the flow ten times in a transfer interrupts nothing`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=10ms rate=50mbit")
                // It drops nothing; it counts the flows that the door sees.
                _ = try await net.link.drop(.both, "udp:8443 after=1000000000")
                var options = Tunnel.Options()
                options.transports = "[quic]"
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                var worst = Duration.zero
                for round in 0..<10 {
                    try await net.nat.rebindUDP()
                    let started = ContinuousClock.now
                    let bytes = [UInt8](repeating: UInt8(round), count: 50_000)
                    #expect(try await socket.echo(bytes, within: .seconds(10)) == bytes)
                    worst = max(worst, .now - started)
                }
                print("the slowest echo of 50,000 bytes after a rebind took \(worst)")
                #expect(worst < .seconds(1))
                #expect(try await net.link.report().rules.map(\.flows) == [11])
                #expect(tunnel.echo.connections <= 2, "the forwarded connection is the one of the beginning")
            }
        }

        // B32: the packets of the handshake that come from another port are nobody's, so a dial is lost: 3 s here, 10 s unless
        // set otherwise, and nothing where the WebSocket may be raced.
        @Test func `A NAT that forgets the flow amid the handshake costs one dial`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=100ms")
                var options = Tunnel.Options()
                options.transports = "[quic]"
                options.carrier = ["limits: { handshakeTimeout: 3s }"]
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                _ = try await eventually("the first packet", within: .seconds(10), every: .milliseconds(2)) {
                    try await net.link.report().aToB.udp > 0 ? true : nil
                }
                try await net.nat.rebindUDP()
                let (socket, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("usable \(after) after a rebind in the handshake")
                #expect(after < .seconds(8))
                #expect(try await socket.echo(Self.word) == Self.word)
                #expect(!client.errors.all.contains { $0.contains("stands back") }, "nobody is blamed")
            }
        }

        // B33
        @Test(arguments: [(EIO, 0), (EIO, 5), (EINVAL, 0)])
        func `Segmented sends that fail are repeated one by one`(error: Int32, count: Int) async throws {
            try await withTopology { net in
                var options = Tunnel.Options()
                options.transports = "[quic]"
                let tunnel = try await Tunnel(net, options)
                let environment = try await SegmentFailure.environment(error, after: count, rig: net.rig)
                let server = try await tunnel.startServer(environment: environment)
                let client = try await tunnel.startClient(environment: environment)
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                let bytes = [UInt8](repeating: 5, count: 1_000_000)
                async let sent: Void = blocking { try socket.send(bytes, within: .seconds(20)) }
                #expect(try await blocking { try socket.receive(exactly: bytes.count, within: .seconds(20)) } == bytes)
                try await sent
                for program in [server, client] {
                    _ = try await program.errors.line(containing: "rig: segmented sends fail")
                    #expect(program.errors.all.count { $0.contains("(GSO) switched off") } == 1)
                }
            }
        }

        // B66
        @Test func `A door on every address answers from the one that was asked`() async throws {
            for host in ["198.51.100.20", "198.51.100.21", "[2001:db8:100::20]", "[2001:db8:100::21]"] {
                try await withTopology { net in
                    let addresses = ["198.51.100.20", "198.51.100.21", "2001:db8:100::20", "2001:db8:100::21"]
                    for address in addresses { try await net.door.addAddress(address, to: "eth0") }
                    var options = Tunnel.Options()
                    options.transports = "[quic]"
                    options.host = host
                    options.names = addresses
                    let tunnel = try await Tunnel(net, options)
                    _ = try await tunnel.startServer()
                    _ = try await tunnel.startClient()
                    let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                    #expect(try await socket.echo(Self.word) == Self.word, "\(host)")
                }
            }
        }
    }
}
