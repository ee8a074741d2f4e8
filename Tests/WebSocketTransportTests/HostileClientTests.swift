import Testing
import TransportIO
import TransportKit
import WebSocketTransport

/// What a listener makes of a client that does not behave, seen on the wire (B58).
@Suite struct HostileClientTests {
    private func withListener(
        log: Log = Log(), _ change: (inout ListenOptions) -> Void = { _ in },
        _ body: (any Listener, EventLoop) async throws -> Void
    ) async throws {
        let loop = try EventLoop(name: "listener")
        var options = ListenOptions()
        options.limits.linger = .milliseconds(200)
        options.route = { target in
            switch target.path {
            case "/", "/echo": .accept
            case "/closed": .refuse(.refused)
            case "/busy": .refuse(.busy)
            default: .refuse(.nobodyThere)
            }
        }
        change(&options)
        let here = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 0)
        let listener = try await WebSocketTransport(loop: loop, log: log).listen(here, options: options)
        try await body(listener, loop)
        await listener.close()
        await loop.shutdown()
    }

    /// A client that has its WebSocket, and the listener's end of it.
    private func withPair(
        glued: Bytes = Bytes(), _ change: (inout ListenOptions) -> Void = { _ in },
        _ body: (RawPeer, any Socket) async throws -> Void
    ) async throws {
        try await withListener(change) { listener, loop in
            let peer = try await RawPeer.dial(listener.endpoint, on: loop)
            #expect(try await peer.upgrade(glued: glued).hasPrefix("HTTP/1.1 101 "))
            let socket = try await listener.accept()
            try await body(peer, socket)
            await peer.connection.close()
            await socket.close()
        }
    }

    private func end(of socket: any Socket) async -> Close? {
        await #expect(throws: Close.self) { while true { _ = try await socket.receive() } }
    }

    @Test func `Frames glued to the request are delivered`() async throws {
        let glued = frame(0x81, Bytes("one"), key: RawPeer.key) + frame(0x82, Bytes("two"), key: RawPeer.key)
        try await withPair(glued: glued) { _, socket in
            var received: [Message] = []
            while received.count < 2 { received += try await socket.receive() }
            #expect(received == [.text("one"), Message(Bytes("two"))])
        }
    }

    @Test func `A frame without a mask is answered with a close frame 1002 that really leaves`() async throws {
        try await withPair { peer, socket in
            try await peer.send(frame(0x82, Bytes("bare")))
            let answer = await peer.readToEnd()
            #expect(answer[0] == 0x88)
            #expect(answer[2..<4] == hex("03ea"))
            let close = await end(of: socket)
            #expect(close?.code == .protocolError)
            #expect(close?.origin == .local)
            #expect(close?.cause?.code == .protocolViolation)
        }
    }

    @Test func `An announced length of 2^40 is answered with 1009 before a byte of it came`() async throws {
        try await withPair { peer, socket in
            try await peer.send(frame(0x82, key: RawPeer.key, announced: 1 << 40))
            let answer = await peer.readToEnd()
            #expect(answer[0] == 0x88)
            #expect(answer[2..<4] == hex("03f1"))
            #expect(await end(of: socket)?.code == .tooBig)
        }
    }

    @Test func `Ten thousand pings in one write, while nobody reads the answers, end nothing`() async throws {
        try await withPair { peer, socket in
            var flood = Bytes()
            for _ in 0..<10_000 {
                flood.append(contentsOf: frame(0x89, Bytes(repeating: 1, count: 125), key: RawPeer.key))
            }
            try await peer.send(flood)
            try await peer.send(frame(0x82, Bytes("still here"), key: RawPeer.key))
            #expect(try await socket.receive().map(\.payload) == [Bytes("still here")])
        }
    }

    @Test func `Answers to pings that nobody reads are given up, not kept`() async throws {
        try await withPair {
            $0.limits.sendBufferBytes = 64 << 10
        } _: { peer, socket in
            let ping = Bytes(repeating: 1, count: 125)
            var pings = Bytes()
            for _ in 0..<1000 { pings.append(contentsOf: frame(0x89, ping, key: RawPeer.key)) }
            let rounds = 400
            for _ in 0..<rounds { try await peer.send(pings) }
            try await peer.send(frame(0x82, Bytes("done"), key: RawPeer.key))
            #expect(try await socket.receive().map(\.payload) == [Bytes("done")])

            async let sent: Void = socket.send(Message(Bytes("end")))
            let last = frame(0x82, Bytes("end"))
            var answered = 0
            var tail = Bytes()
            while tail != last {
                let more = try #require(try await peer.connection.read(upTo: 65_536))
                answered += more.count
                tail = (tail + more).dropFirst(max(tail.count + more.count - last.count, 0))
            }
            try await sent
            let pong = frame(0x8a, ping)
            #expect((answered - last.count) % pong.count == 0)
            // 50 MB of pings: the kernel holds some 10 MB between two ends, and this end little more.
            #expect((1..<rounds * 1000 / 3).contains(answered / pong.count))
        }
    }

    @Test func `An end amid a frame is 1006 with its cause`() async throws {
        try await withPair { peer, socket in
            try await peer.send(frame(0x82, Bytes("whole"), key: RawPeer.key) + hex("82ff0000"))
            try await peer.connection.finish()
            #expect(try await socket.receive().map(\.payload) == [Bytes("whole")])
            let close = await end(of: socket)
            #expect(close?.code == .pathLost)
            #expect(close?.cause?.code == .pathReset)
        }
    }

    @Test func `A reset while the listener writes ends that socket and no other`() async throws {
        try await withListener { listener, loop in
            for _ in 0..<20 {
                let peer = try await RawPeer.dial(listener.endpoint, on: loop)
                _ = try await peer.upgrade()
                let socket = try await listener.accept()
                let writing = Task(executorPreference: loop) { () -> Close in
                    do throws(Close) {
                        while true { try await socket.send(Message(Bytes(repeating: 1, count: 100_000))) }
                    } catch { return error }
                }
                _ = try await peer.read(1_000_000)
                await peer.connection.reset()
                let close = await writing.value
                #expect(close.code == .pathLost)
                #expect(close.cause?.code == .pathReset)
            }
            let peer = try await RawPeer.dial(listener.endpoint, on: loop)
            #expect(try await peer.upgrade().hasPrefix("HTTP/1.1 101 "))
            await peer.connection.close()
        }
    }

    @Test func `A message before a broken frame is delivered and may be answered`() async throws {
        try await withListener { listener, loop in
            let peer = try await RawPeer.dial(listener.endpoint, on: loop)
            _ = try await peer.upgrade()
            let socket = try await listener.accept()
            let echoing = Task(executorPreference: loop) { () -> Close in
                do throws(Close) {
                    while true { try await socket.send(socket.receive()) }
                } catch { return error }
            }
            // Once the first echo is here, the echo waits for the next message.
            try await peer.send(frame(0x82, Bytes("first"), key: RawPeer.key))
            #expect(try await peer.read(7) == frame(0x82, Bytes("first")))
            try await peer.send(frame(0x82, Bytes("ask"), key: RawPeer.key) + frame(0x83, Bytes(), key: RawPeer.key))
            let answer = await peer.readToEnd()
            #expect(answer.prefix(5) == frame(0x82, Bytes("ask")))
            #expect(answer[5] == 0x88)
            #expect(await echoing.value.code == .protocolError)
            await peer.connection.close()
        }
    }

    // MARK: - Closing

    @Test func `A close by the listener goes out after the data, and its echo ends TCP`() async throws {
        try await withPair { peer, socket in
            try await socket.send(Message(Bytes("last")))
            async let closed = socket.close(.displaced, reason: "7")
            #expect(try await peer.read(11) == frame(0x82, Bytes("last")) + closeFrame(4409, "7"))
            try await peer.send(closeFrame(4409, "7", key: RawPeer.key))
            #expect(await closed == Close(.displaced, reason: "7", origin: .local))
            #expect(await peer.readToEnd().isEmpty)
        }
    }

    @Test func `A close that nobody echoes is over when the linger time is`() async throws {
        try await withPair { peer, socket in
            #expect(await socket.close(.normal, reason: "") == Close(.normal, origin: .local))
            #expect(await peer.readToEnd() == closeFrame(1000))
        }
    }

    @Test func `A close by the peer is echoed with its code, after what was accepted before`() async throws {
        try await withPair { peer, socket in
            try await socket.send(Message(Bytes("reply")))
            try await peer.send(closeFrame(4001, "bye", key: RawPeer.key))
            #expect(await peer.readToEnd() == frame(0x82, Bytes("reply")) + closeFrame(4001, "bye"))
            #expect(await end(of: socket) == Close(CloseCode(rawValue: 4001), reason: "bye", origin: .remote))
        }
    }

    // MARK: - HTTP

    private func answer(to request: String, from listener: any Listener, on loop: EventLoop) async throws -> String {
        let peer = try await RawPeer.dial(listener.endpoint, on: loop)
        try await peer.send(request)
        let answer = await peer.readToEnd()
        await peer.connection.close()
        return String(validating: answer) ?? ""
    }

    @Test func `Plain HTTP is answered for what is there, and the connection ends`() async throws {
        try await withListener { listener, loop in
            func get(_ target: String, _ method: String = "GET") async throws -> String {
                let request = "\(method) \(target) HTTP/1.1\r\nHost: here\r\n\r\n"
                // A request behind the first is not looked at.
                return try await answer(to: request + request, from: listener, on: loop)
            }
            let healthy = try await get("/healthz")
            #expect(healthy.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(healthy.hasSuffix("\r\nContent-Length: 2\r\n\r\nok"))
            #expect(try await get("/healthz", "HEAD").hasSuffix("\r\nContent-Length: 2\r\n\r\n"))
            #expect(try await get("/echo").hasPrefix("HTTP/1.1 426 "))
            #expect(try await get("/closed").hasPrefix("HTTP/1.1 426 "))
            #expect(try await get("/none").hasPrefix("HTTP/1.1 404 "))
            #expect(try await get("/echo", "POST").hasPrefix("HTTP/1.1 426 "))
        }
    }

    @Test func `An upgrade that is refused has the status of its close code`() async throws {
        try await withListener { listener, loop in
            for (target, status) in [("/closed", 403), ("/busy", 503), ("/none", 404)] {
                let text = try await answer(to: RawPeer.request(target), from: listener, on: loop)
                #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            }
            let old = UpgradeRequestTests.replacing("Sec-WebSocket-Version", "Sec-WebSocket-Version: 8")
            let text = try await answer(to: UpgradeRequestTests.request(old), from: listener, on: loop)
            #expect(text.hasPrefix("HTTP/1.1 426 "))
            #expect(text.contains("\r\nSec-WebSocket-Version: 13\r\n"))
            #expect(try await answer(to: "\u{16}\u{3}\u{1}\n\n", from: listener, on: loop).hasPrefix("HTTP/1.1 400 "))
        }
    }

    @Test func `Compression that is offered is declined in silence`() async throws {
        try await withListener { listener, loop in
            let peer = try await RawPeer.dial(listener.endpoint, on: loop)
            try await peer.send(RawPeer.request("/", "Sec-WebSocket-Extensions: permessage-deflate"))
            let head = try await peer.readHead()
            #expect(head.hasPrefix("HTTP/1.1 101 "))
            #expect(!head.lowercased().contains("extensions"))  // R29
            await peer.connection.close()
        }
    }

    @Test func `A head that comes too slowly is not waited for`() async throws {
        try await withListener({ $0.limits.handshakeTimeout = .milliseconds(100) }) { listener, loop in
            let peer = try await RawPeer.dial(listener.endpoint, on: loop)
            try await peer.send("GET / HT")
            #expect(await peer.readToEnd().isEmpty)
        }
    }

    @Test func `A listener that is full says so and takes the next one when there is room`() async throws {
        try await withListener({ $0.limits.maxConnections = 1 }) { listener, loop in
            let first = try await RawPeer.dial(listener.endpoint, on: loop)
            _ = try await first.upgrade()
            let socket = try await listener.accept()
            #expect(try await answer(to: RawPeer.request(), from: listener, on: loop).hasPrefix("HTTP/1.1 503 "))
            await first.connection.reset()
            _ = await end(of: socket)
            var head = ""
            while !head.hasPrefix("HTTP/1.1 101 ") {
                let next = try await RawPeer.dial(listener.endpoint, on: loop)
                head = try await next.upgrade()
                await next.connection.close()
            }
        }
    }

    @Test func `A listener that is full says so once, however many come`() async throws {
        let sink = RecordingLog()
        try await withListener(log: Log(level: .warning, sink: sink)) {
            $0.limits.maxConnections = 0
        } _: { listener, loop in
            for _ in 0..<50 {
                let text = try await answer(to: RawPeer.request(), from: listener, on: loop)
                #expect(text.hasPrefix("HTTP/1.1 503 "))
            }
        }
        #expect((1...2).contains(sink.lines.count), "\(sink.lines.map(\.message))")
    }

    @Test func `What was not accepted is refused when the listener closes`() async throws {
        try await withListener { listener, loop in
            let waiting = try await RawPeer.dial(listener.endpoint, on: loop)
            _ = try await waiting.upgrade()
            let early = try await RawPeer.dial(listener.endpoint, on: loop)
            try await early.send("GET / ")
            await listener.close(.restarting, reason: "soon")
            #expect(try await waiting.read(8) == closeFrame(1012, "soon"))
            #expect(await early.readToEnd().isEmpty)
            await #expect(throws: Close.self) { try await listener.accept() }
            await waiting.connection.close()
        }
    }
}
