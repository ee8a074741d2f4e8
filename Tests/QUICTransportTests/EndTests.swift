import Testing
import TransportKit
import TransportKitTesting

@testable import QUICTransport

/// How connections end, in simulated time.
@Suite struct EndTests {
    // R11, R120
    @Test func `A close code travels from either end, and what never travels reads as none`() async throws {
        let cases: [(CloseCode, CloseCode)] = [
            (.normal, .normal), (.refused, .refused), (.tooSlow, .tooSlow), (.pathLost, .noneGiven),
            (.noneGiven, .noneGiven), (CloseCode(rawValue: .max), CloseCode(rawValue: Varint.max)),
        ]
        for (code, told) in cases {
            for fromClient in [true, false] {
                let pair = try EnginePair()
                try pair.open()
                let server = try #require(pair.server)
                let (from, to) = fromClient ? (pair.client, server) : (server, pair.client)
                from.close(code, reason: "because", pair.now)
                try pair.run(for: .seconds(2))
                #expect(from.end?.code == code)
                #expect(to.end?.code == told)
                #expect(to.end?.origin == .remote)
                if told != .noneGiven { #expect(to.end?.reason == "because") }
            }
        }
    }

    // B13
    @Test(arguments: [UInt64(1), 2, 3, 4, 5])
    func `What was sent before a close arrives over a bad link, and then the close`(seed: UInt64) async throws {
        let link = EnginePair.Link(delay: .milliseconds(20), jitter: .milliseconds(20), lossPercent: 25)
        var limits = Limits()
        limits.linger = .seconds(60)
        let pair = try EnginePair(link: link, seed: seed, limits: limits)
        try pair.open()
        let server = try #require(pair.server)
        let messages = (0..<50).map { Message(Bytes(repeating: UInt8($0), count: 5000)) }
        for message in messages { pair.client.trySend(message) }
        pair.client.close(.normal, reason: "all sent", pair.now)
        try pair.run(for: .seconds(120)) { pair.client.end != nil }
        #expect(await server.takeMessages() == messages, "seed \(seed)")
        #expect(pair.client.end?.code == .normal)
    }

    @Test func `A close does not wait longer than its linger time`() async throws {
        var limits = Limits()
        limits.linger = .seconds(3)
        let pair = try EnginePair(limits: limits)
        try pair.open()
        pair.link.isCut = true
        pair.client.trySend(Message(Bytes("never arrives")))
        pair.client.close(.normal, reason: "", pair.now)
        let begun = pair.now
        try pair.run(for: .seconds(60)) { pair.client.end != nil }
        #expect(pair.now - begun >= .seconds(3) && pair.now - begun < .seconds(4))
    }

    // RFC 9000 §10.2
    @Test func `After a close both ends forget the connection`() async throws {
        let pair = try EnginePair()
        try pair.open()
        pair.client.close(.normal, reason: "", pair.now)
        try pair.run(for: .seconds(10))
        #expect(pair.client.isGone)
        #expect(pair.server?.isGone == true)
    }

    @Test func `A silent path ends as idle, and a keepalive holds it`() async throws {
        let quiet = try EnginePair(keepalive: Keepalive(interval: nil, idleTimeout: .seconds(30)))
        try quiet.open()
        try quiet.run(for: .seconds(40))
        #expect(quiet.client.end?.cause?.code == .idle)
        #expect(quiet.client.end?.code == .pathLost)
        // R10
        let kept = try EnginePair(keepalive: Keepalive(interval: .seconds(15), idleTimeout: .seconds(30)))
        try kept.open()
        try kept.run(for: .seconds(300))
        #expect(kept.client.end == nil)
        kept.link.isCut = true
        try kept.run(for: .seconds(60))
        #expect(kept.client.end?.cause?.code == .idle)
    }

    @Test func `Nobody there is found out within the handshake limit`() throws {
        var limits = Limits()
        limits.handshakeTimeout = .seconds(4)
        let pair = try EnginePair(link: EnginePair.Link(isCut: true), limits: limits)
        let begun = pair.now
        try pair.run(for: .seconds(60)) { pair.client.end != nil }
        #expect(pair.client.end?.cause?.code == .timedOut)
        #expect(pair.now - begun < .seconds(5))
    }

    // B07
    @Test func `A peer that lost its memory ends the connection with a stateless reset`() async throws {
        let pair = try EnginePair()
        try pair.open()
        // The first is the client's own guess, the second the one that both ends use.
        let ids = try #require(pair.server?.sink.issuedIDs)
        try #require(ids.count >= 2)
        pair.dropServer()
        // What a listener with the same key answers.
        let reset = try #require(pair.resetSecret.reset(for: ids[1], answering: 100))
        reset.withUnsafeBytes { pair.send($0, toServer: false) }
        try pair.run(for: .seconds(1))
        #expect(pair.client.end?.cause?.code == .forgotten)
        #expect(pair.client.end?.origin == .path)
    }

    @Test func `No common protocol fails the handshake with its own error`() throws {
        let pair = try EnginePair(serverProtocols: ["other/1"])
        try pair.run(for: .seconds(5)) { pair.client.end != nil }
        #expect(pair.client.end?.cause?.code == .noCommonProtocol)
    }

    // R201
    @Test func `A certificate that is not the pinned one ends with the same words as on any transport`() throws {
        let pin = try #require(PublicKeyHash(Bytes(repeating: 7, count: 32)))
        let pair = try EnginePair(security: ClientSecurity(pins: [pin]))
        try pair.run(for: .seconds(5)) { pair.client.end != nil }
        #expect(pair.client.end?.cause?.code == .pinMismatch)
        try pair.run(for: .seconds(5))
        #expect(pair.server?.end?.code == .pathLost)
    }

    /// Names the target the moment the handshake is done, as a dial does.
    private final class EagerDialer: QUICConnectionOwner {
        func connectionWantsToSend(_ connection: QUICConnection) {}
        func connectionHandshakeDone(_ connection: QUICConnection) {
            connection.sendTarget(.root, firstFlight: nil)
        }
        func connection(_ connection: QUICConnection, asksFor target: Target) {}
        func connectionEnded(_ connection: QUICConnection, with close: Close) {}
    }

    // §3: before, a target that left together with the end of the handshake made the library forget the client's wider
    // window, and the answer stopped for ever at the old one.
    @Test(arguments: 0..<20) func `The longest answer comes whole, however the handshake's packets come`(
        seed: UInt64
    ) async throws {
        let pair = try EnginePair(link: EnginePair.Link(jitter: .milliseconds(15)), seed: seed)
        let dialer = EagerDialer()
        pair.client.owner = dialer
        #expect(try pair.run { !pair.seen.targets.isEmpty })
        let answer = Message(Bytes(repeating: 7, count: Limits.defaultMaxMessageBytes))
        #expect(pair.server?.trySend(answer) == true)
        try pair.run(for: .seconds(20))
        #expect(await pair.client.takeMessages() == [answer])
    }
}
