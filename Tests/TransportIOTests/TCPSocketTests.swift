import Glibc
import Testing
import TransportIO
import TransportKit

@Suite(.timeLimit(.minutes(1))) struct TCPSocketTests {
    /// Two ends of one connection.
    struct Pair {
        let client: TCPSocket
        let clientEvents: TCPCollector
        let server: TCPSocket
        let serverEvents: TCPCollector
    }

    func makePair(_ loop: EventLoop, at address: SocketAddress = .loopback()) async throws -> Pair {
        let acceptor = try TCPAcceptor.bind(address, loop: loop)
        let accepting = TCPCollector()
        let serverEvents = TCPCollector()
        accepting.acceptedHandler = serverEvents
        acceptor.handler = accepting
        let clientEvents = TCPCollector()
        let client = try TCPSocket.connect(to: acceptor.localAddress, loop: loop, handler: clientEvents)
        await clientEvents.wait { $0.isConnected }
        await accepting.wait { !$0.accepted.isEmpty }
        acceptor.close()
        let server = try #require(accepting.accepted.first)
        return Pair(client: client, clientEvents: clientEvents, server: server, serverEvents: serverEvents)
    }

    /// Reads until `count` bytes have come.
    func read(_ count: Int, from socket: TCPSocket, _ events: TCPCollector) async throws -> Bytes {
        var arrived = Bytes()
        while arrived.count < count {
            let calls = events.readableCalls
            let (result, bytes) = read(socket)
            switch result {
            case .bytes: arrived.append(contentsOf: bytes)
            case .wouldBlock: await events.wait { $0.readableCalls > calls }
            case .end: throw TransportError(.pathReset, "ended early")
            case .failed(let error): throw error
            }
        }
        return arrived
    }

    func read(_ socket: TCPSocket, room: Int = 65_536) -> (result: TCPReadResult, bytes: Bytes) {
        var result = TCPReadResult.wouldBlock
        let bytes = Bytes(unsafeUninitializedCapacity: room) { buffer in
            result = socket.read(into: buffer)
            if case .bytes(let count) = result { return count }
            return 0
        }
        return (result, bytes)
    }

    func write(_ socket: TCPSocket, _ bytes: Bytes) -> TCPWriteResult { bytes.withUnsafeBytes { socket.write($0) } }

    @Test(arguments: [SocketAddress.loopback(), UDPSocketTests.loopbackIPv6])
    func `Both ends know both addresses and bytes cross`(address: SocketAddress) async throws {
        try await withLoop { loop in
            let pair = try await makePair(loop, at: address)
            #expect(pair.client.remoteAddress == pair.server.localAddress)
            #expect(pair.server.remoteAddress == pair.client.localAddress)
            guard case .written(5) = write(pair.client, Bytes("hello")) else {
                Issue.record("not written")
                return
            }
            #expect(try await read(5, from: pair.server, pair.serverEvents) == Bytes("hello"))
            pair.client.close()
            pair.client.close()
            pair.server.close()
        }
    }

    @Test func `Several buffers are written in one call, more than one call takes too`() async throws {
        try await withLoop { loop in
            let pair = try await makePair(loop)
            let parts = (0..<100).map { Bytes(repeating: UInt8($0), count: 10) }
            var written = 0
            // The pointers are good as long as `parts` is.
            let buffers = parts.map { $0.withUnsafeBytes { $0 } }
            guard case .written(let count) = pair.client.write(buffers) else {
                Issue.record("not written")
                return
            }
            written = count
            #expect(written == 640)
            withExtendedLifetime(parts) {}
            let arrived = try await read(written, from: pair.server, pair.serverEvents)
            #expect(arrived == Bytes((0..<640).map { UInt8($0 / 10) }))
            pair.client.close()
            pair.server.close()
        }
    }

    @Test func `A writer is held up by a reader that stops, and told when it may go on`() async throws {
        try await withLoop { loop in
            let pair = try await makePair(loop)
            let chunk = Bytes(repeating: 1, count: 256 << 10)
            var written = 0
            filling: while true {
                switch write(pair.client, chunk) {
                case .written(let count): written += count
                case .wouldBlock: break filling
                case .failed(let error): throw error
                }
                try #require(written < 1 << 30)
            }
            _ = try await read(written, from: pair.server, pair.serverEvents)
            await pair.clientEvents.wait { $0.writableCalls == 1 }
            guard case .written = write(pair.client, chunk) else {
                Issue.record("not writable")
                return
            }
            pair.client.reset()
            pair.server.close()
        }
    }

    @Test func `A half-closed connection still carries the other direction, and its end is told every time`()
        async throws
    {
        // B12
        try await withLoop { loop in
            let pair = try await makePair(loop)
            _ = write(pair.client, Bytes("last bytes"))
            pair.client.shutdownWrite()
            #expect(try await read(10, from: pair.server, pair.serverEvents) == Bytes("last bytes"))
            for _ in 0..<2 {
                await #expect(throws: TransportError(.pathReset, "ended early")) {
                    try await read(1, from: pair.server, pair.serverEvents)
                }
            }
            _ = write(pair.server, Bytes("answer"))
            #expect(try await read(6, from: pair.client, pair.clientEvents) == Bytes("answer"))
            pair.client.close()
            pair.server.close()
        }
    }

    @Test func `A reset is a failure and never an end`() async throws {
        // B13
        try await withLoop { loop in
            let pair = try await makePair(loop)
            pair.client.reset()
            await pair.serverEvents.wait { $0.readableCalls > 0 }
            guard case .failed(let error) = read(pair.server).result else {
                Issue.record("no failure")
                return
            }
            #expect(error.code == .pathReset)
            guard case .failed = write(pair.server, Bytes("x")) else {
                Issue.record("written into nothing")
                return
            }
            pair.server.close()
        }
    }

    @Test func `A refused connection is told with its reason`() async throws {
        try await withLoop { loop in
            let acceptor = try TCPAcceptor.bind(.loopback(), loop: loop)
            acceptor.close()
            let events = TCPCollector()
            do {
                _ = try TCPSocket.connect(to: acceptor.localAddress, loop: loop, handler: events)
                await events.wait { !$0.errors.isEmpty }
                #expect(events.errors.map(\.code) == [.refused])
            } catch let error as TransportError {
                // The loopback interface may answer before connect returns.
                #expect(error.code == .refused)
            }
        }
    }

    @Test func `A connection that nobody takes is reset`() async throws {
        try await withLoop { loop in
            let acceptor = try TCPAcceptor.bind(.loopback(), loop: loop)
            let accepting = TCPCollector()
            acceptor.handler = accepting
            let events = TCPCollector()
            let client = try TCPSocket.connect(to: acceptor.localAddress, loop: loop, handler: events)
            // The reset may come before this end has noticed that it was connected.
            await events.wait { $0.readableCalls > 0 || !$0.errors.isEmpty }
            if events.isConnected {
                guard case .failed(let error) = read(client).result else {
                    Issue.record("not reset")
                    return
                }
                #expect(error.code == .pathReset)
            } else {
                #expect(events.errors.map(\.code) == [.pathReset])
            }
            client.close()
            acceptor.close()
        }
    }

    @Test func `A paused acceptor leaves connections waiting until it goes on`() async throws {
        try await withLoop { loop in
            let acceptor = try TCPAcceptor.bind(.loopback(), loop: loop)
            let accepting = TCPCollector()
            accepting.acceptedHandler = TCPCollector()
            acceptor.handler = accepting
            acceptor.pause()
            let events = TCPCollector()
            let client = try TCPSocket.connect(to: acceptor.localAddress, loop: loop, handler: events)
            await events.wait { $0.isConnected }
            #expect(accepting.accepted.isEmpty)
            acceptor.resume()
            await accepting.wait { $0.accepted.count == 1 }
            for socket in accepting.accepted { socket.close() }
            client.close()
            acceptor.close()
        }
    }
}
