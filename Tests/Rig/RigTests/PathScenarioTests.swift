import RigSupport
import Testing

extension RigSuite {
    /// A client whose network changes, sleeps or dies under a session.
    @Suite(.timeLimit(Length.limit(minutes: 5))) struct PathScenarioTests {
        private static let word = Array("still there?".utf8)

        private func makeTunnel(
            _ net: Topology, _ transports: String, listener: [String] = []
        ) async throws -> Tunnel {
            var options = Tunnel.Options()
            options.transports = transports
            options.listener = listener
            return try await Tunnel(net, options)
        }

        // R19, R152, R211
        @Test(arguments: ["another route", "another address"])
        func `A client that comes to another network keeps its session over QUIC, and every tick`(
            change: String
        ) async throws {
            // 100 ms between ticks, and one round trip of 40 ms for the path; the rest is for a busy machine.
            let gap = try await widestGap(while: change)
            #expect(gap < 500)
        }

        /// Changes the network under a session, there and back, and holds everything but the widest gap between ticks, in
        /// milliseconds.
        private func widestGap(while change: String) async throws -> Double {
            try await withTopology(.secondNetwork) { net in
                let away = try net.away
                for link in [net.link, away.link] { try await link.set(.both, "delay=20ms") }
                let tunnel = try await makeTunnel(net, "[quic]")
                let server = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                // The last of the handshake, and the ids that moving takes.
                _ = try await Ticks.send(10, over: socket)
                let connections = tunnel.echo.connections
                let descriptors = client.openDescriptors
                async let sent = Ticks.send(60, over: socket)
                // Between the answer to one tick and the next: an answer on its way to an address that goes is sent again
                // only by the service's timer.
                try await Task.sleep(for: .milliseconds(2055))
                if change == "another address" {
                    try await net.client.removeAddress("192.168.1.2", from: "eth0")
                }
                try await net.useNetwork(away)
                let ticks = try await sent
                let gap = ticks.widestGap
                print(
                    "migration to \(change): \(ticks.arrivals.count) of 60 ticks, widest gap \(gap) ms of 100 ms, at 40 ms"
                )
                #expect(tunnel.echo.connections == connections, "the forwarded connection is the same")
                _ = try await client.errors.line(containing: " moves from 192.168.1.2")
                #expect(try await away.link.report().aToB.udp > 20)
                #expect(server.errors.all.count { $0.contains("QUIC from") && $0.contains(" ended") } <= 1)
                // And back.
                if change == "another address" { try await net.client.addAddress("192.168.1.2", to: "eth0") }
                try await net.useNetwork(net.home)
                #expect(try await socket.echo(Self.word) == Self.word)
                #expect(
                    try await eventually("few sockets", within: .seconds(5)) {
                        client.openDescriptors <= descriptors ? true : nil
                    })
                return gap
            }
        }

        // R20, R211, B32: whichever loop's socket the kernel gives a packet to.
        @Test func `A door of eight loops keeps the session of a client whose network and ports change`() async throws {
            try await withTopology(.secondNetwork) { net in
                let away = try net.away
                for link in [net.link, away.link] { try await link.set(.both, "delay=10ms") }
                var options = Tunnel.Options()
                options.transports = "[quic]"
                options.door = ["transports: { quic: { kind: quic, loops: 8 } }"]
                let tunnel = try await Tunnel(net, options)
                let server = try await tunnel.startServer()
                _ = try await server.errors.line(containing: " runs on 8 loops")
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                _ = try await Ticks.send(10, over: socket)
                let connections = tunnel.echo.connections
                try await net.useNetwork(away)
                #expect(try await socket.echo(Self.word) == Self.word)
                _ = try await client.errors.line(containing: " moves from 192.168.1.2")
                for round in 0..<10 {
                    try await away.nat.rebindUDP()
                    let bytes = [UInt8](repeating: UInt8(round), count: 50_000)
                    #expect(try await socket.echo(bytes, within: .seconds(10)) == bytes)
                }
                // And both at once.
                for round in 0..<6 {
                    let (here, there) = round.isMultiple(of: 2) ? (away, net.home) : (net.home, away)
                    try await here.nat.rebindUDP()
                    try await net.useNetwork(there)
                    #expect(try await socket.echo(Self.word, within: .seconds(10)) == Self.word)
                }
                #expect(tunnel.echo.connections == connections, "the forwarded connection is the same")
                #expect(!client.errors.all.contains { $0.contains("main: 1006") })
            }
        }

        // R19: a flap must not cost the session.
        @Test func `A client that comes back within a moment keeps its session over QUIC`() async throws {
            try await withTopology(.secondNetwork) { net in
                let away = try net.away
                for link in [net.link, away.link] { try await link.set(.both, "delay=20ms") }
                let tunnel = try await makeTunnel(net, "[quic]")
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                _ = try await Ticks.send(10, over: socket)
                let connections = tunnel.echo.connections
                for _ in 0..<3 {
                    try await net.useNetwork(away)
                    _ = try await client.errors.line(containing: " moves from 192.168.1.2")
                    try await net.useNetwork(net.home)
                    #expect(try await socket.echo(Self.word, within: .seconds(10)) == Self.word)
                }
                #expect(tunnel.echo.connections == connections, "the forwarded connection is the same")
                #expect(!client.errors.all.contains { $0.contains("main: 1006") })
            }
        }

        // R27: TCP cannot move.
        @Test func `A client that comes to another network has a new session over WebSocket within two seconds`()
            async throws
        {
            try await withTopology(.secondNetwork) { net in
                let away = try net.away
                for link in [net.link, away.link] { try await link.set(.both, "delay=20ms") }
                let tunnel = try await makeTunnel(net, "[websocket]")
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                try await net.useNetwork(away)
                let (next, after) = try await tunnel.connectWhenUsable(within: .seconds(10))
                print("a new session over WebSocket after \(after)")
                #expect(after < .seconds(2))
                #expect(try await next.echo(Self.word) == Self.word)
                await #expect(throws: (any Error).self) { try await socket.echo(Self.word) }
            }
        }

        // B05
        @Test(arguments: ["quic", "websocket"])
        func `A client that was stopped for ten seconds has its session still`(transport: String) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                let tunnel = try await makeTunnel(net, "[\(transport)]")
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                // Both directions have something to say meanwhile.
                client.freeze()
                try socket.send([1])
                try await Task.sleep(for: .seconds(10))
                client.thaw()
                let started = ContinuousClock.now
                #expect(try await blocking { try socket.receive(exactly: 1) } == [1])
                #expect(try await socket.echo(Self.word) == Self.word)
                print("awake over \(transport) after \(ContinuousClock.now - started)")
                try await Task.sleep(for: .seconds(6))
                #expect(try await socket.echo(Self.word) == Self.word)
                #expect(!client.errors.all.contains { $0.contains("main: 1006") })
            }
        }

        // B05, short: the door gives up after 6 s instead of 45; with RIG_LONG=1 the client sleeps for 90 s.
        @Test(arguments: ["quic", "websocket"])
        func `A client that slept until its door had given up is answered within three seconds`(
            transport: String
        ) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                let keepalive = Length.isFull ? [] : ["keepalive: { interval: 2s, idleTimeout: 6s }"]
                let tunnel = try await makeTunnel(net, "[\(transport)]", listener: keepalive)
                let server = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                _ = try await tunnel.connectWhenUsable(within: .seconds(10))
                client.freeze()
                try await Task.sleep(for: Length.of(.seconds(90), short: .seconds(8)))
                _ = try await server.errors.line(containing: " ended", within: .seconds(10))
                client.thaw()
                let (_, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("usable over \(transport) after \(after) of being awake")
                #expect(after < .seconds(3))
            }
        }

        // B09, short: 250 kB and a heartbeat every second; with RIG_LONG=1 20 MB and every 5 s.
        @Test func `A link that is busy one way is never taken for a dead one`() async throws {
            try await withTopology { net in
                for direction in [LinkShaper.Direction.aToB, .bToA] { try await net.link.set(direction, "delay=20ms") }
                try await net.link.set(.aToB, "rate=256kbit")
                var options = Tunnel.Options()
                options.transports = "[websocket]"
                options.target = 7001
                options.carrier = ["keepalive: { interval: \(Length.isFull ? "5s" : "1s, idleTimeout: 3s") }"]
                let tunnel = try await Tunnel(net, options)
                let sink = try net.door.listenTCP("127.0.0.1", port: 7001)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let socket = try await tunnel.connect()
                let count = Length.isFull ? 20_000_000 : 250_000
                async let sending: Void = blocking {
                    try socket.send([UInt8](repeating: 3, count: count), within: .seconds(900))
                }
                let started = ContinuousClock.now
                let (upload, received) = try await blocking {
                    let upload = try sink.accept(within: .seconds(20))
                    return (upload, try upload.receive(exactly: count, within: .seconds(20)).count)
                }
                try await sending
                let took = ContinuousClock.now - started
                print("\(received) bytes took \(took)")
                #expect(took > (Length.isFull ? .seconds(600) : .seconds(6)), "the link was the narrow place")
                #expect(client.errors.all.count { $0.contains("connected ·") } == 1)
                #expect(!client.errors.all.contains { $0.contains("1006") })
                // And really cut.
                let cut = ContinuousClock.now
                try await net.link.blackhole()
                try socket.send(Self.word)
                let told = try await client.errors.line(containing: "main: 1006 path lost", within: .seconds(20))
                print("given up after \(told.at - cut)")
                #expect(told.at - cut < .seconds(7))
                upload.close()
            }
        }

        // B07, B09
        @Test(arguments: ["quic", "websocket"])
        func `A path that dies under a session is given up after five seconds, and a slow one is not`(
            transport: String
        ) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms rate=1mbit queue=64k")
                let tunnel = try await makeTunnel(net, "[\(transport)]")
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                let bytes = [UInt8](repeating: 3, count: 1_500_000)
                #expect(try await socket.echo(bytes, within: .seconds(60)) == bytes)
                #expect(!client.errors.all.contains { $0.contains("unanswered") })
                let started = ContinuousClock.now
                try await net.link.blackhole()
                try socket.send(Self.word)
                _ = try await client.errors.line(containing: "unanswered", within: .seconds(20))
                let took = ContinuousClock.now - started
                print("given up over \(transport) after \(took)")
                #expect(took > .seconds(4) && took < .seconds(7))
                try await net.link.blackhole(.both, false)
                _ = try await tunnel.connectWhenUsable(within: .seconds(20))
            }
        }
    }
}
