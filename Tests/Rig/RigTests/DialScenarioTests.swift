import RigSupport
import Testing

extension RigSuite {
    /// Networks on which not everything gets through, and how a session comes up all the same.
    @Suite(.timeLimit(.minutes(3))) struct DialScenarioTests {
        private static let word = Array("still there?".utf8)

        // B01
        @Test(arguments: ["udp", "tcp"])
        func `After a network that let nothing through, what it lets through first is used`(flow: String) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                let rules = [
                    "udp": try await net.link.drop(.both, "udp"), "tcp": try await net.link.drop(.both, "tcp"),
                ]
                let tunnel = try await Tunnel(net)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                // A dial has failed by then, after its 10 s.
                _ = try await client.errors.line(containing: "next attempt in", within: .seconds(30))
                if let rule = rules[flow] { try await net.link.remove(rule) }
                let (socket, after) = try await tunnel.connectWhenUsable(within: .seconds(40))
                print("usable over \(flow) after \(after)")
                #expect(try await socket.echo(Self.word) == Self.word)
                let report = try await net.link.report()
                #expect((flow == "udp" ? report.bToA.udp : report.bToA.tcp) > 5)
            }
        }

        // B18
        @Test(arguments: ["quic", "websocket"])
        func `Seven silent addresses before the one that lives cost less than three seconds`(
            transport: String
        ) async throws {
            try await withTopology([.resolver]) { net in
                let names = try NameServer(in: net.resolver, rig: net.rig)
                let silent = ["2001:db8:dead::1", "2001:db8:dead::2"] + (31...35).map { "198.51.100.\($0)" }
                for address in silent {
                    let length = address.contains(":") ? 128 : 32
                    try await net.internet.ip("route add blackhole \(address)/\(length)")
                }
                names.set("door.test", silent + [Topology.doorAddress])
                try await net.link.set(.both, "delay=20ms")
                var options = Tunnel.Options()
                options.host = "door.test"
                options.transports = "[\(transport)]"
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (socket, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("usable over \(transport) after \(after), the last of eight addresses")
                #expect(after < .seconds(3))
                #expect(try await socket.echo(Self.word) == Self.word)
            }
        }

        // B31
        @Test(arguments: [(1500, true), (1300, true), (1280, true), (1100, false)])
        func `QUIC is used where its packets fit, and given up where they do not`(
            mtu: Int, fits: Bool
        ) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=5ms")
                try await net.nat.ip("link set wan0 mtu \(mtu)")
                try await net.internet.ip("link set net1 mtu \(mtu)")
                let tunnel = try await Tunnel(net)
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                let (socket, after) = try await tunnel.connectWhenUsable(within: .seconds(10))
                print("usable at \(mtu) bytes after \(after)")
                #expect(after < .seconds(3))
                let bytes = [UInt8](repeating: 9, count: 200_000)
                #expect(try await socket.echo(bytes, within: .seconds(20)) == bytes)
                let report = try await net.link.report()
                #expect((report.bToA.udp > 100) == fits)
            }
        }

        // B16
        @Test(arguments: ["quic", "websocket"])
        func `An idle session outlives the NAT's memory of it`(transport: String) async throws {
            try await withTopology { net in
                try await net.nat.setMappingLife(udp: 20, tcp: 20)
                var options = Tunnel.Options()
                options.transports = "[\(transport)]"
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let (socket, _) = try await tunnel.connectWhenUsable(within: .seconds(10))
                let before = try await net.link.report()
                try await idle(for: .seconds(30))
                let after = try await net.link.report()
                #expect(try await socket.echo(Self.word) == Self.word)
                #expect(client.errors.all.count { $0.contains("connected ·") } == 1, "the session is the first one")
                // R131: an exchange every 15 s, and for two minutes a probe of the packet size beside it.
                let packets = after.aToB.packets - before.aToB.packets
                print("\(packets) packets left in 30 s of idling over \(transport)")
                #expect((2...20).contains(packets))
            }
        }

        /// Lets real time pass: a NAT forgets by the clock of the kernel.
        private func idle(for duration: Duration) async throws {
            try await Task.sleep(for: duration)
        }
    }
}
