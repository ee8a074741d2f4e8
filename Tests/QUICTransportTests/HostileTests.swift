import Testing
import TransportKit
import TransportKitTesting

@testable import QUICTransport

/// What a peer may do wrong.
@Suite struct HostileTests {
    /// A connection whose client has said nothing yet.
    private func connected() throws -> (EnginePair, QUICConnection) {
        let pair = try EnginePair()
        try pair.run { pair.client.isEstablished && pair.server?.isEstablished == true }
        return (pair, try #require(pair.server))
    }

    private func say(_ bytes: Bytes, _ pair: EnginePair) throws {
        pair.client.control?.outbound.append(bytes)
        try pair.run(for: .seconds(2))
    }

    private func varint(_ value: UInt64, _ tail: Bytes = Bytes()) -> Bytes {
        var bytes = Bytes()
        Varint.append(value, to: &bytes)
        bytes.append(contentsOf: tail)
        return bytes
    }

    // RFC 9001 §6. The library would end the process.
    @Test(arguments: [true, false], [1, 2, 5])
    func `A TLS KeyUpdate is refused with unexpected_message`(fromClient: Bool, piece: Int) throws {
        let pair = try EnginePair()
        try pair.open()
        let server = try #require(pair.server)
        let (from, to) = fromClient ? (pair.client, server) : (server, pair.client)
        var rest: Bytes = [24, 0, 0, 1, 1]
        while !rest.isEmpty {
            _ = from.library.submitCrypto(rest.takeFirst(min(piece, rest.count)))
            try pair.run(for: .milliseconds(100))
        }
        try pair.run(for: .seconds(1))
        #expect(to.end?.code == .pathLost)
        #expect(to.end?.cause?.number == 10)
        // The one that sent it is told CRYPTO_ERROR 0x10a.
        #expect(from.end?.cause?.number == 10)
    }

    @Test func `A KeyUpdate behind the half of a ticket is refused`() throws {
        let pair = try EnginePair()
        try pair.open()
        let server = try #require(pair.server)
        // A message that a client may get, then one that it may not, cut in the middle of the first.
        let ticket: Bytes = [4, 0, 0, 2, 9, 9]
        _ = server.library.submitCrypto(ticket.prefix(5))
        try pair.run(for: .milliseconds(100))
        _ = server.library.submitCrypto([9, 24, 0, 0, 1, 0])
        try pair.run(for: .seconds(1))
        #expect(pair.client.end?.code == .pathLost)
    }

    // R6
    @Test(arguments: [UInt64(1) << 20 + 1, 1 << 40, Varint.max])
    func `A message of an absurd length ends the session with 1009 and keeps nothing`(length: UInt64) throws {
        let (pair, server) = try connected()
        try say(varint(5, Bytes("/here")), pair)
        try say(varint(length, Bytes(repeating: 0, count: 500)), pair)
        #expect(server.end?.code == .tooBig)
        #expect(pair.client.end?.code == .tooBig)
        #expect(pair.client.end?.origin == .remote)
    }

    // R5
    @Test(
        arguments: [
            [0], [0x40, 0x00], [0x50, 0x01], [2, 0x2f, 0xff], [1, 0x61], [3, 0x2f, 0x20, 0x2f],
            [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        ] as [[UInt8]])
    func `A bad target ends the session with 4400`(bytes: [UInt8]) throws {
        let (pair, server) = try connected()
        try say(Bytes(bytes), pair)
        #expect(pair.seen.targets.isEmpty)
        #expect(server.end?.code == .badTarget)
        #expect(pair.client.end?.code == .badTarget)
    }

    @Test func `A target that stops half way is not acted on`() throws {
        let (pair, server) = try connected()
        try say(varint(100, Bytes("/half")), pair)
        #expect(pair.seen.targets.isEmpty)
        #expect(server.end == nil)
    }

    @Test func `The end of the control stream ends the session`() throws {
        let (pair, server) = try connected()
        try say(varint(2, Bytes("/x")), pair)
        pair.client.control?.outbound.isFinishing = true
        try pair.run(for: .seconds(2))
        #expect(server.end?.code == .protocolError)
        #expect(pair.seen.targets.map(\.path) == ["/x"])
    }

    @Test func `A unidirectional stream of an unknown kind is stopped and ends nothing`() async throws {
        let (pair, server) = try connected()
        try say(varint(2, Bytes("/x")), pair)
        let opened = pair.client.library.openStream(bidirectional: false)
        let id = try #require(opened)
        let stream = StreamState(id: id, isLocal: true, content: .none)
        stream.outbound.append(varint(99, Bytes(repeating: 1, count: 100_000)))
        pair.client.sink.streams[id] = stream
        pair.client.enqueue(stream)
        try pair.run(for: .seconds(2))
        #expect(server.end == nil && pair.client.end == nil)
        #expect(await server.takeMessages().isEmpty)
        pair.client.trySend(Message(Bytes("still here")))
        try pair.run(for: .seconds(1))
        #expect(await server.takeMessages().map(\.payload) == [Bytes("still here")])
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `Garbage between the packets changes nothing`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let pair = try EnginePair()
        func throwGarbage() {
            for _ in 0..<50 {
                let count = Int.random(in: 0...1500, using: &random)
                var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                // Some of it looks like QUIC.
                if count > 10, Bool.random(using: &random) {
                    bytes.replaceSubrange(0..<6, with: [0xc0 | bytes[0] & 0x3f, 0, 0, 0, 1, 8])
                }
                for toServer in [true, false] { bytes.withUnsafeBytes { pair.send($0, toServer: toServer) } }
            }
        }
        // The listener makes a connection for anything that looks like a first packet; here there is one only.
        try pair.run { pair.server != nil }
        throwGarbage()
        try pair.open()
        let server = try #require(pair.server)
        for number in 0..<20 {
            throwGarbage()
            pair.client.trySend(Message(Bytes("\(number)")))
            try pair.run(for: .milliseconds(100))
        }
        #expect(await server.takeMessages().map(\.payload) == (0..<20).map { Bytes("\($0)") }, "seed \(seed)")
        #expect(pair.client.end == nil, "seed \(seed)")
        #expect(server.end == nil, "seed \(seed)")
    }

    @Test func `Real packets that were changed on the way change nothing`() async throws {
        let pair = try EnginePair()
        try pair.open()
        pair.flipsBits = true
        let server = try #require(pair.server)
        for number in 0..<20 {
            pair.client.trySend(Message(Bytes("\(number)")))
            try pair.run(for: .milliseconds(500))
        }
        try pair.run(for: .seconds(5))
        #expect(await server.takeMessages().map(\.payload) == (0..<20).map { Bytes("\($0)") })
    }
}
