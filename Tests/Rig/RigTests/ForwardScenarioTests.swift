import RigSupport
import Testing

extension RigSuite {
    /// A forward between two real programs, and what the network does to it. The pattern for scenario tests.
    @Suite(.timeLimit(.minutes(3))) struct ForwardScenarioTests {
        @Test func `A forward works over QUIC`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                let tunnel = try await Tunnel(net)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, after) = try await tunnel.connectWhenUsable(within: .seconds(10))
                print("usable over QUIC after \(after)")
                #expect(try await socket.echo([UInt8](repeating: 7, count: 100_000)).count == 100_000)
                #expect(tunnel.echo.connections >= 1)
                let report = try await net.link.report()
                #expect(report.aToB.udp > 50 && report.bToA.udp > 50, "it went over UDP")
                #expect(try await client.terminate() == 0)
            }
        }

        // B02
        @Test func `Where UDP vanishes on the way, the forward works over WebSocket`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                _ = try await net.link.drop(.both, "udp")
                let tunnel = try await Tunnel(net)
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (socket, after) = try await tunnel.connectWhenUsable(within: .seconds(10))
                print("usable over WebSocket after \(after)")
                // The head start of 250 ms, four round trips of 40 ms, and a loaded machine.
                #expect(after < .seconds(2))
                #expect(try await socket.echo([UInt8](repeating: 7, count: 100_000)).count == 100_000)
                let report = try await net.link.report()
                #expect(report.aToB.tcp > 50 && report.bToA.udp == 0, "it went over TCP")
            }
        }

        // B05: the machine sleeps for an hour, and the door is another one when it wakes.
        @Test(arguments: ["quic", "websocket"])
        func `A client whose machine slept is usable within three seconds`(transport: String) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                var options = Tunnel.Options()
                options.transports = "[\(transport)]"
                let tunnel = try await Tunnel(net, options)
                let clock = try await ProcessClock(net.rig)
                let server = try await tunnel.startServer()
                let client = try await tunnel.startClient(environment: clock.environment)
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))

                // A machine that sleeps hears nothing, so the end of the first door does not reach it either.
                try await net.link.blackhole()
                client.freeze()
                try await server.kill()
                _ = try await tunnel.startServer()
                try clock.sleep(for: .seconds(3_600))
                try await net.link.blackhole(.both, false)
                client.thaw()

                let (_, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("usable over \(transport) after sleep after \(after)")
                #expect(after < .seconds(3))
                await #expect(throws: RawSocket.Failure.self) { try await socket.echo([1]) }
            }
        }
    }
}
