import Testing
import TransportIO
import TransportKit

@Suite(.timeLimit(.minutes(1))) struct TCPConnectionTests {
    func withPair(
        _ body: @escaping @Sendable (_ client: TCPConnection, _ server: TCPConnection) async throws -> Void
    ) async throws {
        try await withLoop { loop in
            let listener = try await TCPListener.bind(.loopback(), loop: loop)
            async let accepted = listener.accept()
            let client = try await TCPConnection.connect(
                to: .ipv4(.loopback), port: listener.localAddress.port, loop: loop)
            let server = try await accepted
            try await body(client, server)
            await client.close()
            await server.close()
            await listener.close()
        }
    }

    func readAll(_ connection: TCPConnection, upTo limit: Int = 256 << 10) async throws -> Bytes {
        var all = Bytes()
        while let bytes = try await connection.read(upTo: limit) {
            #expect(!bytes.isEmpty && bytes.count <= limit)
            all.append(contentsOf: bytes)
        }
        return all
    }

    @Test(arguments: [1, 1000, 256 << 10])
    func `2 MiB cross whole, held up by the reader alone`(limit: Int) async throws {
        try await withPair { client, server in
            let total = limit == 1 ? 5000 : 2 << 20
            let payload = Bytes((0..<total).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
            async let writing: Void = {
                try await client.write(payload)
                try await client.finish()
            }()
            #expect(try await readAll(server, upTo: limit) == payload)
            try await writing
            // The end comes every time, and the other direction is open (B12).
            #expect(try await server.read(upTo: 10) == nil)
            try await server.write(Bytes("thanks"))
            #expect(try await client.read(upTo: 10) == Bytes("thanks"))
        }
    }

    @Test func `Addresses are told on both ends, from a thread outside the loop too`() async throws {
        let loop = try EventLoop(name: "test")
        let listener = try await TCPListener.bind(.loopback(), loop: loop)
        let client = try await TCPConnection.connect(to: listener.localAddress, loop: loop)
        let server = try await listener.accept()
        #expect(client.localAddress == server.remoteAddress)
        #expect(client.remoteAddress == server.localAddress)
        try await client.write(Bytes("x"))
        #expect(try await server.read(upTo: 5) == Bytes("x"))
        await loop.shutdown()
    }

    @Test func `Whoever waits is told when the loop is shut down`() async throws {
        let loop = try EventLoop(name: "test")
        let peers = try EventLoop(name: "peers")
        let listener = try await TCPListener.bind(.loopback(), loop: loop)
        let peer = try await TCPListener.bind(.loopback(), loop: peers)
        let reader = try await TCPConnection.connect(to: peer.localAddress, loop: loop)
        let writer = try await TCPConnection.connect(to: peer.localAddress, loop: loop)
        let waiting: [Task<Void, any Error>] = [
            Task { _ = try await listener.accept() },
            Task { _ = try await reader.read(upTo: 1) },
            // Nobody reads it, so it does not get rid of all.
            Task { try await writer.write(Bytes(repeating: 0, count: 64 << 20)) },
        ]
        await loop.shutdown()
        for task in waiting {
            let error = await #expect(throws: TransportError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            #expect(error?.message == "the event loop was shut down")
        }
        await #expect(throws: TransportError.self) { try await writer.write(Bytes("late")) }
        await peers.shutdown()
    }

    @Test func `A reset surfaces as such to a waiting reader and to a writer`() async throws {
        // B13
        try await withPair { client, server in
            let reading = Task(executorPreference: server.loop) { try await server.read(upTo: 10) }
            await Task.yield()
            await client.reset()
            let error = await #expect(throws: TransportError.self) { try await reading.value }
            #expect(error?.code == .pathReset)
            await #expect(throws: TransportError.self) { try await server.write(Bytes("x")) }
        }
    }

    @Test func `A dropped connection is closed`() async throws {
        try await withLoop { loop in
            let listener = try await TCPListener.bind(.loopback(), loop: loop)
            let client = try await TCPConnection.connect(to: listener.localAddress, loop: loop)
            _ = try await listener.accept()
            #expect(try await client.read(upTo: 10) == nil)
        }
    }

    @Test func `A cancelled read loses nothing`() async throws {
        try await withPair { client, server in
            let reading = Task(executorPreference: server.loop) { try await server.read(upTo: 10) }
            await Task.yield()
            reading.cancel()
            let error = await #expect(throws: TransportError.self) { try await reading.value }
            #expect(error?.code == .cancelled)
            try await client.write(Bytes("still here"))
            #expect(try await server.read(upTo: 100) == Bytes("still here"))
        }
    }

    @Test func `A write that is cancelled half way resets the connection`() async throws {
        try await withPair { client, server in
            let writing = Task { try await client.write(Bytes(repeating: 1, count: 64 << 20)) }
            // Once something has arrived the write is under way, and it can never end on its own.
            let first = try await server.read(upTo: 10)
            #expect(first?.isEmpty == false)
            writing.cancel()
            let error = await #expect(throws: TransportError.self) { try await writing.value }
            #expect(error?.code == .cancelled)
            let ending = await #expect(throws: TransportError.self) { try await readAll(server) }
            #expect(ending?.code == .pathReset)
        }
    }

    @Test func `A second reader is told off and the first goes on`() async throws {
        try await withPair { client, server in
            // It runs on the loop, as this task does, so it waits by the time this one goes on.
            let first = Task(executorPreference: server.loop) { try await server.read(upTo: 10) }
            await Task.yield()
            let error = await #expect(throws: TransportError.self) { try await server.read(upTo: 10) }
            #expect(error?.code == .misuse)
            try await client.write(Bytes("x"))
            #expect(try await first.value == Bytes("x"))
        }
    }

    @Test func `Closing wakes whoever waits, and later calls are refused`() async throws {
        try await withPair { client, _ in
            let reading = Task(executorPreference: client.loop) { try await client.read(upTo: 10) }
            await Task.yield()
            await client.close()
            let error = await #expect(throws: TransportError.self) { try await reading.value }
            #expect(error?.code == .cancelled)
            await #expect(throws: TransportError.self) { try await client.write(Bytes("x")) }
        }
    }

    @Test func `Connecting to nobody is refused`() async throws {
        try await withLoop { loop in
            let listener = try await TCPListener.bind(.loopback(), loop: loop)
            await listener.close()
            for host in [Host.ipv4(.loopback), .name("localhost")] {
                let error = await #expect(throws: TransportError.self) {
                    try await TCPConnection.connect(to: host, port: listener.localAddress.port, loop: loop)
                }
                #expect(error?.code == .refused)
            }
        }
    }

    @Test func `A closed listener ends the wait for connections`() async throws {
        try await withLoop { loop in
            let listener = try await TCPListener.bind(.loopback(), loop: loop)
            let accepting = Task(executorPreference: loop) { try await listener.accept() }
            await Task.yield()
            await listener.close()
            let error = await #expect(throws: TransportError.self) { _ = try await accepting.value }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func `More connections than the listener holds wait in the kernel and are served in order`() async throws {
        try await withLoop { loop in
            let listener = try await TCPListener.bind(.loopback(), loop: loop)
            var clients: [TCPConnection] = []
            for _ in 0..<100 {
                clients.append(try await TCPConnection.connect(to: listener.localAddress, loop: loop))
            }
            for client in clients {
                let server = try await listener.accept()
                #expect(server.remoteAddress == client.localAddress)
                await server.close()
            }
            await listener.close()
        }
    }
}
