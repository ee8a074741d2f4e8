import NoiseCarrier
import RelayCarrier
import RelayService
import Testing
import TransportIO
import TransportKit
import WebSocketTransport

/// The relay's wire with `Peers/relay_peer.py` at any of its three ends.
@Suite(.enabled(if: Peers.areExpected, "bin/setup test installs the Python peers"))
struct RelayInteropTests {
    private static let secret = "8f0e1d2c3b4a59687786958493a2b1c0"
    private static let messages = 40

    /// A loop, and what of ours runs on it.
    private struct World: Sendable {
        let loop: EventLoop
        let box = StaticPrivateKey()
        var transport: WebSocketTransport { WebSocketTransport(loop: loop) }

        static func with(_ body: (World) async throws -> Void) async throws {
            let loop = try EventLoop(name: "relay interop")
            do { try await body(World(loop: loop)) } catch {
                await loop.shutdown()
                throw error
            }
            await loop.shutdown()
        }

        static func url(_ port: UInt16) -> ServiceURL {
            ServiceURL(Endpoint(scheme: .ws, host: .ipv4(.loopback), port: port))
        }

        /// Runs our relay, and hands its port to `body`.
        func withRelay(_ body: (UInt16) async throws -> Void) async throws {
            let listener = try await transport.listen(Self.url(0).endpoint, options: ListenOptions())
            let service = RelayService(executor: loop, time: loop)
            let serving = Task(executorPreference: loop) {
                await withDiscardingTaskGroup { group in
                    while let socket = try? await listener.accept() {
                        group.addTask {
                            await service.serve(socket, target: socket.info.target)
                            await socket.close()
                        }
                    }
                }
            }
            defer { serving.cancel() }
            try await body(listener.endpoint.port)
            await listener.close()
        }

        /// Runs our box beside `body`.
        func withBox(at port: UInt16, _ body: () async throws -> Void) async throws {
            let secret = try #require(RelaySecret(RelayInteropTests.secret))
            let uplink = try RelayUplink(
                url: Self.url(port), secret: secret, key: box, transport: transport, executor: loop, time: loop
            ) { _, _ in true }
            let running = Task(executorPreference: loop) {
                await uplink.run { socket, _ in
                    while let batch = try? await socket.receive() { try? await socket.send(batch) }
                }
            }
            do { try await body() } catch {
                running.cancel()
                throw error
            }
            running.cancel()
            await running.value
        }

        /// Talks to the box of that key as our client.
        func talk(to key: StaticPublicKey, at port: UInt16) async throws {
            let secret = try #require(RelaySecret(RelayInteropTests.secret))
            let room = try RelayCarrier(
                url: Self.url(port), secret: secret, transport: transport, executor: loop, time: loop)
            let carrier = NoiseCarrier(over: room, key: StaticPrivateKey(), peer: key, executor: loop, time: loop)
            let socket = try await carrier.open()
            for index in 0..<RelayInteropTests.messages {
                let text = Bytes(repeating: UInt8(index), count: index * 1631 % socket.info.maxMessageBytes)
                try await socket.send(Message(text))
                #expect(try await socket.receive().map(\.payload) == [text])
            }
            #expect(room.roundTrip != nil)
            await carrier.close()
        }

        /// Runs the Python client against the box of that key.
        func python(to key: StaticPublicKey, at port: UInt16) async throws {
            let hex = key.bytes.map { String($0, radix: 16) }.map { $0.count == 1 ? "0" + $0 : $0 }.joined()
            try await Peer.withPython("relay_peer.py", ["app", "--box", hex] + words(port)) { try await $0.finish() }
        }

        /// Runs the Python box beside `body`, which gets its key.
        func withPythonBox(at port: UInt16, _ body: (StaticPublicKey) async throws -> Void) async throws {
            try await Peer.withPython("relay_peer.py", ["box"] + words(port)) { peer in
                try await body(try #require(StaticPublicKey(try await peer.value("key"))))
                try await peer.finish()
            }
        }

        private func words(_ port: UInt16) -> [String] {
            let messages = "\(RelayInteropTests.messages)"
            return ["--port", "\(port)", "--secret", RelayInteropTests.secret, "--messages", messages]
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `Python's client and box meet on our relay`() async throws {
        try await World.with { world in
            try await world.withRelay { port in
                try await world.withPythonBox(at: port) { try await world.python(to: $0, at: port) }
            }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `Our client reaches Python's box on our relay, and Python's client ours`() async throws {
        try await World.with { world in
            try await world.withRelay { port in
                try await world.withPythonBox(at: port) { try await world.talk(to: $0, at: port) }
                try await world.withBox(at: port) { try await world.python(to: world.box.publicKey, at: port) }
            }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `All of them meet on Python's relay`() async throws {
        try await World.with { world in
            try await Peer.withPython("relay_peer.py", ["relay"]) { relay in
                let port = try await relay.port()
                try await world.withBox(at: port) {
                    try await world.talk(to: world.box.publicKey, at: port)
                    try await world.python(to: world.box.publicKey, at: port)
                }
                #expect(await relay.said("left box"))
                try await world.withPythonBox(at: port) { try await world.talk(to: $0, at: port) }
                #expect(await relay.said("claim"))
                #expect(!relay.text.contains("wrong epoch"))
            }
        }
    }

    // R104, R105: a relay whose clock is an hour ahead.
    @Test(.timeLimit(.minutes(1)))
    func `Our ends correct their epoch by what Python's relay says`() async throws {
        try await World.with { world in
            try await Peer.withPython("relay_peer.py", ["relay", "--epochs", "1"]) { relay in
                let port = try await relay.port()
                try await world.withBox(at: port) { try await world.talk(to: world.box.publicKey, at: port) }
                #expect(relay.text.contains("wrong epoch -1"))
            }
        }
    }
}
