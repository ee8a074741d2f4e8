import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// Who is let in, who is closed, and who takes whose place.
@Suite struct DoorAdmissionTests {
    private let world = DoorWorld()
    private let boxKey = StaticPrivateKey()
    private var home: HomeID { HomeID(of: boxKey.publicKey) }

    private func hash(_ mark: UInt8) -> PairingHash {
        guard let hash = PairingHash(home: home, code: Bytes(repeating: mark, count: 16)) else {
            preconditionFailure("a code has 16 bytes")
        }
        return hash
    }

    // R87, R124
    @Test func `A device of the roster is let in, and anybody else refused`() throws {
        let (box, client) = (ScriptedBox(world, key: boxKey), ScriptedClient(world, home: home))
        #expect(try box.come([client.key.publicKey]))
        #expect(try client.come())
        let welcome = try ClientWelcome(#require(client.welcome))
        #expect(welcome.box?.contains("tun") == true)
        let stranger = ScriptedClient(world, home: home)
        #expect(try !stranger.come())
        #expect(stranger.close == .refused && stranger.heard.isEmpty)
        for party in [box, client] as [ScriptedLink] { party.end() }
        #expect(world.isEmpty)
    }

    // R88, R124
    @Test func `A pairing code that is expected lets a new device in until it is forgotten, and an admitted one stays`()
        throws
    {
        let (box, client) = (ScriptedBox(world, key: boxKey), ScriptedClient(world, home: home))
        #expect(try box.come([]))
        #expect(try !client.come(pair: hash(1)))
        #expect(client.close == .refused)
        try box.say(.expect(hash(1), seconds: 60))
        let (second, third) = (ScriptedClient(world, home: home), ScriptedClient(world, home: home))
        #expect(try second.come(pair: hash(1)))
        #expect(try third.come(pair: hash(1)))
        try box.say(.admit(DeviceKeys([second.key.publicKey])))
        try box.say(.forget(hash(1)))
        #expect(second.close == nil && third.close == .refused)
        // A listed device's hash is of no interest.
        let again = ScriptedClient(world, key: second.key, home: home)
        #expect(try again.come(pair: hash(9)))
    }

    @Test func `A pairing code is good for as long as the box said, and the oldest of too many is dropped`() throws {
        let box = ScriptedBox(world, key: boxKey)
        #expect(try box.come([]))
        try box.say(.expect(hash(1), seconds: 30))
        let client = ScriptedClient(world, home: home)
        #expect(try client.come(pair: hash(1)))
        world.advance(.seconds(29))
        #expect(client.close == nil)
        world.advance(.seconds(2))
        #expect(client.close == .refused)
        for mark in UInt8(10)..<19 { try box.say(.expect(hash(mark), seconds: 600)) }
        #expect(try !ScriptedClient(world, home: home).come(pair: hash(10)))
        #expect(try ScriptedClient(world, home: home).come(pair: hash(11)))
    }

    // R124, B18
    @Test func `A device that is revoked, or missing from a new roster, is closed and its sessions end at the box`()
        throws
    {
        let clients = (0..<3).map { _ in ScriptedClient(world, home: home) }
        let keys = clients.map(\.key.publicKey)
        let box = ScriptedBox(world, key: boxKey)
        #expect(try box.come(keys))
        for (index, client) in clients.enumerated() {
            #expect(try client.come(tun: TunnelSessionID(rawValue: UInt64(index))))
        }
        _ = box.takeHeard()
        try box.say(.revoke(DeviceKeys([keys[0], StaticPrivateKey().publicKey])))
        #expect(clients.map(\.close) == [.refused, nil, nil])
        #expect(box.takeHeard() == ["end"])
        #expect(box.frames.last == .end(device: clients[0].device, session: TunnelSessionID(rawValue: 0)))
        try box.say(.roster(DeviceKeys([keys[2]]), more: false))
        #expect(clients.map(\.close) == [.refused, .refused, nil])
        #expect(try !ScriptedClient(world, key: clients[0].key, home: home).come())
    }

    // R126
    @Test func `A box that links again takes over at once, and the clean-up of its older link leaves the newer alone`()
        throws
    {
        let client = ScriptedClient(world, home: home)
        let (older, newer) = (ScriptedBox(world, key: boxKey), ScriptedBox(world, key: boxKey))
        #expect(try older.come([client.key.publicKey]))
        #expect(try client.come(tun: TunnelSessionID(rawValue: 1)))
        _ = client.takeHeard()
        #expect(try newer.dial())
        // Until its roster is whole it displaces nobody.
        try newer.say(.roster(DeviceKeys([client.key.publicKey]), more: true))
        #expect(older.close == nil)
        try newer.say(.roster(DeviceKeys([StaticPublicKey]()), more: false))
        #expect(older.close == .displaced)
        #expect(newer.takeHeard().contains("linked"))
        // Its end was cut off with the link, so that it may go before what the door says of the new one or after it.
        #expect(client.takeHeard().sorted() == ["box", "end"])
        older.end()
        #expect(client.close == nil)
        client.begin(TunnelSessionID(rawValue: 2))
        #expect(newer.takeHeard() == ["begin"])
    }

    // B10
    @Test func `A device that comes again takes the place of its ghost, and the ghost's end changes nothing`() throws {
        let box = ScriptedBox(world, key: boxKey)
        let ghost = ScriptedClient(world, home: home)
        let client = ScriptedClient(world, key: ghost.key, home: home)
        #expect(try box.come([ghost.key.publicKey]))
        #expect(try ghost.come(tun: TunnelSessionID(rawValue: 1)))
        _ = box.takeHeard()
        #expect(try client.dial())
        #expect(ghost.close == nil)
        try client.say(.enter)
        #expect(ghost.close == .displaced)
        #expect(client.takeHeard() == ["message 2", "entered"])
        #expect(box.takeHeard() == ["end"])
        ghost.end()
        try client.say(.check(nonce: 5))
        #expect(client.takeHeard() == ["here"] && client.close == nil)
    }

    // B40
    @Test func `A heartbeat is answered by what routes, and a link that is not routed by is closed`() throws {
        let (box, client) = (ScriptedBox(world, key: boxKey), ScriptedClient(world, home: home))
        #expect(try box.come([client.key.publicKey]))
        #expect(try client.come())
        try box.say(.check(nonce: 1))
        try client.say(.check(nonce: 2))
        box.hear()
        client.hear()
        #expect(box.controls.last == .here(nonce: 1) && client.controls.last == .here(nonce: 2))
        let early = ScriptedBox(world, key: boxKey)
        #expect(try early.dial())
        try early.say(.check(nonce: 3))
        #expect(early.close == .nobodyThere && box.close == nil)
    }

    // R128
    @Test func `A door with two keys answers on either, and on no other`() throws {
        let world = DoorWorld(keys: 2)
        let home = home
        let box = ScriptedBox(world, key: boxKey)
        #expect(try box.dial(doorKey: world.keys[1].publicKey))
        try box.say(.roster(DeviceKeys([StaticPublicKey]()), more: false))
        #expect(box.takeHeard() == ["message 2", "linked"])
        let client = ScriptedClient(world, home: home)
        #expect(try !client.dial(doorKey: StaticPrivateKey().publicKey))
        #expect(client.close == .refused)
    }

    // R95
    @Test func `A door that lists its homes serves no other`() throws {
        let world = DoorWorld(homes: [home])
        #expect(try ScriptedBox(world, key: boxKey).come([]))
        let other = ScriptedBox(world)
        #expect(try !other.come([]))
        #expect(other.close == .refused)
        let client = ScriptedClient(world, home: other.home)
        #expect(try !client.dial())
        #expect(client.close == .refused)
    }

    @Test func `A client waits for a box for 60 s, and is judged when it links`() throws {
        let listed = ScriptedClient(world, home: home)
        let (stranger, late) = (ScriptedClient(world, home: home), ScriptedClient(world, home: home))
        #expect(try !listed.come(tun: TunnelSessionID(rawValue: 1)))
        #expect(try ClientWelcome(#require(listed.welcome)).box == nil)
        #expect(listed.takeHeard() == ["message 2", "end"])
        #expect(try !stranger.come())
        world.advance(.seconds(59))
        #expect(listed.close == nil && stranger.close == nil)
        let box = ScriptedBox(world, key: boxKey)
        #expect(try box.come([listed.key.publicKey, late.key.publicKey]))
        #expect(listed.takeHeard() == ["box", "entered"])
        #expect(stranger.close == .refused)
        box.end()
        #expect(listed.takeHeard() == ["box"] && listed.controls.last == .box(nil))
        #expect(try !late.come())
        world.advance(.seconds(61))
        #expect(late.close == .nobodyThere && listed.close == nil)
        listed.end()
        #expect(world.isEmpty)
    }

    @Test func `Who does not go on within 10 s is closed`() throws {
        let silent = try #require(world.open(.app))
        let (client, box) = (ScriptedClient(world, home: home), ScriptedBox(world, key: boxKey))
        #expect(try box.come([client.key.publicKey]))
        #expect(try client.dial())
        let second = ScriptedBox(world, key: boxKey)
        #expect(try second.dial())
        try second.say(.roster(DeviceKeys([StaticPublicKey]()), more: true))
        world.advance(.milliseconds(9_900))
        #expect(world.closes.isEmpty)
        world.advance(.milliseconds(300))
        #expect(world.closes[silent] == .tooSlow && client.close == .tooSlow && second.close == .tooSlow)
        #expect(box.close == nil)
        box.end()
        #expect(world.isEmpty)
    }

    @Test func `What is said at the wrong time or by the wrong end ends the link`() throws {
        let keys = DeviceKeys([StaticPublicKey]())
        for control in [DoorControl.check(nonce: 1), .credit(device: nil, session: .random(), total: 1)] {
            let client = ScriptedClient(world, home: home)
            _ = try client.dial()
            try client.say(control)
            #expect(client.close == .protocolError)
        }
        for control in [DoorControl.admit(keys), .revoke(keys)] {
            let box = ScriptedBox(world, key: boxKey)
            _ = try box.dial()
            try box.say(control)
            #expect(box.close == .protocolError)
            let second = ScriptedBox(world, key: boxKey)
            #expect(try second.come([]))
            try second.say(.roster(keys, more: true))
            try second.say(control)
            #expect(second.close == .protocolError)
        }
        let client = ScriptedClient(world, home: home)
        _ = try client.come()
        try client.say(.enter)
        #expect(client.close == .protocolError)
        let text = ScriptedClient(world, home: home)
        _ = try text.come()
        world.table.received(.text("hello"), on: text.link, now: world.now)
        _ = text.takeHeard()
        #expect(text.close == .unsupported)
        let long = ScriptedClient(world, home: home)
        _ = try long.come()
        long.send(Bytes(repeating: 9, count: 65_537))
        #expect(long.close == .tooBig)
    }

    @Test func `More devices than the door takes end the link, in one roster, in parts, and one by one`() throws {
        var options = DoorOptions()
        options.devices = 1_024
        let world = DoorWorld(options: options)
        let many = (0..<1_024).map { _ in StaticPrivateKey().publicKey }
        let extra = DeviceKeys([StaticPrivateKey().publicKey])
        let parts = ScriptedBox(world, key: boxKey)
        #expect(try parts.dial())
        try parts.say(.roster(DeviceKeys(many), more: true))
        try parts.say(.roster(extra, more: false))
        #expect(parts.close == .policy)
        let box = ScriptedBox(world, key: boxKey)
        #expect(try box.come(many))
        try box.say(.admit(DeviceKeys(many)))
        #expect(box.close == nil)
        try box.say(.admit(extra))
        #expect(box.close == .policy)
    }
}
