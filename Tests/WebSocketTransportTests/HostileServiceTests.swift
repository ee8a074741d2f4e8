import Testing
import TransportIO
import TransportKit
import WebSocketTransport

/// What a dialer makes of a service that does not behave, seen on the wire (B36, B57).
@Suite struct HostileServiceTests {
    /// A service that does what it is told with the first connection, while a dialer dials.
    private func dial(
        _ options: DialOptions = patient, multiplexer: (any StreamMultiplexer)? = nil,
        service: @escaping @Sendable (RawPeer) async throws -> Void,
        check: (Result<any Socket, TransportError>) async throws -> Void
    ) async throws {
        let loop = try EventLoop(name: "dialer")
        let listener = try await TCPListener.bind(.loopback(), loop: loop)
        let serving = Task {
            let peer = RawPeer(try await listener.accept())
            try await service(peer)
            await peer.connection.close()
        }
        var options = options
        options.limits.linger = .milliseconds(200)
        let transport = WebSocketTransport(loop: loop, multiplexer: multiplexer)
        let here = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: listener.localAddress.port)
        let result: Result<any Socket, TransportError>
        do throws(TransportError) {
            result = .success(try await transport.dial(ServiceURL(here), options: options))
        } catch {
            result = .failure(error)
        }
        try await check(result)
        if case .success(let socket) = result { await socket.close() }
        try await serving.value
        await listener.close()
        await loop.shutdown()
    }

    /// A machine with much else to do is no silent service.
    private static var patient: DialOptions {
        var options = DialOptions()
        options.limits.handshakeTimeout = .seconds(60)
        return options
    }

    private func error(_ result: Result<any Socket, TransportError>) -> TransportError? {
        switch result {
        case .success: nil
        case .failure(let error): error
        }
    }

    @Test(arguments: [200, 301, 404, 429, 503])
    func `A refusal is an error with status and text, and no redirection is followed`(status: Int) async throws {
        try await dial { peer in
            _ = try await peer.readHead()
            try await peer.send("HTTP/1.1 \(status) No\r\nLocation: ws://127.0.0.1:1/\r\n\r\n<h1>go away</h1>")
        } check: { result in
            #expect(error(result)?.code == .upgradeRefused)
            #expect(error(result)?.number == UInt64(status))
            #expect(error(result)?.message.contains("<h1>go away</h1>") == true)
        }
    }

    @Test func `A service that says nothing is given up after the limit`() async throws {
        var options = DialOptions()
        options.limits.handshakeTimeout = .milliseconds(100)
        try await dial(options) { peer in
            _ = await peer.readToEnd()
        } check: { result in
            #expect(error(result)?.code == .timedOut)
        }
    }

    @Test func `A service that hangs up instead of answering is told apart`() async throws {
        try await dial { peer in
            _ = try await peer.readHead()
        } check: { result in
            #expect(error(result)?.code == .pathReset)
        }
    }

    @Test func `An endless head is given up in bounded memory`() async throws {
        try await dial { peer in
            _ = try await peer.readHead()
            try? await peer.send("HTTP/1.1 101 Switching Protocols\r\n")
            while (try? await peer.send(String(repeating: "X-A: b\r\n", count: 1000))) != nil {}
        } check: { result in
            #expect(error(result)?.code == .protocolViolation)
        }
    }

    @Test func `A frame glued to the answer is delivered`() async throws {
        try await dial { peer in
            _ = try await peer.acceptUpgrade(glued: frame(0x81, Bytes("first")))
            _ = await peer.readToEnd()
        } check: { result in
            let socket = try result.get()
            #expect(try await socket.receive() == [.text("first")])
        }
    }

    @Test func `Every frame that leaves a dialer is masked`() async throws {
        try await dial { peer in
            _ = try await peer.acceptUpgrade()
            let bytes = await peer.readToEnd()
            let received = receive(bytes, as: .server)
            #expect(received.messages.map(\.payload.count) == [0, 5, 70_000])
            #expect(received.close?.code == 1000)
            #expect(received.failure == nil)
        } check: { result in
            let socket = try result.get()
            try await socket.send([0, 5, 70_000].map { Message(Bytes(repeating: 1, count: $0)) })
        }
    }

    @Test func `A masked frame from the service is answered with 1002`() async throws {
        try await dial { peer in
            _ = try await peer.acceptUpgrade(glued: frame(0x82, Bytes("x"), key: RawPeer.key))
            #expect(receive(await peer.readToEnd(), as: .server).close?.code == 1002)
        } check: { result in
            let close = await #expect(throws: Close.self) { try await result.get().receive() }
            #expect(close?.code == .protocolError)
        }
    }

    @Test func `A close frame counts although the connection breaks right behind it`() async throws {
        // R30: 4409 carries the epoch in its reason.
        try await dial { peer in
            _ = try await peer.acceptUpgrade()
            _ = try await peer.read(1)
            try await peer.send(closeFrame(4409, "4711"))
            await peer.connection.reset()
        } check: { result in
            let socket = try result.get()
            let close = await #expect(throws: Close.self) {
                while true { try await socket.send(Message(Bytes(repeating: 1, count: 100_000))) }
            }
            #expect(close == Close(.displaced, reason: "4711", origin: .remote))
        }
    }

    @Test func `A reset is 1006 with its cause`() async throws {
        try await dial { peer in
            _ = try await peer.acceptUpgrade()
            await peer.connection.reset()
        } check: { result in
            let close = await #expect(throws: Close.self) { try await result.get().receive() }
            #expect(close?.code == .pathLost)
            #expect(close?.cause?.code == .pathReset)
            #expect(close?.origin == .path)
        }
    }

    @Test func `A dial whose claim is gone says nothing but a close`() async throws {
        var options = Self.patient
        options.claim = .gone
        options.firstFlight = Bytes("secret")
        try await dial(options) { peer in
            _ = try await peer.acceptUpgrade()
            let received = receive(await peer.readToEnd(), as: .server)
            #expect(received.messages.isEmpty)
            #expect(received.close?.code == 1000)
        } check: { result in
            #expect(error(result)?.code == .superseded)
        }
    }

    @Test func `A first flight is the first message`() async throws {
        var options = Self.patient
        options.firstFlight = Bytes("early")
        try await dial(options) { peer in
            _ = try await peer.acceptUpgrade()
            #expect(receive(await peer.readToEnd(), as: .server).messages == [Message(Bytes("early"))])
        } check: { result in
            #expect(error(result) == nil)
        }
    }

    /// Has a sub-protocol and wraps nothing.
    private struct Unwrapped: StreamMultiplexer {
        let subprotocol = WireNames.muxSubprotocol

        func wrap(_ socket: any Socket, isDialer: Bool, limits: Limits) async -> any Socket {
            Issue.record("the peer has no streams")
            return socket
        }
    }

    @Test func `A service without the sub-protocol gets messages alone`() async throws {
        try await dial(multiplexer: Unwrapped()) { peer in
            let request = try await peer.acceptUpgrade()
            #expect(request.contains("\r\nSec-WebSocket-Protocol: tk-mux.1\r\n"))
            _ = await peer.readToEnd()
        } check: { result in
            let socket = try result.get()
            #expect(socket.info.capabilities == .text)
        }
    }
}
