import Synchronization
import Testing
import TransportHost
import TransportIO
import TransportKit

/// Forwards and services over real sockets: two hosts on loopback, one that listens and one that forwards.
@Suite(.timeLimit(.minutes(1))) struct ForwardTests {
    static let transports = ["quic", "websocket"]

    @Test(arguments: transports)
    func `10 MB and an end go one way, a late answer and an end the other`(transport: String) async throws {
        // B12
        try await withForward(over: transport) { setup in
            var payload = Bytes((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 5) })
            while payload.count < 10_000_000 { payload.append(contentsOf: payload.prefix(10_000_000 - payload.count)) }
            let sent = payload
            async let served: (Bytes, Bytes) = {
                let connection = try await setup.target.accept()
                let received = try await readAll(connection)
                let answer = Bytes(repeating: 7, count: 65_536)
                try await connection.write(answer)
                try await connection.finish()
                await connection.close()
                return (received, answer)
            }()
            let client = try await setup.connect()
            try await client.write(sent)
            try await client.finish()
            let answer = try await readAll(client)
            let (received, answered) = try await served
            #expect(received == sent)
            #expect(answer == answered)
            await client.close()
        }
    }

    @Test(arguments: transports)
    func `The server may end first and still hear the rest`(transport: String) async throws {
        // B12, roles swapped
        try await withForward(over: transport) { setup in
            let client = try await setup.connect()
            let server = try await setup.target.accept()
            try await server.write(Bytes("greeting"))
            try await server.finish()
            #expect(try await readAll(client) == Bytes("greeting"))
            let payload = Bytes(repeating: 3, count: 1_000_000)
            async let sending: Void = {
                try await client.write(payload)
                try await client.finish()
            }()
            #expect(try await readAll(server) == payload)
            try await sending
            await client.close()
            await server.close()
        }
    }

    @Test(arguments: transports)
    func `A reset on one side is a reset on the other`(transport: String) async throws {
        try await withForward(over: transport) { setup in
            // The target resets.
            let first = try await setup.connect()
            try await first.write(Bytes("x"))
            let server = try await setup.target.accept()
            #expect(try await server.read(upTo: 10) == Bytes("x"))
            await server.reset()
            let error = try #require(await endError(of: first))
            #expect(error.code == .pathReset)
            // The client resets.
            let second = try await setup.connect()
            try await second.write(Bytes("y"))
            let other = try await setup.target.accept()
            #expect(try await other.read(upTo: 10) == Bytes("y"))
            await second.reset()
            let otherError = try #require(await endError(of: other))
            #expect(otherError.code == .pathReset)
        }
    }

    @Test(arguments: transports)
    func `The loss of the session resets what was open, and the next connection finds a new session`(
        transport: String
    ) async throws {
        try await withForward(over: transport) { setup in
            let client = try await setup.connect()
            let server = try await setup.target.accept()
            try await server.write(Bytes("half an answ"))
            #expect(try await client.read(upTo: 100) != nil)
            await setup.breakSession()
            let error = try #require(await endError(of: client))
            #expect(error.code == .pathReset)
            let otherError = try #require(await endError(of: server))
            #expect(otherError.code == .pathReset)
            // B25: the port stayed bound.
            let next = try await setup.connect()
            async let accepted = setup.target.accept()
            try await next.write(Bytes("again"))
            #expect(try await accepted.read(upTo: 10) == Bytes("again"))
            await next.close()
        }
    }

    @Test(arguments: transports)
    func `A target that is not allowed, and one where nobody listens, reset the connection with one line`(
        transport: String
    ) async throws {
        let log = RecordingLog()
        try await withForward(over: transport, to: "tcp://127.0.0.1:1", log: log) { setup in
            let client = try await setup.connect()
            try await client.write(Bytes("lost"))
            let error = try #require(await endError(of: client))
            #expect(error.code == .pathReset)
            let again = try await setup.connect()
            #expect(await endError(of: again) != nil)
        }
        let lines = log.lines.filter { $0.message.contains("a connection was reset") }
        // The second is held back, so that a storm of refusals is one line (B46).
        #expect(lines.count == 1)
        #expect(lines.first?.message.contains("4403 refused (tcp://127.0.0.1:1 is not on the list") == true)
    }

    @Test func `A target where nobody listens is named to the opener`() async throws {
        let log = RecordingLog()
        try await withForward(over: "websocket", log: log) { setup in
            await setup.target.close()
            let client = try await setup.connect()
            #expect(await endError(of: client)?.code == .pathReset)
        }
        let line = try #require(log.lines.first { $0.message.contains("a connection was reset") })
        #expect(line.message.contains("4404 nobody there"))
        #expect(line.message.contains("refused"))
    }

    @Test(arguments: transports)
    func `A reader that stops holds its writer up and nobody else`(transport: String) async throws {
        // B15
        try await withForward(over: transport) { setup in
            let stuck = try await setup.connect()
            let source = try await setup.target.accept()
            let written = Atomic(0)
            let flood = Task {
                let chunk = Bytes(repeating: 1, count: 65_536)
                while written.load(ordering: .relaxed) < 64 << 20 {
                    try await source.write(chunk)
                    written.add(chunk.count, ordering: .relaxed)
                }
            }
            // Another connection on the same session still moves 4 MB.
            let client = try await setup.connect()
            let server = try await setup.target.accept()
            let payload = Bytes(repeating: 2, count: 4 << 20)
            async let sending: Void = {
                try await client.write(payload)
                try await client.finish()
            }()
            #expect(try await readAll(server) == payload)
            try await sending
            // Windows, buffers of two kernels and chunks: far from the 64 MB that were there to send.
            #expect(written.load(ordering: .relaxed) < 48 << 20)
            await stuck.reset()
            await #expect(throws: (any Error).self) { try await flood.value }
        }
    }

    @Test func `Two forwards share a session`() async throws {
        try await withForward(over: "quic", forwards: 2) { setup in
            for index in 0..<2 {
                let client = try await setup.connect(index)
                try await client.write(Bytes("through \(index)"))
                let server = try await setup.target.accept()
                #expect(try await server.read(upTo: 100) == Bytes("through \(index)"))
                await client.close()
                await server.close()
            }
            #expect(setup.carrierOpens == 1)
        }
    }

    @Test func `Without a session a connection waits, and is reset when patience is over`() async throws {
        try await withLoop { loop in
            let listening = try await TCPListener.bind(.loopback(), loop: loop)
            let nobody = listening.localAddress.port
            await listening.close()
            let log = RecordingLog()
            let graph = try makeGraph(
                """
                carriers: { main: { kind: direct, url: "ws://127.0.0.1:\(nobody)/forward" } }
                forwards: [{ listen: "tcp://127.0.0.1:0", carrier: main, to: "tcp://127.0.0.1:9", patience: 50ms }]
                """, loop: loop, allowsAnyPort: true)
            try await withHost(graph, loop: loop, log: Log(sink: log)) { bound in
                let address = try #require(bound.forwards[0])
                let client = try await TCPConnection.connect(to: address, loop: loop)
                #expect(await endError(of: client)?.code == .pathReset)
            }
            #expect(log.lines.contains { $0.message.contains("the carrier had no open session for") })
        }
    }

    @Test func `A connection that still waits when the host stops is reset for that reason`() async throws {
        try await withLoop { loop in
            let listening = try await TCPListener.bind(.loopback(), loop: loop)
            let nobody = listening.localAddress.port
            await listening.close()
            let log = RecordingLog()
            let graph = try makeGraph(
                """
                grace: 50ms
                carriers: { main: { kind: direct, url: "ws://127.0.0.1:\(nobody)/forward" } }
                forwards: [{ listen: "tcp://127.0.0.1:0", carrier: main, to: "tcp://127.0.0.1:9", patience: 1h }]
                """, loop: loop, allowsAnyPort: true)
            let runner = HostRunner(graph, loop: loop, log: Log(sink: log))
            try await withHost(runner) { bound in
                let client = try await TCPConnection.connect(to: try #require(bound.forwards[0]), loop: loop)
                // Once it has been accepted, the port being closed does not end it.
                while runner.openConnections == 0 { try await loop.sleep(for: .milliseconds(5)) }
                runner.beginGracefulShutdown()
                #expect(await endError(of: client)?.code == .pathReset)
            }
            let lines = log.lines.filter { $0.message.contains("a connection was reset") }.map(\.message)
            #expect(lines.count == 1 && lines[0].hasSuffix(": a connection was reset: the host stops"), "\(lines)")
        }
    }
}
