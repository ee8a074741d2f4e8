import Testing
import TransportIO
import TransportKit
import WebSocketTransport

/// Dialer and listener over real sockets on one loop.
@Suite struct LoopbackTests {
    @Test func `Messages arrive whole and in order in both directions`() async throws {
        try await withPair { near, far in
            let sizes = [0, 1, 125, 126, 65_535, 65_536, 1 << 20]
            for size in sizes { try await near.send(Message(Bytes(repeating: 7, count: size))) }
            var received: [Message] = []
            while received.count < sizes.count { received += try await far.receive() }
            #expect(received.map(\.payload.count) == sizes)
            try await far.send(Message.text("grüße"))
            #expect(try await near.receive() == [Message.text("grüße")])
        }
    }

    @Test func `A close arrives with its code and reason after the last message`() async throws {
        try await withPair { near, far in
            try await near.send(Message(Bytes("last")))
            async let closed = near.close(.displaced, reason: "epoch 7")
            #expect(try await far.receive().map(\.payload) == [Bytes("last")])
            await #expect(throws: Close(.displaced, reason: "epoch 7", origin: .remote)) { try await far.receive() }
            #expect(await closed == Close(.displaced, reason: "epoch 7", origin: .local))
        }
    }

    private func withPair(_ body: (any Socket, any Socket) async throws -> Void) async throws {
        let loop = try EventLoop(name: "test")
        let transport = WebSocketTransport(loop: loop)
        let here = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 0)
        let listener = try await transport.listen(here, options: ListenOptions())
        let near = try await transport.dial(ServiceURL(listener.endpoint), options: DialOptions())
        let far = try await listener.accept()
        try await body(near, far)
        await near.close()
        await far.close()
        await listener.close()
        await loop.shutdown()
    }
}
