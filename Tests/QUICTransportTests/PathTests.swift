import Testing
import TransportKit
import TransportKitTesting

@testable import QUICTransport

/// Paths that change, and paths that die, in simulated time.
@Suite struct PathTests {
    private static let roundTrip = Duration.milliseconds(40)

    private func makePair(keepalive: Keepalive = Keepalive(interval: nil)) throws -> EnginePair {
        let pair = try EnginePair(link: EnginePair.Link(delay: Self.roundTrip / 2), keepalive: keepalive)
        try pair.open()
        // The library moves nothing before the handshake is confirmed and the peer has given ids.
        try pair.run(for: .seconds(1))
        return pair
    }

    private func ask(_ pair: EnginePair) -> PathQuestion {
        let question = PathQuestion()
        pair.client.ask(question, pair.now)
        return question
    }

    /// What arrives next, within a second.
    private func arrivals(at connection: QUICConnection, in pair: EnginePair) async throws -> [Bytes] {
        for _ in 0..<200 {
            try pair.run(for: .milliseconds(5))
            let messages = await connection.takeMessages()
            if !messages.isEmpty { return messages.map(\.payload) }
        }
        return []
    }

    // R19, R211
    @Test func `A client whose machine has another address goes on there after one round trip`() async throws {
        let pair = try makePair()
        let server = try #require(pair.server)
        #expect(pair.client.trySend(Message(Bytes("before"))))
        try pair.run(for: .seconds(1))
        pair.machineAddress = .loopback(port: 2222)
        let asked = pair.now
        let question = ask(pair)
        #expect(pair.client.trySend(Message(Bytes("after"))))
        #expect(try pair.run(for: .seconds(5)) { question.answer != nil })
        #expect(question.answer == true)
        #expect(pair.now - asked <= Self.roundTrip + .milliseconds(1))
        #expect(pair.client.migration.hasHappened)
        #expect(await server.takeMessages().map { String(validating: $0.payload) } == ["before", "after"])
        #expect(server.trySend(Message(Bytes("answer"))))
        try pair.run(for: .seconds(1))
        #expect(await pair.client.takeMessages().map { String(validating: $0.payload) } == ["answer"])
        #expect(pair.client.end == nil && server.end == nil)
    }

    // R19, R154: before the move, what is said from the old address is lost.
    @Test func `No tick is lost, and none late, while the client moves again and again`() async throws {
        let pair = try makePair()
        let server = try #require(pair.server)
        var arrivals: [Instant] = []
        for tick in 0..<200 {
            if tick % 20 == 10 {
                pair.machineAddress = .loopback(port: UInt16(2000 + tick))
                _ = ask(pair)
            }
            if tick < 195 { #expect(server.trySend(Message([UInt8(tick)]))) }
            for _ in 0..<20 {
                try pair.run(for: .milliseconds(5))
                for message in await pair.client.takeMessages() {
                    #expect(message.payload == [UInt8(arrivals.count)])
                    arrivals.append(pair.now)
                }
            }
        }
        #expect(arrivals.count == 195)
        let gap = zip(arrivals, arrivals.dropFirst()).map { $1 - $0 }.max() ?? .zero
        #expect(gap <= .milliseconds(200), "the widest gap was \(gap)")
    }

    // R20, R123, B32
    @Test func `Fifty rebinds in a row, by a NAT of which the client knows nothing, cost nothing`() async throws {
        let pair = try makePair()
        let server = try #require(pair.server)
        for round in 0..<50 {
            pair.outsideAddress = .loopback(port: UInt16(10_000 + round))
            let begun = pair.now
            #expect(pair.client.trySend(Message([UInt8(round)])))
            #expect(try await arrivals(at: server, in: pair) == [[UInt8(round)]], "round \(round)")
            #expect(server.trySend(Message([UInt8(round)])))
            #expect(try await arrivals(at: pair.client, in: pair) == [[UInt8(round)]], "round \(round)")
            #expect(pair.now - begun < .seconds(1))
        }
        #expect(pair.client.end == nil && server.end == nil)
        #expect(!pair.client.migration.hasHappened)
    }

    // R20, B32
    @Test(arguments: [UInt64(1), 2, 3])
    func `A NAT that rebinds at any moment of a transfer in both directions stalls neither`(seed: UInt64) async throws {
        let pair = try makePair(keepalive: Keepalive())
        let server = try #require(pair.server)
        var random = SeededGenerator(seed: seed)
        let block = Bytes(Array(repeating: UInt8(seed), count: 2048))
        var (lastUp, lastDown, worst) = (pair.now, pair.now, Duration.zero)
        for round in 0..<10 {
            pair.rebind(to: .loopback(port: UInt16(20_000 + round)))
            for _ in 0..<Int.random(in: 60...140, using: &random) {
                #expect(pair.client.trySend(Message(block)))
                #expect(server.trySend(Message(block)))
                try pair.run(for: .milliseconds(5))
                worst = max(worst, pair.now - lastUp, pair.now - lastDown)
                if await !server.takeMessages().isEmpty { lastUp = pair.now }
                if await !pair.client.takeMessages().isEmpty { lastDown = pair.now }
            }
        }
        #expect(worst < .milliseconds(300))
        #expect(pair.client.end == nil && server.end == nil)
    }

    // Before, the library blamed the client for one id too many, and the listening end broke the connection off.
    @Test func `A NAT that rebinds just before the client moves does not confuse the listening end`() async throws {
        let pair = try makePair()
        let server = try #require(pair.server)
        for round in 0..<10 {
            let base = UInt16(20_000 + 10 * round)
            // The route has changed already, and answers find no way back.
            pair.outsideAddress = .loopback(port: base)
            #expect(pair.client.trySend(Message([1])))
            try pair.run(for: .milliseconds(25))
            pair.machineAddress = .loopback(port: base + 1)
            pair.outsideAddress = .loopback(port: base + 2)
            let question = ask(pair)
            #expect(pair.client.trySend(Message([2])))
            #expect(try pair.run(for: .seconds(1)) { question.answer != nil })
            #expect(question.answer == true, "round \(round)")
            try pair.run(for: .seconds(1))
            #expect(await server.takeMessages().map(\.payload) == [[1], [2]])
            #expect(server.trySend(Message([3])))
            try pair.run(for: .seconds(4))
            #expect(await pair.client.takeMessages().map(\.payload) == [[3]])
            #expect(pair.client.end == nil && server.end == nil)
        }
    }

    @Test func `A path that answers says so within a round trip, and the keepalive is what it was`() throws {
        let pair = try makePair(keepalive: Keepalive(interval: .seconds(15), idleTimeout: .seconds(30)))
        // Past the question that follows the use of the path.
        try pair.run(for: .seconds(4))
        let question = ask(pair)
        #expect(try pair.run(for: .seconds(1)) { question.answer != nil })
        #expect(question.answer == true)
        // What acknowledges the answer may be on its way still.
        try pair.run(for: .seconds(1))
        let delivered = pair.delivered
        try pair.run(for: .seconds(10))
        #expect(pair.delivered == delivered)
        try pair.run(for: .seconds(6))
        #expect(pair.delivered > delivered)
    }

    /// How far a client's use of its path had come when that died, and how soon it notices.
    enum Use: CaseIterable {
        case unanswered
        case acknowledged
        case over

        var limits: ClosedRange<Duration> {
            switch self {
            case .unanswered: .seconds(4)...(.seconds(5) + .milliseconds(100))
            // Asked after 3 s.
            case .acknowledged: .seconds(7)...(.seconds(8) + .milliseconds(100))
            // Asked after 15 s, less what it has been quiet for.
            case .over: .seconds(15)...(.seconds(20) + .milliseconds(100))
            }
        }
    }

    // B04, B05, B07
    @Test(arguments: Use.allCases)
    func `What stays unanswered for five seconds ends the dialling end`(use: Use) throws {
        let pair = try makePair(keepalive: Keepalive())
        switch use {
        case .unanswered: break
        case .acknowledged:
            pair.client.trySend(Message(Bytes("a question")))
            try pair.run(for: .milliseconds(100))
        case .over: try pair.run(for: .seconds(4))
        }
        pair.link.isCut = true
        let begun = pair.now
        if use == .unanswered { pair.client.trySend(Message(Bytes("anybody?"))) }
        #expect(try pair.run(for: .seconds(60)) { pair.client.end != nil })
        #expect(use.limits.contains(pair.now - begun), "\(pair.now - begun)")
        #expect(pair.client.end?.code == .pathLost && pair.client.end?.origin == .path)
        #expect(pair.client.end?.cause?.code == .idle)
        // A client that sleeps for a while finds its socket again.
        #expect(pair.server?.end == nil)
    }

    // B07: a service that has started anew with another key resets what it does not know, and nobody can tell it from noise.
    @Test func `Noise on a dead path is no sign of life`() throws {
        let pair = try makePair(keepalive: Keepalive())
        pair.link.isCut = true
        let begun = pair.now
        pair.client.trySend(Message(Bytes("anybody?")))
        let question = ask(pair)
        var noise = SeededGenerator(seed: 7)
        while pair.client.end == nil, pair.now - begun < .seconds(60) {
            try pair.run(for: .milliseconds(200))
            let packet =
                [0x40 | UInt8.random(in: 0..<64, using: &noise)]
                + (0..<42).map { _ in UInt8.random(in: .min ... .max, using: &noise) }
            packet.withUnsafeBytes {
                pair.client.receive($0, from: EnginePair.serverAddress, to: pair.machineAddress, ecn: 0, now: pair.now)
            }
        }
        #expect(pair.now - begun < .seconds(6))
        #expect(question.answer == false)
        #expect(pair.client.end?.cause?.code == .idle)
    }

    @Test func `A path is asked once after it was used, and then left alone until the keepalive`() throws {
        let pair = try makePair(keepalive: Keepalive(interval: .seconds(60), idleTimeout: .seconds(180)))
        try pair.run(for: .seconds(10))
        let quiet = pair.delivered
        try pair.run(for: .seconds(20))
        #expect(pair.delivered == quiet)
        pair.server?.trySend(Message(Bytes("an answer, late")))
        try pair.run(for: .seconds(2))
        let used = pair.delivered
        try pair.run(for: .seconds(2))
        let asked = pair.delivered
        #expect((1...200).contains(asked - used), "bytes of a question and its answer")
        try pair.run(for: .seconds(20))
        #expect(pair.delivered == asked)
    }

    @Test func `An outage of four seconds ends nothing`() async throws {
        let pair = try makePair(keepalive: Keepalive())
        pair.link.isCut = true
        pair.client.trySend(Message(Bytes("late")))
        try pair.run(for: .seconds(4))
        pair.link.isCut = false
        try pair.run(for: .seconds(30))
        #expect(pair.client.end == nil)
        #expect(await pair.server?.takeMessages().count == 1)
    }

    // Before the probe of a suspect path found the new address, the connection ended.
    @Test func `A suspect path makes the client look where its machine is`() throws {
        let pair = try makePair(keepalive: Keepalive())
        pair.machineAddress = .loopback(port: 2222)
        pair.client.trySend(Message(Bytes("from the old address")))
        try pair.run(for: .seconds(30))
        #expect(pair.client.end == nil)
        #expect(pair.client.migration.hasHappened)
    }

    @Test func `A question to an ended connection is answered at once`() throws {
        let pair = try makePair()
        pair.client.close(.normal, reason: "", pair.now)
        #expect(ask(pair).answer == false)
    }
}
