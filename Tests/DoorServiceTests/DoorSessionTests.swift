import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// How sessions begin, carry and end, and what is answered with what.
@Suite struct DoorSessionTests {
    private static let one = TunnelSessionID(rawValue: 1)
    private static let two = TunnelSessionID(rawValue: 2)

    private let world = DoorWorld()
    private let box: ScriptedBox
    private let client: ScriptedClient

    init() throws {
        box = ScriptedBox(world)
        client = ScriptedClient(world, home: box.home)
    }

    private func link(takesTunnel: Bool = true, tun: TunnelSessionID? = nil) throws {
        #expect(try box.come([client.key.publicKey], takesTunnel: takesTunnel))
        #expect(try client.come(tun: tun))
        _ = box.takeHeard()
        _ = client.takeHeard()
    }

    // R77
    @Test func `What rides in message 1 is at the box before the client has entered, and so is the answer`() throws {
        #expect(try box.come([client.key.publicKey]))
        _ = box.takeHeard()
        #expect(try client.dial(tun: Self.one))
        #expect(box.takeHeard() == ["begin"])
        #expect(
            box.frames == [TunnelFrame(.begin, device: client.device, session: Self.one, payload: [1, 2, 3])])
        box.send(box.frame(.control, client.device, Self.one))
        #expect(client.takeHeard() == ["message 2", "tun"])
    }

    // R78, R125
    @Test func `Frames are passed on unchanged, by home, device and sid, with the kind they had`() throws {
        try link()
        client.begin(Self.one)
        for kind in [TunnelFrame.Kind.control, .bulk, .unreliable] {
            box.send(box.frame(kind, client.device, Self.one, bytes: 99))
            client.hear()
            #expect(client.frames.last == TunnelFrame(kind, session: Self.one, payload: Bytes(repeating: 8, count: 99)))
            client.send(client.frame(kind, Self.one, bytes: 65_511))
            box.hear()
            #expect(
                box.frames.last
                    == TunnelFrame(
                        kind, device: client.device, session: Self.one, payload: Bytes(repeating: 7, count: 65_511)))
        }
        // As kind 5 may come in any way.
        client.send(client.frame(.unreliable, Self.one).encoded(), delivery: .control)
        #expect(box.takeHeard().last == "tun-unreliable")
        // Anything else that comes as a datagram is dropped.
        client.send(client.frame(.control, Self.one).encoded(), delivery: .unreliable)
        #expect(box.takeHeard().isEmpty && client.close == nil)
    }

    // R80, R125
    @Test func `A session that is not there is answered with an end, once it has ended with nothing`() throws {
        try link()
        client.send(client.frame(.control, Self.one))
        client.send(client.frame(.bulk, Self.one))
        client.send(client.frame(.unreliable, Self.one))
        client.send(.end(session: Self.one))
        #expect(client.takeHeard() == ["end", "end"])
        box.send(box.frame(.control, client.device, Self.one))
        #expect(box.takeHeard() == ["end"])
        client.begin(Self.one)
        client.begin(Self.one)
        #expect(client.takeHeard() == ["end"] && box.takeHeard() == ["begin"])
        box.send(.end(device: client.device, session: Self.one))
        #expect(client.takeHeard() == ["end"])
        client.send(client.frame(.control, Self.one))
        try client.say(.credit(device: nil, session: Self.one, total: 1_000_000))
        box.send(box.frame(.bulk, client.device, Self.one))
        #expect(client.takeHeard().isEmpty && box.takeHeard().isEmpty)
        // Its name is used up.
        client.begin(Self.one)
        #expect(client.takeHeard() == ["end"] && box.takeHeard().isEmpty)
    }

    @Test func `A box that has left ends sessions, and begin is answered with an end until it links again`() throws {
        try link(tun: Self.one)
        box.end()
        #expect(client.takeHeard().sorted() == ["box", "end"])
        client.begin(Self.two)
        #expect(client.takeHeard() == ["end"])
        let newer = ScriptedBox(world, key: box.key)
        #expect(try newer.come([client.key.publicKey]))
        #expect(client.takeHeard() == ["box"])
        client.begin(Self.two)
        #expect(newer.takeHeard().last == "begin")
    }

    // R125, R91
    @Test func `Toward a box that takes no sessions the door says nothing, in either direction`() throws {
        try link(takesTunnel: false)
        client.begin(Self.one)
        client.send(client.frame(.control, Self.one))
        box.send(box.frame(.control, client.device, Self.one))
        #expect(client.takeHeard().isEmpty && box.takeHeard().isEmpty)
        world.advance(.seconds(60))
        #expect(client.takeHeard().isEmpty && box.takeHeard().isEmpty)
        #expect(world.table.sessions.isEmpty)
        let other = ScriptedClient(world, key: client.key, home: box.home)
        #expect(try other.come(tun: Self.two))
        #expect(other.takeHeard() == ["message 2", "entered"])
    }

    @Test func `A session that the box does not answer ends after 15 s, and one that it answers does not`() throws {
        try link()
        client.begin(Self.one)
        client.begin(Self.two)
        #expect(box.takeHeard() == ["begin", "begin"])
        box.send(box.frame(.control, client.device, Self.two))
        #expect(client.takeHeard() == ["tun"])
        world.advance(.milliseconds(14_900))
        #expect(client.takeHeard().isEmpty)
        world.advance(.milliseconds(300))
        #expect(client.takeHeard() == ["end"] && client.frames.last == .end(session: Self.one))
        #expect(box.takeHeard().isEmpty)
        // What comes after all is dropped.
        box.send(box.frame(.control, client.device, Self.one))
        #expect(box.takeHeard().isEmpty && client.takeHeard().isEmpty)
        world.advance(.seconds(600))
        #expect(world.table.sessions.count == 1)
    }

    // R79
    @Test func `A client that leaves ends its sessions at the box, after what it had sent`() throws {
        try link(tun: Self.one)
        client.send(client.frame(.bulk, Self.one))
        client.end()
        #expect(box.takeHeard() == ["tun-bulk", "end"])
        #expect(world.table.sessions.isEmpty && world.table.reserved == 0)
        box.end()
        #expect(world.isEmpty)
    }

    @Test func `A session that the box has not heard of yet goes without a word`() throws {
        try link()
        client.begin(Self.one)
        client.send(.end(session: Self.one))
        #expect(box.takeHeard().isEmpty)
        #expect(world.table.sessions.isEmpty)
    }

    @Test func `An end that does not get through is not waited for`() throws {
        try link(tun: Self.one)
        // More than the box has given credit for, so that the rest waits.
        for _ in 0..<4 { client.send(client.frame(.bulk, Self.one, bytes: 60_000)) }
        #expect(box.takeHeard().count == 3)
        client.send(.end(session: Self.one))
        #expect(box.takeHeard().isEmpty)
        world.advance(.seconds(16))
        #expect(box.takeHeard() == ["end"])
        #expect(world.table.sessions.isEmpty && world.table.reserved == 0)
    }

    // Replay: docs/protocol.md §9.3
    @Test func `A message 1 that was recorded displaces nobody and moves nothing`() throws {
        try link(tun: Self.one)
        let recorded = client.message1
        // While the session lives, and after it has ended.
        for _ in 0..<2 {
            let link = try #require(world.open(.app))
            world.send(recorded, on: link)
            // Message 2 is of no use to it, and neither is anything that was recorded after it.
            world.send(DoorMessage.sealed(Bytes(repeating: 1, count: 40)).encoded(), on: link)
            #expect(world.closes[link] == .protocolError)
            #expect(client.close == nil && box.close == nil && client.takeHeard().isEmpty && box.takeHeard().isEmpty)
        }
        let link = try #require(world.open(.app))
        world.send(recorded, on: link)
        let answer = world.take(link).map(\.payload)
        #expect(answer.count == 2 && answer[1] == TunnelFrame.end(session: Self.one).encoded())
        world.send(TunnelFrame(.begin, session: Self.two, payload: [1]).encoded(), on: link)
        #expect(world.closes[link] == .protocolError && box.takeHeard().isEmpty)
        client.send(client.frame(.control, Self.one))
        #expect(box.takeHeard() == ["tun"])
        // The box's own: without a roster it is nobody.
        let second = try #require(world.open(.box))
        world.send(box.message1, on: second)
        world.advance(.seconds(11))
        #expect(world.closes[second] == .tooSlow && box.close == nil)
        // On the other leg it is nothing.
        let third = try #require(world.open(.box))
        world.send(recorded, on: third)
        #expect(world.closes[third] == .refused)
    }
}
