import Foundation
import NoiseCarrier
import Testing
import TransportHost
import TransportIO
import TransportKit

/// A forward through an end-to-end session, between two hosts that face each other (R62).
@Suite struct SealedForwardTests {
    /// The keys of both ends, in files.
    private struct Keys {
        let folder: String
        let server: StaticPublicKey
        let client: StaticPublicKey

        init(_ folder: String) throws {
            self.folder = folder
            server = try KeyFile.make("\(folder)/server.key")
            client = try KeyFile.make("\(folder)/client.key")
        }
    }

    private func server(_ transport: String, _ keys: Keys, admits peer: StaticPublicKey, target: SocketAddress)
        -> String
    {
        """
        grace: 200ms
        listeners:
          peer:
            url: "wss://127.0.0.1:0"
            transports: [\(transport)]
            tls: { selfSigned: "127.0.0.1", directory: "\(keys.folder)" }
            routes:
              /e2e:
                service: forward
                allow: ["tcp://127.0.0.1:\(target.port)"]
                noise: { key: server.key, peers: ["\(peer)"] }
        """
    }

    private func client(
        _ transport: String, _ keys: Keys, _ bound: HostRunner.Bound, target: SocketAddress, patience: String
    ) throws -> String {
        let endpoint = try #require(bound.listeners["peer"])
        let pin = try #require(bound.pins["peer"])
        return """
            grace: 200ms
            keys: { device: client.key }
            carriers:
              way: { kind: direct, url: "\(endpoint)/e2e", transports: [\(transport)], tls: { pin: "\(pin)" } }
              main: { kind: noise, over: way, peer: "\(keys.server)" }
            forwards:
              - listen: "tcp://127.0.0.1:0"
                carrier: main
                to: "tcp://127.0.0.1:\(target.port)"
                patience: \(patience)
            """
    }

    @Test(arguments: ["quic", "websocket"])
    func `A forward through noise carries what it is given, both ways and to the end`(transport: String) async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let keys = try Keys(folder)
                let target = try await TCPListener.bind(.loopback(), loop: loop)
                let text = server(transport, keys, admits: keys.client, target: target.localAddress)
                let service = try makeGraph(text, loop: loop, folder: folder, allowsAnyPort: true)
                try await withHost(service, loop: loop) { bound in
                    let graph = try makeGraph(
                        try client(transport, keys, bound, target: target.localAddress, patience: "10s"), loop: loop,
                        folder: folder, allowsAnyPort: true)
                    try await withHost(graph, loop: loop) { bound in
                        let port = try #require(bound.forwards.first ?? nil)
                        let near = try await TCPConnection.connect(to: port, loop: loop)
                        async let accepted = target.accept()
                        let payload = Bytes(repeating: 7, count: 3_000_000)
                        async let sending: Void = {
                            try await near.write(payload)
                            try await near.finish()
                        }()
                        let far = try await accepted
                        #expect(try await readAll(far) == payload)
                        try await sending
                        try await far.write(Bytes("answer"))
                        try await far.finish()
                        #expect(try await readAll(near) == Bytes("answer"))
                        await near.close()
                        await far.close()
                    }
                }
            }
        }
    }

    // R133
    @Test func `A stranger's forward gets no session, and its connection is reset`() async throws {
        try await withLoop { loop in
            try await withTemporaryFolder { folder in
                let keys = try Keys(folder)
                let target = try await TCPListener.bind(.loopback(), loop: loop)
                // The server lists itself alone.
                let text = server("quic", keys, admits: keys.server, target: target.localAddress)
                let service = try makeGraph(text, loop: loop, folder: folder, allowsAnyPort: true)
                try await withHost(service, loop: loop) { bound in
                    let graph = try makeGraph(
                        try client("quic", keys, bound, target: target.localAddress, patience: "300ms"), loop: loop,
                        folder: folder, allowsAnyPort: true)
                    try await withHost(graph, loop: loop) { bound in
                        let port = try #require(bound.forwards.first ?? nil)
                        let near = try await TCPConnection.connect(to: port, loop: loop)
                        #expect(await endError(of: near)?.code == .pathReset)
                    }
                }
            }
        }
    }

    // B21, B23
    @Test func `Keys and noise are checked`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let key = try KeyFile.make("\(folder)/a.key")
            let peer = StaticPrivateKey().publicKey
            let secret = StaticPrivateKey().exportText()
            _ = try KeyFile.make("\(folder)/open.key")
            chmod("\(folder)/open.key", 0o644)
            func complaint(_ keys: String, _ noise: String) async throws -> [String]? {
                try await complaints(
                    """
                    \(keys)
                    carriers: { way: { kind: direct, url: "wss://a" }, twice: { kind: noise, over: way, peer: "\(peer)" },
                      main: { kind: noise, \(noise) } }
                    forwards: [{ listen: "tcp://127.0.0.1:1", carrier: main, to: "tcp://b:1" }]
                    """, folder: folder)
            }
            let good = "over: way, peer: \"\(peer)\""
            let device = "keys: { device: a.key }"
            #expect(try await complaint(device, good) == nil)
            #expect(
                try await complaint(device, "over: wy, peer: \"\(peer)\"") == [
                    "host.yaml:3:30: carriers.main.over: there is no carrier 'wy'; did you mean 'way'? known are way, twice and main"
                ])
            #expect(
                try await complaint(device, "over: twice, peer: \"\(peer)\"") == [
                    "host.yaml:3:30: carriers.main.over: names 'twice', which is sealed end to end already; once is enough"
                ])
            #expect(
                try await complaint(device, "over: way, peer: \"\(key)\"") == [
                    "host.yaml:3:41: carriers.main.peer: is this device's own key; the peer's is needed"
                ])
            let wrong = try #require(try await complaint(device, "over: way, peer: \"\(secret)x\""))
            #expect(wrong.count == 1 && wrong[0].contains("carriers.main.peer: must be a public key as"))
            #expect(!wrong[0].contains(secret))
            #expect(
                try await complaint("keys: { device: open.key }", good)?.map { $0.prefix(60) } == [
                    "host.yaml:1:17: keys.device: the key \(folder)/open.key is open to others".prefix(60)
                ])
            #expect(
                try await complaint("keys: { devise: a.key }", good)?.map { $0.prefix(48) } == [
                    "host.yaml:1:7: keys: 'device' is missing; name t".prefix(48),
                    "host.yaml:1:9: keys.devise: unknown key; did you mean".prefix(48),
                ])
            let none = try #require(try await complaint("log: {}", good))
            #expect(none.count == 2 && none.allSatisfy { $0.contains("needs the key of this machine; make one with") })
        }
    }

    // B21
    @Test(arguments: [
        ("noise: {}", "'peers' is missing"),
        ("noise: { peers: [] }", "peers: names nobody; the public key of a peer is needed"),
        ("noise: { peers: [x] }", "peers[0]: must be a public key as"),
        ("noise: { peers: PEER }", "needs the key of this machine"),
        ("noise: { peers: PEER, key: none.key }", "key: the file FOLDER/none.key does not exist"),
        ("noise: { peers: PEER, key: a.key, peer: 5 }", "peer: unknown key; did you mean 'peers'?"),
        ("noise: 5", "must be a mapping"), ("nois: {}", "nois: unknown key; did you mean 'noise'?"),
    ])
    func `A sealed route is checked`(option: String, expected: String) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let key = try KeyFile.make("\(folder)/a.key")
            let found = try await complaints(
                """
                listeners:
                  a: { url: "ws://127.0.0.1:1", routes: { /: { service: echo, \(option.replacing("PEER", with: "\"\(key)\"")) } } }
                """, folder: folder)
            #expect(found?.count == 1, "\(found ?? [])")
            #expect(found?[0].contains(expected.replacing("FOLDER", with: folder)) == true, "\(found ?? [])")
        }
    }
}
