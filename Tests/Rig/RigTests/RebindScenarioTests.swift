import RigSupport
import Testing

extension RigSuite {
    /// A NAT that forgets the flow of a session.
    @Suite(.timeLimit(.minutes(5))) struct RebindScenarioTests {
        enum Transfer: String, CaseIterable {
            case download
            case echo = "exchange with an echo"
        }

        // B32; with RIG_LONG=1 it is 200 MB.
        @Test(arguments: Transfer.allCases)
        func `A transfer goes on while the NAT forgets its flow at any moment`(transfer: Transfer) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=10ms rate=40mbit")
                _ = try await net.link.drop(.both, "udp:8443 after=1000000000")
                var options = Tunnel.Options()
                options.transports = "[quic]"
                if transfer == .download { options.target = 7001 }
                let tunnel = try await Tunnel(net, options)
                let door = try net.door.listenTCP("127.0.0.1", port: 7001)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let socket = try await tunnel.connect()
                let source =
                    switch transfer {
                    case .download: try await blocking { try door.accept(within: .seconds(20)) }
                    case .echo: socket
                    }
                let count = (Length.isFull ? 200 : 16) << 20
                async let received = receive(count, from: source, over: socket, seed: net.link.seed)
                var chance = SplitMix(seed: net.link.seed)
                for _ in 0..<10 {
                    let pause = Int64.random(in: 300...(Length.isFull ? 3000 : 600), using: &chance)
                    try await Task.sleep(for: .milliseconds(pause))
                    try await net.nat.rebindUDP()
                }
                let stall = try await received
                let flows = try await net.link.report().rules[0].flows
                print("\(transfer.rawValue): \(count) bytes over \(flows) flows, and nothing for \(stall) at worst")
                #expect(stall < .seconds(1))
                #expect(flows >= 8)
                #expect(client.errors.all.count { $0.contains("connected ·") } == 1, "the session is the same")
            }
        }

        /// Sends bytes of chance and says for how long nothing came at most; every byte is compared.
        private func receive(
            _ count: Int, from source: RawSocket, over socket: RawSocket, seed: UInt64
        ) async throws -> Duration {
            async let sending: Void = blocking {
                var bytes = SplitMix(seed: seed)
                for _ in 0..<count / 65_536 { try source.send(bytes.next(65_536), within: .seconds(20)) }
            }
            let worst = try await blocking {
                var bytes = SplitMix(seed: seed)
                var (expected, rest) = ([UInt8](), count)
                var (worst, last) = (Duration.zero, ContinuousClock.now)
                while rest > 0 {
                    let chunk = try socket.receive(within: .seconds(20))
                    guard !chunk.isEmpty else { throw RigFailure("the stream ended \(rest) bytes early") }
                    (worst, last) = (max(worst, .now - last), .now)
                    while expected.count < chunk.count { expected += bytes.next(65_536) }
                    guard chunk.elementsEqual(expected.prefix(chunk.count)) else {
                        throw RigFailure("other bytes came, \(count - rest) bytes on")
                    }
                    expected.removeFirst(chunk.count)
                    rest -= chunk.count
                }
                return worst
            }
            try await sending
            return worst
        }

        // B32
        @Test func `A NAT that forgets its flow during the handshake costs another dial at most`() async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=100ms")
                var options = Tunnel.Options()
                options.transports = "[quic]"
                options.carrier = ["limits: { handshakeTimeout: 3s }"]
                let tunnel = try await Tunnel(net, options)
                _ = try await tunnel.startServer()
                _ = try await tunnel.startClient()
                // The first packets are on their way, and those of the answer find nobody at the port they go to.
                _ = try await eventually("the first packet", within: .seconds(10), every: .milliseconds(2)) {
                    try await net.link.report().aToB.udp > 0 ? true : nil
                }
                try await net.nat.rebindUDP()
                let (_, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                print("usable \(after) after a rebind in the handshake")
                #expect(after < .seconds(12))
            }
        }
    }
}
