import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// How the end of a session makes QUIC stand back, through the whole carrier.
@Suite struct SessionEndTests {
    private func receive(_ socket: any Socket, in world: DirectWorld) throws {
        _ = try world.simulation.run { try? await socket.receive() }
    }

    private func say(_ text: String, from socket: any Socket, in world: DirectWorld) throws {
        try world.simulation.run { try await socket.send(Message(Bytes(text))) }
    }

    @Test func `A path lost before the first message demotes for a day`() throws {  // R46, R48, B04
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        world.network.cut(.quic)
        try receive(socket, in: world)
        // Until the WebSocket has opened, the network may be down altogether; but it goes first.
        #expect(world.record.demotions[.quic] != nil)
        #expect(world.history()[.quic].demotion == nil)
        #expect(try world.connect() == .webSocket)
        #expect(world.history()[.quic].demotion != nil)
        // R49: its learning dials work, and move nothing.
        world.simulation.advance(by: .seconds(86_000))
        #expect(try world.connect() == .webSocket)
        world.simulation.advance(by: .seconds(401))
        #expect(try world.connect() == .quic)
    }

    @Test(arguments: [(59_999, true), (60_000, false)])
    func `Within a minute of the first message a lost path demotes`(milliseconds: Int, demotes: Bool) throws {  // R47
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        let far = try world.accept(.quic)
        try say("hello", from: far, in: world)
        try receive(socket, in: world)
        world.simulation.advance(by: .milliseconds(milliseconds))
        world.network.cut(.quic)
        try receive(socket, in: world)
        #expect((world.record.demotions[.quic] != nil) == demotes)
    }

    @Test func `The minute is of the clock that counts sleep, whatever the wall clock says`() throws {  // R47
        for (jump, age, demotes) in [(7200, 59, true), (-7200, 59, true), (-30, 60, false)] as [(Int64, Int, Bool)] {
            let world = try DirectWorld()
            defer { world.end() }
            let socket = try world.open()
            let far = try world.accept(.quic)
            try say("hello", from: far, in: world)
            try receive(socket, in: world)
            world.simulation.advance(by: .seconds(age))
            world.simulation.time.setWall(WallTime(seconds: world.simulation.time.wallNow().seconds + jump))
            world.network.cut(.quic)
            try receive(socket, in: world)
            #expect(try world.connect() == (demotes ? .webSocket : .quic))
        }
    }

    @Test func `A door whose handshake works and whose sessions do not holds nobody on QUIC`() throws {  // R51
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        let far = try world.accept(.quic)
        try world.simulation.run { _ = await far.close(CloseCode(rawValue: 0), reason: "") }
        try receive(socket, in: world)
        #expect(socket.info.transport == .quic)
        // R49: its handshakes go on working, and bring nobody back within the day.
        for _ in 0..<23 {
            #expect(try world.connect() == .webSocket)
            world.simulation.advance(by: .seconds(3600))
        }
        #expect(world.dials(.quic).count > 20)
        #expect(world.history()[.quic].demotion != nil)
    }

    @Test func `A verdict of the service demotes nothing`() throws {  // R50
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        let far = try world.accept(.quic)
        try world.simulation.run { _ = await far.close(.refused, reason: "not admitted") }
        try receive(socket, in: world)
        #expect(world.record.demotions.isEmpty)
        #expect(world.carrier.states.latest == .idle)
    }

    @Test func `Bytes of a stream prove the path as a message does`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        let far = try world.accept(.quic)
        try world.simulation.run {
            let stream = try await socket.openStream()
            try await stream.write([1])
            let other = try await far.acceptStream()
            try await other.write([2])
            _ = try await stream.read(upTo: 1)
        }
        world.simulation.advance(by: .seconds(61))
        world.network.cut(.quic)
        try receive(socket, in: world)
        #expect(world.record.demotions.isEmpty)
    }

    @Test func `The network on which it was dialled takes the blame`() throws {  // R54
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        world.place.current = "office"
        world.network.cut(.quic)
        try receive(socket, in: world)
        #expect(try world.connect() == .quic)
        world.place.current = "home"
        #expect(try world.connect() == .webSocket)
        #expect(world.history(on: "home")[.quic].demotion != nil)
        #expect(world.history(on: "office")[.quic].demotion == nil)
    }

    @Test func `A further failure restarts the day`() throws {  // R54
        let world = try DirectWorld()
        defer { world.end() }
        for pause in [0, 80_000] {
            world.simulation.advance(by: .seconds(pause))
            // While it stands back, QUIC carries only where the WebSocket cannot.
            world.network.change(.webSocket) { $0.refusal = TransportError(.refused, "no") }
            let socket = try world.open()
            #expect(socket.info.transport == .quic)
            world.network.cut(.quic)
            try receive(socket, in: world)
        }
        world.network.change(.webSocket) { $0.refusal = nil }
        world.simulation.advance(by: .seconds(80_000))
        #expect(world.record.demotions[.quic] != nil)
        #expect(try world.connect() == .webSocket)
        world.simulation.advance(by: .seconds(6500))
        #expect(try world.connect() == .quic)
    }

    @Test func `A network that is down altogether blames nobody`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        for transport in [TransportName.quic, .webSocket] { world.network.change(transport) { $0.isSilent = true } }
        world.network.cut(.quic)
        try receive(socket, in: world)
        #expect(try world.failure() != nil)
        for transport in [TransportName.quic, .webSocket] { world.network.change(transport) { $0.isSilent = false } }
        #expect(try world.connect() == .quic)
        #expect(world.history()[.quic].demotion == nil)
    }

    @Test func `A path that is lost because the machine has no network blames nobody`() throws {  // R54
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        world.place.current = nil
        world.network.cut(.quic)
        try receive(socket, in: world)
        world.place.current = "home"
        #expect(world.record.demotions.isEmpty)
        #expect(try world.connect() == .quic)
        #expect(world.history()[.quic].demotion == nil)
    }

    @Test func `A dial that a wake starts over has proven nothing`() throws {  // R54
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        for transport in [TransportName.quic, .webSocket] { world.network.change(transport) { $0.isSilent = true } }
        world.network.cut(.quic)
        try receive(socket, in: world)
        let opening = world.simulation.start { [carrier = world.carrier] in try? await carrier.open() }
        world.simulation.advance(by: .seconds(5))
        for transport in [TransportName.quic, .webSocket] { world.network.change(transport) { $0.isSilent = false } }
        try world.simulation.run { [carrier = world.carrier] in await carrier.wake() }
        let fresh = try #require(try world.simulation.run { await opening.value })
        #expect(fresh.info.transport == .quic)
        #expect(world.history()[.quic].demotion == nil)
    }

    @Test func `The state is that of the session that still stands`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        func state() -> CarrierState { world.carrier.states.latest }
        func open(_ transport: TransportName) -> CarrierState {
            .open(CarrierPath(carrier: "direct", transport: transport))
        }
        let first = try world.open()
        for transport in [TransportName.quic, .webSocket] {
            world.network.change(transport) { $0.refusal = TransportError(.refused, "no") }
        }
        #expect(try world.failure() != nil)
        #expect(state() == open(.quic))
        world.network.change(.webSocket) { $0.refusal = nil }
        let second = try world.open()
        #expect(state() == open(.webSocket))
        try world.simulation.run { _ = await second.close() }
        #expect(state() == open(.quic))
        try world.simulation.run { _ = await first.close() }
        #expect(state() == .idle)
    }

    @Test(arguments: [TransportError.Code.refused, .forgotten])
    func `A service that has gone or started anew is not the network's fault`(code: TransportError.Code) {  // B50
        let close = Close(.pathLost, origin: .path, cause: TransportError(code, "nobody knows the session"))
        #expect(!SessionEnding(transport: .quic, close: close, sinceFirstMessage: nil).blamesPath)
        let silence = Close(.pathLost, origin: .path, cause: TransportError(.idle, "no answer"))
        #expect(SessionEnding(transport: .quic, close: silence, sinceFirstMessage: nil).blamesPath)
    }
}
