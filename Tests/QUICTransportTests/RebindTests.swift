import Testing
import TransportKit
import TransportKitTesting

@testable import QUICTransport

/// A NAT that forgets the flow of a connection, in simulated time.
@Suite struct RebindTests {
    enum Way: CaseIterable {
        case up, down, both
    }

    private static let roundTrip = Duration.milliseconds(20)
    /// One that a transfer fills.
    private static let full = EnginePair.Link(delay: roundTrip / 2, bytesPerSecond: 1_000_000, queueBytes: 40_000)

    private func makePair(
        _ link: EnginePair.Link = EnginePair.Link(), seed: UInt64 = 1, keepalive: Keepalive = Keepalive()
    ) throws -> EnginePair {
        let pair = try EnginePair(link: link, seed: seed, keepalive: keepalive)
        try pair.open()
        try pair.run(for: .seconds(1))
        return pair
    }

    /// What a NAT makes of the client's address the so manieth time.
    private func outside(_ number: Int) -> SocketAddress { .loopback(port: UInt16(20_000 + number)) }

    // R20, R123, B32: before, a client that only received was not asked for three seconds, and then not for many more.
    @Test(arguments: Way.allCases, [UInt64(1), 2])
    func `A transfer over a full link goes on while the NAT forgets its flow at any moment`(
        way: Way, seed: UInt64
    ) async throws {
        let pair = try makePair(Self.full, seed: seed)
        let server = try #require(pair.server)
        var random = SeededGenerator(seed: seed)
        var up = Flow(), down = Flow()
        for round in 0..<11 {
            if round > 0 { pair.rebind(to: outside(round)) }
            let end = pair.now + .milliseconds(Int64.random(in: 300...900, using: &random))
            while pair.now < end {
                if way != .down { up.fill(pair.client) }
                if way != .up { down.fill(server) }
                try pair.run(for: .milliseconds(5))
                await up.empty(server, now: pair.now)
                await down.empty(pair.client, now: pair.now)
            }
        }
        print("\(way) \(seed): \(up.arrived) came up, \(down.arrived) down; still for \(up.worst) and \(down.worst)")
        #expect(way == .down || up.worst < .milliseconds(500) && up.arrived > 50)
        #expect(way == .up || down.worst < .milliseconds(800) && down.arrived > 50)
        #expect(pair.overdraft <= 0, "an address got more than three times what came from it before it was proven")
        #expect(pair.client.end == nil && server.end == nil)
        #expect(!pair.client.migration.hasHappened)
    }

    /// Messages one way, each with its number.
    private struct Flow {
        private var sent = 0
        private(set) var arrived = 0
        private(set) var worst = Duration.zero
        private var last: Instant?

        mutating func fill(_ connection: QUICConnection) {
            while case .accepted = connection.send([Message(block(sent))], waiter: nil) { sent += 1 }
        }

        mutating func empty(_ connection: QUICConnection, now: Instant) async {
            for message in await connection.takeMessages() {
                #expect(message.payload == block(arrived))
                arrived += 1
                last = now
            }
            if let last { worst = max(worst, now - last) }
        }

        private func block(_ number: Int) -> Bytes { Bytes([UInt8](repeating: UInt8(number % 251), count: 8000)) }
    }

    // B32
    @Test func `A flood that only comes is asked about until the NAT lets an answer through`() async throws {
        let pair = try makePair(Self.full)
        let server = try #require(pair.server)
        var down = Flow()
        for _ in 0..<20 {
            down.fill(server)
            try pair.run(for: .milliseconds(20))
            await down.empty(pair.client, now: pair.now)
        }
        // Nothing that the client asks for the next second gets through.
        pair.rebind(to: outside(1))
        pair.link.isCut = true
        try pair.run(for: .seconds(1))
        pair.link.isCut = false
        let (before, begun) = (down.arrived, pair.now)
        while down.arrived == before, pair.now - begun < .seconds(5) {
            try pair.run(for: .milliseconds(5))
            await down.empty(pair.client, now: pair.now)
        }
        #expect(pair.now - begun < .milliseconds(500))
        #expect(pair.overdraft <= 0)
    }

    // R123: before, the listening end ended the connection where nothing came by the new path for a moment after the first
    // answer.
    @Test(arguments: ["silent", "back", "elsewhere"])
    func `Whatever a NAT does right after it has rebound, the connection goes on`(what: String) async throws {
        for moment in stride(from: 0, through: 100, by: 5) {
            let pair = try makePair(keepalive: Keepalive(interval: nil))
            let server = try #require(pair.server)
            // So few bytes that the challenge is a small one, and is followed by a large one.
            pair.rebind(to: outside(1))
            #expect(pair.client.trySend(Message([1])))
            try pair.run(for: .milliseconds(moment))
            switch what {
            case "silent":
                pair.link.isCut = true
                try pair.run(for: .seconds(4))
                pair.link.isCut = false
            case "back": pair.rebind(to: EnginePair.clientAddress)
            default: pair.rebind(to: outside(2))
            }
            #expect(pair.client.trySend(Message([2])))
            #expect(server.trySend(Message(Bytes([UInt8](repeating: 3, count: 50_000)))))
            try pair.run(for: .seconds(8))
            let up = await server.takeMessages()
            let down = await pair.client.takeMessages()
            #expect(up.map(\.payload) == [[1], [2]], "\(what) after \(moment) ms")
            #expect(down.count == 1, "\(what) after \(moment) ms")
            #expect(pair.client.end == nil && server.end == nil, "\(what) after \(moment) ms")
            #expect(pair.overdraft <= 0, "\(what) after \(moment) ms")
        }
    }

    // R19, R154: before, nothing that the client said from its new address was heard for a second.
    @Test func `A client that moves just after its NAT has rebound is heard at once`() async throws {
        for moment in stride(from: 0, through: 200, by: 10) {
            let pair = try makePair()
            let server = try #require(pair.server)
            // The route has changed already, but answers find their way back.
            pair.rebind(to: outside(1))
            #expect(pair.client.trySend(Message([1])))
            try pair.run(for: .milliseconds(moment))
            pair.machineAddress = .loopback(port: 2222)
            pair.rebind(to: outside(2))
            let question = PathQuestion()
            pair.client.ask(question, pair.now)
            #expect(pair.client.trySend(Message([2])))
            let begun = pair.now
            #expect(try pair.run(for: .seconds(5)) { question.answer != nil })
            #expect(question.answer == true && pair.now - begun <= Self.roundTrip + .milliseconds(1), "\(moment) ms")
            try pair.run(for: .milliseconds(200))
            #expect(await server.takeMessages().map(\.payload) == [[1], [2]], "\(moment) ms")
            #expect(server.trySend(Message([3])))
            try pair.run(for: Self.roundTrip)
            #expect(await pair.client.takeMessages().map(\.payload) == [[3]], "\(moment) ms")
            #expect(pair.client.end == nil && server.end == nil && pair.overdraft <= 0)
        }
    }

    @Test func `Invented addresses displace nothing that is in use`() {
        let local = SocketAddress.loopback(port: 4433)
        var peer = PeerAddress(outside(0), to: local)
        #expect(peer.name(of: outside(0), to: local) == local)
        let next = peer.name(of: outside(1), to: local)
        #expect(next != local && peer.isNew(next) && peer.address(of: next) == local)
        #expect(peer.name(of: outside(1), to: local) == next)
        var names: Set<SocketAddress> = [local, next]
        for number in 0..<70_000 {
            let invented = SocketAddress(.ipv4(IPv4Address(value: UInt32(number))), port: 1)
            let name = peer.name(of: invented, to: local)
            #expect(name != local && name.port != 0)
            names.insert(name)
        }
        #expect(names.count > 60_000)
        #expect(peer.name(of: outside(0), to: local) == local)
        peer.moved(from: outside(1), to: next)
        #expect(!peer.isNew(next) && peer.name(of: outside(1), to: local) == next)
        // Whoever comes back comes by a path of its own, and so does everybody once nothing answers by the last.
        #expect(peer.name(of: outside(0), to: local) != local)
        peer.forget()
        #expect(peer.name(of: outside(1), to: local) != next)
    }
}
