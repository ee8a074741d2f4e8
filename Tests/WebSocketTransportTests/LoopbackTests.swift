import Foundation
import Testing
import TransportIO
import TransportKit
import TransportTLS
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

    // B05
    @Test func `A question to the path is answered by the peer, and at once where the socket has ended`() async throws {
        try await withPair { near, far in
            for socket in [near, far] {
                let asked = try #require(socket as? any PathAwareSocket)
                #expect(await asked.checkPath(within: .seconds(60)))
                #expect(!asked.hasMigrated)
            }
            await near.close()
            #expect(await !(try #require(near as? any PathAwareSocket)).checkPath(within: .seconds(60)))
        }
    }

    enum Standing: CaseIterable { case waiting, closing, dropped }

    @Test(.timeLimit(.minutes(1)), arguments: Standing.allCases)
    func `A socket whose loop is shut down ends, and keeps nothing in memory`(standing: Standing) async throws {
        weak var left: EventLoop?
        do {
            let loops = try (EventLoop(name: "near"), EventLoop(name: "far"))
            left = loops.0
            let here = Endpoint(scheme: .ws, host: .ipv4(.loopback), port: 0)
            let listener = try await WebSocketTransport(loop: loops.1).listen(here, options: ListenOptions())
            let dialer = WebSocketTransport(loop: loops.0)
            var near: (any Socket)? = try await dialer.dial(ServiceURL(listener.endpoint), options: DialOptions())
            // The far end answers no close before this one's loop is gone.
            let isGone = DispatchSemaphore(value: 0)
            loops.1.execute { isGone.wait() }
            switch standing {
            case .waiting:
                let socket = try #require(near)
                let waiting = Task { try await socket.receive() }
                await loops.0.shutdown()
                await #expect(throws: Close.pathLost(TransportError(.cancelled, "the event loop was shut down"))) {
                    try await waiting.value
                }
            case .closing:
                let socket = try #require(near)
                let closing = Task { await socket.close(.normal, reason: "") }
                await loops.0.shutdown()
                _ = await closing.value
            case .dropped:
                near = nil
                await loops.0.shutdown()
            }
            isGone.signal()
            await loops.1.shutdown()
        }
        // The last to hold it may be a thread that is just ending.
        while left != nil { try await Task.sleep(for: .milliseconds(5)) }
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

    // MARK: - TLS

    private func withTLS(
        _ security: (CertificateFiles) -> ClientSecurity,
        _ body: (WebSocketTransport, ServiceURL, DialOptions, any Listener) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "websocket-loopback-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1"], directory: folder.path)
        let loop = try EventLoop(name: "test")
        let transport = WebSocketTransport(loop: loop)
        var listening = ListenOptions()
        listening.security = ServerSecurity(identity: files)
        let here = Endpoint(scheme: .wss, host: .ipv4(.loopback), port: 0)
        let listener = try await transport.listen(here, options: listening)
        var dialling = DialOptions()
        dialling.security = security(files)
        try await body(transport, ServiceURL(listener.endpoint), dialling, listener)
        await listener.close()
        await loop.shutdown()
    }

    @Test func `A second dial resumes TLS`() async throws {
        // R26
        try await withTLS {
            ClientSecurity(trust: .file($0.certificate))
        } _: { transport, url, options, listener in
            for isFirst in [true, false] {
                let near = try await transport.dial(url, options: options)
                let far = try await listener.accept()
                #expect(near.info.resumed == !isFirst)
                #expect(far.info.resumed == !isFirst)
                #expect(near.info.protection == .transport)
                #expect(near.info.peerKey != nil)
                try await near.send(Message(Bytes("hello")))
                #expect(try await far.receive().map(\.payload) == [Bytes("hello")])
                await near.close()
            }
        }
    }

    @Test func `A certificate that is not trusted is named, and the listener goes on`() async throws {
        try await withTLS { _ in
            ClientSecurity(trust: .system)
        } _: { transport, url, options, listener in
            let error = await #expect(throws: TransportError.self) { try await transport.dial(url, options: options) }
            #expect(error?.code == .certificateUnknownIssuer)
            var pinned = options
            pinned.security = ClientSecurity(pins: [try #require(PublicKeyHash(Bytes(repeating: 7, count: 32)))])
            let other = await #expect(throws: TransportError.self) { try await transport.dial(url, options: pinned) }
            #expect(other?.code == .pinMismatch)
            let plain = Endpoint(scheme: .ws, host: url.endpoint.host, port: url.endpoint.port)
            let third = await #expect(throws: TransportError.self) {
                try await transport.dial(ServiceURL(plain), options: DialOptions())
            }
            #expect(third?.code == .pathReset || third?.code == .protocolViolation)
        }
    }
}
