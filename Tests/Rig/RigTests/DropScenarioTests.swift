import Glibc
import RigSupport
import Testing

extension RigSuite {
    /// QUIC whose handshake gets through, and of whose session nothing more does after a while (B04).
    @Suite(.timeLimit(.minutes(3))) struct DropScenarioTests {
        /// How a connection through the forward came to its end.
        private struct End {
            /// When the last answer had come.
            var lastAnswer: ContinuousClock.Instant
            var at: ContinuousClock.Instant
            var error: any Error
        }

        /// Uses a connection until it is cut; every answer has to be what was sent.
        private func useUntilCut(_ tunnel: Tunnel) async throws -> End {
            let socket = try await tunnel.connect()
            defer { socket.close() }
            var lastAnswer = ContinuousClock.now
            for round in 0..<1000 {
                let chunk = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &+ round) }
                do {
                    let answer = try await socket.echo(chunk, within: .seconds(15))
                    guard answer == chunk else { throw RigFailure("other bytes came back than were sent") }
                    lastAnswer = .now
                } catch {
                    return End(lastAnswer: lastAnswer, at: .now, error: error)
                }
            }
            throw RigFailure("nothing was ever cut")
        }

        // B04. With fewer packets the door's first words are cut off, with more an answer.
        @Test(arguments: [8, 30, 300])
        func `A session over QUIC that dies early gives way to WebSocket, and QUIC stands back for a day`(
            packets: Int
        ) async throws {
            try await withTopology { net in
                try await net.link.set(.both, "delay=20ms")
                try await net.link.command("drop-after flow=udp:8443 packets=\(packets)")
                let tunnel = try await Tunnel(net)
                _ = try await tunnel.startServer()
                let client = try await tunnel.startClient()
                let cut = try await useUntilCut(tunnel)
                let (next, after) = try await tunnel.connectWhenUsable(within: .seconds(20))
                let silence = cut.at - cut.lastAnswer
                print("cut after \(packets) packets: reset after \(silence), the next one carried after \(after)")
                // 5 s without an answer; where the lost bytes were the door's, it is asked after 3 s for 5 s.
                #expect(silence < .seconds(11))
                #expect((cut.error as? RawSocket.Failure)?.errno == ECONNRESET, "\(cut.error)")
                #expect(after < .seconds(5))
                #expect(try await next.echo([1, 2, 3]) == [1, 2, 3])
                #expect(client.errors.all.contains { $0.contains("QUIC stands back on this network for 24 h: ") })
                let status = try await tunnel.status()
                #expect(status.carriers.map(\.text) == ["Connected · WebSocket"])
                let demotions = status.paths.flatMap(\.demotions)
                #expect(demotions.map(\.transport) == ["quic"])
                #expect(demotions.map { $0.until - $0.since } == [86_400])
                #expect(
                    demotions.allSatisfy {
                        $0.reason.contains("before its first message") || $0.reason.contains("after the first")
                    })
            }
        }
    }
}
