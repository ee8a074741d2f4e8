import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// Credit and queues: a slow one holds up nobody else, and the door holds no more than it said.
@Suite struct DoorFlowTests {
    private static let one = TunnelSessionID(rawValue: 1)
    private static let two = TunnelSessionID(rawValue: 2)
    private static let window = UInt64(DoorLimits.defaultWindow)

    private let world: DoorWorld
    private let box: ScriptedBox
    private let client: ScriptedClient
    private let other: ScriptedClient

    init() throws {
        world = DoorWorld()
        box = ScriptedBox(world)
        client = ScriptedClient(world, home: box.home)
        other = ScriptedClient(world, home: box.home)
        #expect(try box.come([client.key.publicKey, other.key.publicKey]))
        #expect(try client.come(tun: Self.one) && other.come(tun: Self.two))
        box.send(box.frame(.control, client.device, Self.one))
        box.send(box.frame(.control, other.device, Self.two))
        for party in [box, client, other] as [ScriptedLink] { _ = party.takeHeard() }
    }

    @Test func `A session whose receiver gives no credit holds up no other, and no control message, on the box's leg`()
        throws
    {
        for _ in 0..<4 { client.send(client.frame(.bulk, Self.one, bytes: 60_000)) }
        // An eighth of the window is left, for control alone.
        #expect(box.takeHeard() == ["tun-bulk", "tun-bulk", "tun-bulk"])
        client.send(client.frame(.control, Self.one, bytes: 20_000))
        other.send(other.frame(.bulk, Self.two, bytes: 60_000))
        try box.say(.check(nonce: 1))
        #expect(box.takeHeard().sorted() == ["here", "tun", "tun-bulk"])
        // The one that waits is told of no credit beyond what has been passed on.
        client.hear()
        let totals = client.controls.compactMap { if case .credit(_, _, let total) = $0 { total } else { nil } }
        #expect(totals.allSatisfy { $0 <= Self.window + 3 * 60_064 + 67 })
        try box.say(.credit(device: client.device, session: Self.one, total: 2 * Self.window))
        #expect(box.takeHeard() == ["tun-bulk"])
    }

    @Test func `A session whose receiver gives no credit holds up no other on the client's leg`() throws {
        client.begin(Self.two)
        box.hear()
        for _ in 0..<4 { box.send(box.frame(.bulk, client.device, Self.one, bytes: 60_000)) }
        box.send(box.frame(.bulk, client.device, Self.two, bytes: 60_000))
        try client.say(.check(nonce: 1))
        #expect(client.takeHeard() == ["here", "tun-bulk", "tun-bulk", "tun-bulk", "tun-bulk"])
        box.send(box.frame(.control, client.device, Self.one, bytes: 20_000))
        #expect(client.takeHeard() == ["tun"])
    }

    @Test func `A client that sends more than its credit ends its link, and nobody else's`() throws {
        // The wire to the box takes nothing.
        for _ in 0..<4 { world.send(client.frame(.bulk, Self.one, bytes: 60_000).encoded(), on: client.link) }
        #expect(client.close == nil)
        world.send(client.frame(.bulk, Self.one, bytes: 60_000).encoded(), on: client.link)
        #expect(client.close == .protocolError && box.close == nil && other.close == nil)
    }

    @Test func `What a wire has not taken gives nobody credit`() throws {
        for _ in 0..<4 { client.send(client.frame(.bulk, Self.one, bytes: 60_000)) }
        // A first batch is taken out, and has not left.
        #expect(!world.table.next(box.link, now: world.now).isEmpty)
        client.hear()
        #expect(!client.controls.contains { if case .credit = $0 { true } else { false } })
        // With the next one it has.
        while !world.table.next(box.link, now: world.now).isEmpty {}
        client.hear()
        #expect(client.controls.contains { if case .credit = $0 { true } else { false } })
    }

    // R84
    @Test func `Unreliable frames that find a full queue are dropped and counted, and reliable ones never are`() throws
    {
        let many = SendLane.unreliableFrames + 10
        for _ in 0..<many { client.send(client.frame(.unreliable, Self.one)) }
        for _ in 0..<50 { client.send(client.frame(.control, Self.one)) }
        let heard = box.takeHeard()
        #expect(heard.count { $0 == "tun-unreliable" } == SendLane.unreliableFrames)
        #expect(heard.count { $0 == "tun" } == 50)
        #expect(world.counters["door.frames.dropped"] == 10)
    }

    @Test func `No session begins that the budget or the device has no room for`() throws {
        var options = DoorOptions()
        options.budget = 3 * 2 * (262_144 + SendLane.unreliableBytes)
        let world = DoorWorld(options: options)
        let box = ScriptedBox(world)
        let clients = (0..<2).map { _ in ScriptedClient(world, home: box.home) }
        #expect(try box.come(clients.map(\.key.publicKey)))
        for client in clients { #expect(try client.come()) }
        for number in UInt64(0)..<2 { clients[0].begin(TunnelSessionID(rawValue: number)) }
        for number in UInt64(0)..<2 { clients[1].begin(TunnelSessionID(rawValue: number)) }
        #expect(clients[0].takeHeard().last == "entered" && clients[1].takeHeard().last == "end")
        clients[0].end()
        box.hear()
        for number in UInt64(2)..<9 { clients[1].begin(TunnelSessionID(rawValue: number)) }
        #expect(world.table.reserved <= options.budget)
        clients[1].end()
        box.hear()
        box.end()
        #expect(world.isEmpty)
        let more = ScriptedClient(self.world, key: client.key, home: self.box.home)
        #expect(try more.come())
        for number in UInt64(10)..<16 { more.begin(TunnelSessionID(rawValue: number)) }
        #expect(more.takeHeard().count { $0 == "end" } == 2)
    }

    @Test func `Who does not read what the door says is not read, and closed where others cause too much of it`() throws
    {
        for number in UInt64(100)..<6_000 {
            client.send(client.frame(.control, TunnelSessionID(rawValue: number)))
            if world.table.isBackedUp(client.link) { break }
        }
        #expect(world.table.isBackedUp(client.link) && client.close == nil)
        for _ in 0..<15_000 { client.send(client.frame(.control, .random())) }
        world.advance(.milliseconds(200))
        #expect(client.close == .tooSlow)
    }

    @Test
    func `2,000 random frames between slow and fast ends all arrive in order, and the door holds a window at most`()
        throws
    {
        var random = SeededGenerator.announced()
        // Each end of each session keeps its own books with the package's values, as real ends do.
        var flows = [
            Flow(client, box, client.device, Self.one, towardBox: true), Flow(client, box, client.device, Self.one),
            Flow(other, box, other.device, Self.two, towardBox: true), Flow(other, box, other.device, Self.two),
        ]
        var put = 0
        for step in 0..<60_000 {
            let index = Int.random(in: 0..<4, using: &random)
            if put < 2_000 {
                flows[index].put(step, &random)
                put += 1
            }
            switch Int.random(in: 0..<4, using: &random) {
            case 0: try flows[index].send()
            case 1: try flows[index].take()
            case 2: world.take(box.link).forEach { box.hear($0) }
            case _: world.take(index < 2 ? client.link : other.link).forEach { (index < 2 ? client : other).hear($0) }
            }
            for index in flows.indices { try flows[index].listen() }
            let held = world.table.sessions.values.flatMap { [$0.fromClient.held, $0.fromBox.held] }
            #expect(held.allSatisfy { $0 <= Self.window })
            if put == 2_000, flows.allSatisfy({ $0.isDone }) { break }
        }
        #expect(flows.allSatisfy { $0.isDone })
        #expect([client, other, box].allSatisfy { $0.close == nil })
    }
}
