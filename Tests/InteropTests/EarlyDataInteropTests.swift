import Testing
import TransportKit

/// Early data between TransportKit and `aioquic`.
@Suite(.enabled(if: Peers.areExpected, "no .venv/bin/python; bin/setup test makes it"), .serialized)
struct EarlyDataInteropTests {
    // R14, R16, R17; docs/protocol.md §3.
    @Test(.timeLimit(.minutes(1)))
    func `aioquic takes early data from a dialer that comes back`() async throws {
        try await Rig.with(.quic) { rig in
            rig.dialOptions.earlyData = true
            rig.dialOptions.firstFlight = Bytes("first")
            let server = ["server", "--scenario", "early-data"]
            try await Peer.withPython("quic_peer.py", server + rig.serverArguments()) { peer in
                let port = try await peer.port()
                for outcome in [SocketInfo.EarlyData.none, .accepted] {
                    let socket = try await rig.transport.dial(rig.url(port: port), options: rig.dialOptions)
                    #expect(socket.info.earlyData == outcome)
                    #expect(socket.info.resumed == (outcome == .accepted))
                    #expect(try await socket.receive() == [Message(Bytes("first"))])
                    await socket.close(.normal, reason: "done")
                }
                try await peer.finish()
            }
        }
    }

    // R14, R16, R17, R121.
    @Test(.timeLimit(.minutes(1)))
    func `A listener takes early data from aioquic`() async throws {
        try await Rig.with(.quic) { rig in
            rig.listenOptions.earlyData = true
            rig.listenOptions.answersEarly = { $0 == .echo }
            let listener = try await rig.listen()
            let client = ["client", "--scenario", "early-data", "--port", "\(listener.endpoint.port)"]
            try await Peer.withPython("quic_peer.py", client + rig.clientArguments()) { peer in
                for outcome in [SocketInfo.EarlyData.none, .accepted] {
                    let socket = try await listener.accept()
                    #expect(socket.info.earlyData == outcome)
                    #expect(socket.info.resumed == (outcome == .accepted))
                    #expect(await answer(socket) == Close(.normal, reason: "done", origin: .remote))
                    await socket.close()
                }
                try await peer.finish()
            }
            await listener.close()
        }
    }
}
