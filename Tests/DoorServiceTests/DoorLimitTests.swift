import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// What strangers can cost, and that nothing is left of them.
@Suite struct DoorLimitTests {
    private static func address(_ number: UInt32) -> AddressKey { .ipv4(number) }

    @Test func `10,000 message 1s of strangers cost no more handshakes than the limit, and leave nothing`() throws {
        var options = DoorOptions()
        options.handshakesPerSecond = 5
        let world = DoorWorld(options: options)
        let home = HomeID(of: StaticPrivateKey().publicKey)
        let hello = ClientHello(home: home, window: DoorLimits.defaultWindow).encoded()
        let recorded = try InitiatorHandshake(
            key: StaticPrivateKey(), peer: StaticPrivateKey().publicKey, prologue: DoorWay.clientToDoor.prologue,
            payload: hello
        ).message1
        let message1 = DoorMessage.handshake(recorded).encoded()
        var codes: [CloseCode: Int] = [:]
        for number in 0..<10_000 {
            let link = try #require(world.open(number % 2 == 0 ? .app : .box, from: Self.address(UInt32(number % 10))))
            world.send(message1, on: link)
            #expect(world.take(link).isEmpty)
            codes[try #require(world.closes[link]), default: 0] += 1
        }
        // All in one second: five handshakes for each of ten addresses were worked out.
        #expect(codes == [.refused: 50, .busy: 9_950])
        #expect(world.counters["door.handshakes.unread"] == 50)
        #expect(world.isEmpty)
        world.advance(.seconds(1))
        let link = try #require(world.open(.app, from: Self.address(1)))
        world.send(message1, on: link)
        #expect(world.closes[link] == .refused)
    }

    @Test func `An address, all together, and those without a handshake have so many links and no more`() {
        var options = DoorOptions()
        options.linksPerAddress = 3
        options.links = 6
        options.handshakes = 5
        let world = DoorWorld(options: options)
        let one = (0..<4).map { _ in world.open(.app, from: Self.address(1)) }
        #expect(one.map { $0 != nil } == [true, true, true, false])
        let two = (0..<3).map { _ in world.open(.box, from: Self.address(2)) }
        #expect(two.map { $0 != nil } == [true, true, false])
        if let first = one[0] { world.end(first) }
        #expect(world.open(.app, from: Self.address(1)) != nil)
        #expect(world.counters["door.links.tooMany"] == 2)
    }

    @Test func `An IPv6 address counts as its subnet, and one that is an IPv4 address as that`() throws {
        func key(_ text: String) throws -> AddressKey {
            AddressKey(SocketAddress(.ipv6(try #require(IPv6Address(text)), scopeID: 0), port: 1))
        }
        #expect(try key("2001:db8::1") == key("2001:db8::ffff:1"))
        #expect(try key("2001:db8:0:1::1") != key("2001:db8::1"))
        let four = AddressKey(SocketAddress(.ipv4(try #require(IPv4Address("192.0.2.1"))), port: 9))
        #expect(try key("::ffff:192.0.2.1") == four)
    }

    @Test func `So many clients wait for one home, and so many for all`() throws {
        var options = DoorOptions()
        options.waitingClientsPerHome = 2
        options.waitingClients = 3
        let world = DoorWorld(options: options)
        let homes = (0..<3).map { _ in HomeID(of: StaticPrivateKey().publicKey) }
        let clients = [homes[0], homes[0], homes[0], homes[1], homes[2]].map { ScriptedClient(world, home: $0) }
        let answers = try clients.map { try $0.dial() }
        #expect(answers == [true, true, false, true, false])
        #expect(clients[2].close == .busy && clients[4].close == .busy)
        for client in clients { client.end() }
        #expect(world.isEmpty)
    }

    @Test func `Message 1s that were recorded take little of a device's room`() throws {
        let world = DoorWorld()
        let box = ScriptedBox(world)
        let client = ScriptedClient(world, home: box.home)
        #expect(try box.come([client.key.publicKey]))
        var links: [UInt64] = []
        for number in UInt64(0)..<10 {
            let recorded = ScriptedClient(world, key: client.key, home: box.home)
            #expect(try recorded.dial(tun: TunnelSessionID(rawValue: number)))
            links.append(recorded.link)
        }
        #expect(world.table.sessions.count == DoorTable.arrivalSessions)
        #expect(try client.come())
        client.begin(TunnelSessionID(rawValue: 99))
        #expect(client.takeHeard().last == "entered")
        world.advance(.seconds(11))
        #expect(links.allSatisfy { world.closes[$0] == .tooSlow })
    }

    @Test func `Options are read with their defaults, and checked`() throws {
        try DoorOptions().check()
        var options = DoorOptions()
        options.window = 1_000
        #expect(throws: DoorOptions.Invalid.self) { try options.check() }
        options = DoorOptions()
        options.homes = ["nobody"]
        #expect(throws: DoorOptions.Invalid.self) { try options.check() }
        options.homes = [HomeID(of: StaticPrivateKey().publicKey).description]
        try options.check()
    }
}
