import Synchronization
import Testing
import TransportKitTesting
import TransportTLS

@testable import QUICTransport
@testable import TransportKit

/// Resumption and early data (R13 to R17) between both ends of a connection in simulated time.
@Suite struct EarlyDataTests {
    private let hello = Bytes("message 1")

    /// Lets the service answer each target at once.
    private func answer(_ pair: EnginePair) {
        pair.seen.serve = { $0.trySend(Message(Bytes("message 2"))) }
    }

    /// How long it takes until the client, which is open by then, has an answer.
    private func untilAnswer(_ pair: EnginePair) throws -> Duration {
        answer(pair)
        let start = pair.now
        let words = (target: Target("/box") ?? .root, firstFlight: hello)
        try pair.run { pair.client.isEstablished }
        pair.client.sendTarget(words.target, firstFlight: words.firstFlight)
        #expect(try pair.run { pair.client.inbox.holdsSomething })
        return pair.now - start
    }

    // R14, R15, R121
    @Test func `A return that sends early data has its answer after one round trip, and any other after two`()
        async throws
    {
        let link = EnginePair.Link(delay: .milliseconds(20))
        let visits = try Visits()
        #expect(try untilAnswer(EnginePair(link: link, visits: visits.saying("/box", hello))) == .milliseconds(80))
        try visits.first()
        #expect(try untilAnswer(EnginePair(link: link, visits: visits)) == .milliseconds(80))

        try visits.first()
        let pair = try EnginePair(link: link, visits: visits.saying("/box", hello))
        #expect(try untilAnswer(pair) == .milliseconds(40))
        // R14: nothing but the target and message 1, and neither is said again.
        try pair.run(for: .seconds(1))
        let server = try #require(pair.server)
        // R16
        #expect(pair.client.earlyData == .accepted && server.earlyData == .accepted)
        #expect(pair.client.isResumed && server.isResumed)
        #expect(pair.seen.targets == [Target("/box")])
        #expect(await server.takeMessages() == [Message(hello)])
    }

    @Test(arguments: [0, 10, 30], [UInt64(1), 2, 3, 4])
    func `Early data arrives once and in front of everything else over a bad link`(loss: Int, seed: UInt64) async throws
    {
        let visits = try Visits()
        try visits.first()
        // More than the first packets hold.
        let large = Bytes(repeating: 7, count: 9000)
        let link = EnginePair.Link(delay: .milliseconds(20), jitter: .milliseconds(15), lossPercent: loss)
        let pair = try EnginePair(link: link, seed: seed, visits: visits.saying("/box", large))
        answer(pair)
        #expect(try pair.run { pair.client.isEstablished }, "loss \(loss), seed \(seed)")
        pair.client.sendTarget(Target("/box") ?? .root, firstFlight: large)
        let rest = (0..<50).map { Message(Bytes(repeating: UInt8($0), count: $0 * 30)) }
        for message in rest { pair.client.trySend(message) }
        var received: [Message] = []
        for _ in 0..<300 where received.count < rest.count + 1 {
            try pair.run(for: .milliseconds(200))
            if let server = pair.server { received += await server.takeMessages() }
        }
        #expect(received == [Message(large)] + rest, "loss \(loss), seed \(seed)")
        #expect(pair.seen.targets == [Target("/box")], "loss \(loss), seed \(seed)")
        #expect(await pair.client.takeMessages().map(\.payload) == [Bytes("message 2")])
        #expect(pair.client.earlyData == pair.server?.earlyData)
    }

    @Test(arguments: [0, 20], [UInt64(5), 6, 7])
    func `What the service does not take is said again, once and in order`(loss: Int, seed: UInt64) async throws {
        let link = EnginePair.Link(delay: .milliseconds(20), jitter: .milliseconds(15), lossPercent: loss)
        for isForgotten in [false, true] {
            var visits = try Visits()
            try visits.first()
            // Either it takes the ticket and no early data, or it does not know the ticket any more.
            if isForgotten { visits.server.forgetTickets() } else { visits.takesEarlyData = false }
            let pair = try EnginePair(link: link, seed: seed, visits: visits.saying("/box", hello))
            #expect(try pair.run { pair.client.isEstablished })
            #expect(pair.client.earlyData == .rejected && pair.client.isResumed == !isForgotten)
            #expect(pair.seen.targets.isEmpty)
            pair.client.sendTarget(Target("/box") ?? .root, firstFlight: hello)
            pair.client.trySend(Message(Bytes("and more")))
            var received: [Message] = []
            for _ in 0..<300 where received.count < 2 {
                try pair.run(for: .milliseconds(200))
                if let server = pair.server { received += await server.takeMessages() }
            }
            #expect(received.map(\.payload) == [hello, Bytes("and more")], "loss \(loss), seed \(seed)")
            #expect(pair.seen.targets == [Target("/box")], "loss \(loss), seed \(seed)")
            #expect(pair.server?.earlyData == .rejected)
        }
    }

    // RFC 8446 §8
    @Test func `A recording of early data says nothing twice, and never ends a handshake`() throws {
        let visits = try Visits()
        try visits.first()
        let pair = try EnginePair(visits: visits.saying("/box", hello))
        let packet = try pair.firstPacket()
        var isTaken: [Bool] = []
        for _ in 0..<3 {
            let seen = EnginePair.Owner()
            let server = try packet.withUnsafeBytes { bytes in
                let server = try QUICConnection(
                    accepting: bytes, from: EnginePair.clientAddress, to: EnginePair.serverAddress,
                    tls: TLSSession.server(
                        visits.server, protocols: [WireNames.alpnPeer], forQUIC: true, earlyData: true),
                    resetSecret: nil, limits: Limits(), keepalive: Keepalive(), now: pair.now)
                server.owner = seen
                server.receive(
                    bytes, from: EnginePair.clientAddress, to: EnginePair.serverAddress, ecn: 0, now: pair.now)
                return server
            }
            server.settle(pair.now)
            #expect(!server.isEstablished)
            #expect(server.earlyData == .none, "nobody has asked yet")
            _ = server.info(target: .root, local: EnginePair.serverAddress, remote: EnginePair.clientAddress)
            #expect((server.earlyData == .accepted) == !seen.targets.isEmpty)
            isTaken.append(!seen.targets.isEmpty)
            server.timeout(pair.now + .seconds(3600))
            #expect(server.isGone && !server.isEstablished)
        }
        #expect(isTaken == [true, false, false])
    }

    // B63
    @Test func `Early data goes to the destination, under the rules, of its ticket alone`() throws {
        let files = try EnginePair.files.get()
        let visits = try Visits()
        let key = try CertificateHashes(certificateFile: files.certificate).key
        let pinned = ClientSecurity(pins: [key])
        let other = ClientSecurity(pins: [key, try #require(PublicKeyHash(Bytes(repeating: 1, count: 32)))])

        /// What becomes of early data on a visit.
        func visit(_ security: ClientSecurity?, _ change: (inout Visits) -> Void = { _ in }) throws
            -> SocketInfo.EarlyData
        {
            var changed = visits.saying("/box", hello)
            change(&changed)
            let pair = try EnginePair(security: security, visits: changed)
            #expect(try pair.run { pair.client.isEstablished && pair.server?.isEstablished == true })
            return pair.client.earlyData
        }

        // R16: an IP literal and a pinned certificate.
        try visits.first(pinned)
        #expect(try visit(other) == .none)
        #expect(try visit(nil) == .none)
        #expect(try visit(pinned) { $0.port = 8443 } == .none)
        #expect(try visit(pinned) == .accepted)
        // A ticket of another listener of the same certificate, with the same key in its store, is no ticket.
        let elsewhere = try Visits()
        var moved = elsewhere.saying("/box", hello)
        moved.tickets = visits.tickets
        let pair = try EnginePair(security: pinned, visits: moved)
        #expect(try pair.run { pair.client.isEstablished })
        #expect(pair.client.earlyData == .rejected && !pair.client.isResumed)
    }

    @Test func `A ticket from before early data was on offers none`() throws {
        var visits = try Visits()
        visits.takesEarlyData = false
        try visits.first()
        visits.takesEarlyData = true
        let pair = try EnginePair(visits: visits.saying("/box", hello))
        #expect(try pair.run { pair.client.isEstablished })
        #expect(pair.client.earlyData == .none && pair.client.isResumed)
    }

    // R36
    @Test(arguments: [0, 20], [UInt64(1), 2, 3])
    func `Early data goes on where the service asks the client to prove where it is`(loss: Int, seed: UInt64)
        async throws
    {
        let visits = try Visits()
        try visits.first()
        let pair = try EnginePair(
            link: EnginePair.Link(lossPercent: loss), seed: seed, visits: visits.saying("/box", hello))
        pair.asksForProof = true
        #expect(try pair.run { pair.client.isEstablished && !pair.seen.targets.isEmpty }, "seed \(seed)")
        pair.client.sendTarget(Target("/box") ?? .root, firstFlight: hello)
        try pair.run(for: .seconds(5))
        #expect(pair.seen.targets == [Target("/box")], "loss \(loss), seed \(seed)")
        #expect(await pair.server?.takeMessages() == [Message(hello)], "loss \(loss), seed \(seed)")
    }

    @Test(arguments: [false, true])
    func `A close before the client has proved itself waits for that and keeps its code`(breaksOff: Bool) throws {
        let visits = try Visits()
        try visits.first()
        let pair = try EnginePair(visits: visits.saying("/box", hello))
        pair.seen.serve = { server in
            if breaksOff {
                server.breakOff(.refused, "not yet", pair.now)
            } else {
                server.close(.refused, reason: "not yet", pair.now)
            }
            #expect(server.end == nil && !server.isEstablished)
        }
        #expect(try pair.run { pair.client.end != nil })
        #expect(pair.client.isEstablished)
        #expect(pair.client.end == Close(.refused, reason: "not yet", origin: .remote))
    }

    @Test func `Only what the first packets hold waits for no handshake`() throws {
        let visits = try Visits()
        try visits.first()
        let pair = try EnginePair(visits: visits.saying("/box", Bytes(repeating: 1, count: 1 << 18)))
        var turns = 0
        // What does not fit waits without anybody being woken all the time.
        let isOpen = try pair.run(for: .milliseconds(19)) {
            turns += 1
            return pair.client.isEstablished
        }
        #expect(!isOpen)
        #expect(turns < 40)
        #expect(try pair.run { pair.client.isEstablished })
        pair.client.sendTarget(Target("/box") ?? .root, firstFlight: nil)
        #expect(try pair.run { pair.server?.inbox.holdsSomething == true })
        #expect(pair.client.earlyData == .accepted)
    }
}

extension Inbox {
    /// Whether something waits for the application.
    fileprivate var holdsSomething: Bool { state.withLock { !$0.elements.isEmpty } }
}
