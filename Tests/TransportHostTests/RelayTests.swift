import Foundation
import NoiseCarrier
import RelayCarrier
import Testing
import TransportIO
import TransportKit
import WebSocketTransport

@testable import TransportHost

/// A relay that a config file names, and a carrier through it, on real sockets.
@Suite(.timeLimit(.minutes(1))) struct RelayTests {
    private static let relay = """
        listeners:
          relay:
            url: "ws://127.0.0.1:0"
            transports: [websocket]
            routes:
              /: { service: relay, trustProxy: true, streamsPerRoom: 1 }
              /echo: { service: echo }
        """
    private static let secret = "000102030405060708090a0b0c0d0e0f"

    @Test func `A client reaches a box through the relay of a file`() async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                try write(Self.secret + "\n", to: folder + "/room.secret")
                try #require(chmod600(folder + "/room.secret"))
                let lines = RecordingLog()
                let log = Log(level: .debug, sink: lines)
                let graph = try makeGraph(Self.relay, loop: loop, allowsAnyPort: true, log: log)
                try await withHost(graph, loop: loop) { bound in
                    let url = ServiceURL(try #require(bound.listeners["relay"]))
                    let box = StaticPrivateKey()
                    let uplink = try RelayUplink(
                        url: url, secret: try #require(RelaySecret(Self.secret)), key: box,
                        transport: WebSocketTransport(loop: loop), executor: loop, time: loop
                    ) { _, _ in true }
                    let running = Task(executorPreference: loop) {
                        await uplink.run { socket, _ in
                            while let batch = try? await socket.receive() { try? await socket.send(batch) }
                        }
                    }
                    let client = try makeGraph(
                        """
                        carriers: { room: { kind: relay, url: "\(url.endpoint)", secretFile: room.secret } }
                        forwards: []
                        listeners: { other: { url: "ws://127.0.0.1:0", routes: { /echo: { service: echo } } } }
                        """, loop: loop, folder: folder, allowsAnyPort: true)
                    let room = try #require(client.carriers["room"])
                    let carrier = NoiseCarrier(
                        over: room, key: StaticPrivateKey(), peer: box.publicKey, executor: loop, time: loop)
                    let socket = try await carrier.open()
                    for payload in [Bytes("hello"), Bytes(repeating: 7, count: 65_000)] {
                        try await socket.send(Message(payload))
                        #expect(try await socket.receive().map(\.payload) == [payload])
                    }
                    // An exact route comes before the one above it.
                    let echo = try await WebSocketTransport(loop: loop).dial(
                        ServiceURL(url.endpoint, target: try #require(Target("/echo"))), options: DialOptions())
                    try await echo.send(.text("mirror"))
                    #expect(try await echo.receive().first?.payload == Bytes("mirror"))
                    await echo.close()
                    await carrier.close()
                    running.cancel()
                    await running.value
                }
                // R147
                #expect(!lines.lines.contains { $0.message.contains("/r/") })
                #expect(lines.lines.contains { $0.subsystem == "relay" && $0.message.contains("sockets") })
            }
        }
    }

    // R129: the close code comes after the upgrade, so that the peer learns the reason.
    @Test func `What the relay refuses it tells after the upgrade`() async throws {
        try await withLoop { loop in
            let graph = try makeGraph(Self.relay, loop: loop, allowsAnyPort: true)
            try await withHost(graph, loop: loop) { bound in
                let endpoint = try #require(bound.listeners["relay"])
                let transport = WebSocketTransport(loop: loop)
                let handle = String(repeating: "a", count: 32)
                for (path, code) in [
                    ("/", CloseCode.badTarget), ("/x/1", .badTarget), ("/r/5/\(handle)/app", .displaced),
                ] {
                    let url = ServiceURL(endpoint, target: try #require(Target(path)))
                    let socket = try await transport.dial(url, options: DialOptions())
                    let close = await #expect(throws: Close.self) { try await socket.receive() }
                    #expect(close?.code == code)
                    #expect(close?.origin == .remote)
                    #expect(close?.reason.isEmpty == false)
                }
            }
        }
    }

    @Test func `Errors in the options name their place`() async throws {
        let text = """
            carriers:
              a: { kind: relay, url: "wss://relay.example/path", secretFile: nothing }
              b: { kind: relay, url: "wss://relay.example", secretFile: nothing, infos: x }
            listeners:
              l: { url: "ws://127.0.0.1:8080", routes: { /: { service: relay, socket: 3 } } }
            """
        let found = try #require(try await complaints(text))
        #expect(found.count == 3)
        #expect(found.contains { $0.contains("carriers.a.secretFile") && $0.contains("nothing") })
        #expect(found.contains { $0.contains("carriers.b.infos: unknown key; did you mean 'info'?") })
        #expect(found.contains { $0.contains("did you mean 'sockets'?") })
    }

    private func chmod600(_ path: String) -> Bool { chmod(path, 0o600) == 0 }
}
