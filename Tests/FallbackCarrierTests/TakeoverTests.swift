import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import FallbackCarrier

/// When the relay takes over from the tunnel, and when it does not (R108–R117, R169, R178).
@Suite struct TakeoverTests {
    // R108, R114, R169
    @Test func `The relay is not even made while the tunnel carries`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let (near, far) = try world.carry()
        world.simulation.advance(by: .seconds(3600))
        try world.answer(near, far)
        #expect(!world.hasRelay)
        #expect(world.carrier.takeover == nil)
        #expect(world.carrier.current == "tunnel")
        #expect(world.carrier.states.latest == .open(CarrierPath(carrier: "tunnel", transport: "tunnel")))
    }

    // R109, R169
    @Test(arguments: [
        FallbackWorld.refused(),
        Close(.nobodyThere, origin: .remote),
        .pathLost(TransportError(.timedOut, "no answer")),
        Close(.restarting, origin: .remote),
        Close(.tooSlow, reason: "no message 2", origin: .local),
    ])
    func `A tunnel that never carried and does not open hands over at once`(close: Close) throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .fail(close)
        let socket = try world.open()
        #expect(world.now == .zero)
        #expect(socket.info.transport == "relay")
        #expect(world.journal.words == ["tunnel opens", "tunnel closes", "relay is made", "relay opens"])
        #expect(world.carrier.states.latest == .open(CarrierPath(carrier: "relay", transport: "relay")))
    }

    // R109, R110, R169
    @Test(arguments: [CloseCode.refused, .goingAway, .normal])
    func `A session that ends after its handshake alone hands over at once`(code: CloseCode) throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let near = try world.open()
        #expect(near.info.transport == "tunnel")
        let far = try world.accept("tunnel")
        try world.drop(near, far, code)
        #expect(try world.open().info.transport == "relay")
        #expect(world.now == .zero)
    }

    // R111, R169
    @Test func `A tunnel that does not open within 5 s hands over, and whoever waits goes on there`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .hang
        #expect(try world.open().info.transport == "relay")
        #expect(world.relayed == .seconds(5))
        #expect(world.carrier.takeover?.reason == .silent(.seconds(5)))
    }

    // R110, R111, R169
    @Test(arguments: [true, false])
    func `A session on which nobody answers ends after 5 s, and the relay takes over`(isFlight: Bool) throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let near = try world.open(firstFlight: isFlight ? [7] : nil)
        if !isFlight { try world.simulation.run { try await near.send(Message([7])) } }
        let close = try world.end(of: near)
        #expect(world.now == .seconds(5))
        #expect(close?.code == .goingAway)
        #expect(close?.origin == .local)
        #expect(try world.open().info.transport == "relay")
    }

    @Test func `Where nothing was asked silence says nothing`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let near = try world.open()
        world.simulation.advance(by: .seconds(3600))
        #expect(!world.hasRelay)
        try world.simulation.run { try await near.send(Message([7])) }
        world.simulation.advance(by: .milliseconds(4999))
        #expect(!world.hasRelay && world.carrier.takeover == nil)
        world.simulation.advance(by: .milliseconds(1))
        #expect(world.carrier.takeover?.reason == .silent(.seconds(5)))
    }

    // R112, R169
    @Test func `A tunnel that carried and drops briefly stays`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let (near, far) = try world.carry()
        try world.drop(near, far)
        world.tunnel.script = .fail(.pathLost(TransportError(.unreachable, "no route")))
        let opening = world.beginOpen()
        world.simulation.advance(by: .seconds(4))
        #expect(world.journal.count(of: "tunnel opens") > 2, "it is tried again within the time it has")
        world.tunnel.script = .dial
        let again = try world.simulation.run { try await opening.value.get() }
        #expect(again.info.transport == "tunnel")
        try world.answer(again, try world.accept("tunnel"))
        world.simulation.advance(by: .seconds(3600))
        #expect(!world.hasRelay)
    }

    // R112, R169
    @Test(arguments: [
        ScriptedCarrier.Script.fail(FallbackWorld.refused()), .fail(.pathLost(TransportError(.refused, "nobody"))),
        .hang,
    ])
    func `One that stays down moves after 5 s`(script: ScriptedCarrier.Script) throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let (near, far) = try world.carry()
        world.simulation.advance(by: .seconds(60))
        try world.drop(near, far)
        world.tunnel.script = script
        #expect(try world.open().info.transport == "relay")
        #expect(world.relayed == .seconds(65))
        guard case .lost = world.carrier.takeover?.reason else {
            Issue.record("the reason is \(String(describing: world.carrier.takeover))")
            return
        }
    }

    // R112, R169
    @Test func `One that a wake dials into silence moves 5 s after the wake`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let (near, far) = try world.carry()
        world.simulation.advance(by: .seconds(60))
        try world.wake()
        #expect(world.journal.words.last == "tunnel wakes")
        world.simulation.advance(by: .seconds(1))
        try world.drop(near, far)
        world.tunnel.script = .hang
        #expect(try world.open().info.transport == "relay")
        #expect(world.relayed == .seconds(65))
    }

    @Test func `One that never carried gets the same 5 s after a wake`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .failLater(.seconds(2), .pathLost(TransportError(.unreachable, "no route")))
        let opening = world.beginOpen()
        world.simulation.advance(by: .seconds(1))
        try world.wake()
        world.simulation.advance(by: .seconds(2))
        #expect(!world.hasRelay, "the failure was of the network that was")
        _ = try world.simulation.run { try await opening.value.get() }
        #expect(world.relayed == .seconds(6))
    }

    // R113, R178
    @Test func `Two closes a second apart do not hand over where the tunnel carries at 3 s`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        var (near, far) = try world.carry()
        try world.drop(near, far, .refused)
        near = try world.open()
        far = try world.accept("tunnel")
        world.simulation.advance(by: .seconds(1))
        try world.drop(near, far, .refused)
        #expect(world.carrier.takeover == nil)
        near = try world.open()
        far = try world.accept("tunnel")
        world.simulation.advance(by: .seconds(2))
        try world.answer(near, far)
        world.simulation.advance(by: .seconds(3600))
        #expect(!world.hasRelay)
    }

    // R91, R117
    @Test func `A tunnel that may not be used is left without a wait, one that carried too`() throws {
        for hasCarried in [false, true] {
            let world = try FallbackWorld()
            defer { world.end() }
            if hasCarried {
                let (near, far) = try world.carry()
                try world.drop(near, far)
            }
            world.tunnel.script = .fail(
                Close(
                    .unsupported, reason: "the box takes no tunnel", origin: .local,
                    cause: TransportError(.unsupported, "the box takes no tunnel")))
            #expect(try world.open().info.transport == "relay")
            #expect(world.now == .zero)
        }
    }

    // R114
    @Test func `The relay is not dialled before the tunnel has ended`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .fail(FallbackWorld.refused())
        world.tunnel.closeTakes = .milliseconds(300)
        _ = try world.open()
        #expect(world.journal.words == ["tunnel opens", "tunnel closes", "relay is made", "relay opens"])
        #expect(world.relayed == .milliseconds(300))
    }

    // R114: where the path is dead no goodbye gets through.
    @Test func `A goodbye that nobody takes holds the relay up for a second`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .fail(FallbackWorld.refused())
        world.tunnel.closeTakes = .seconds(30)
        _ = try world.open()
        #expect(world.relayed == .seconds(1))
    }

    // R115
    @Test func `There is no way back for the life of the carrier`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .fail(FallbackWorld.refused())
        let near = try world.open()
        world.tunnel.script = .dial
        try world.drop(near, try world.accept("relay"))
        try world.wake()
        world.simulation.advance(by: .seconds(86_400))
        #expect(try world.open().info.transport == "relay")
        #expect(world.journal.count(of: "tunnel opens") == 1)
        #expect(world.journal.count(of: "relay is made") == 1)
        #expect(world.journal.words.contains("relay wakes"))
    }

    @Test func `What the caller does itself is no reason`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .hang
        let opening = world.beginOpen()
        opening.cancel()
        let outcome = try world.simulation.run { await opening.value }
        #expect(throws: Close.cancelled) { try outcome.get() }
        world.simulation.advance(by: .seconds(3600))
        #expect(world.carrier.takeover == nil)
        world.tunnel.script = .dial
        for _ in 0..<3 {
            let near = try world.open()
            try world.simulation.run { _ = await near.close() }
            _ = try world.accept("tunnel")
        }
        // A session that nobody holds ends too.
        _ = try world.open()
        world.simulation.advance(by: .seconds(3600))
        #expect(!world.hasRelay)
    }

    @Test func `A stream that is read proves the tunnel as a message does`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        let near = try world.open()
        let far = try world.accept("tunnel")
        try world.simulation.run {
            let stream = try await near.openStream()
            try await stream.write([1])
            let other = try await far.acceptStream()
            try await other.write([2])
            _ = try await stream.read(upTo: 1)
        }
        world.simulation.advance(by: .seconds(3600))
        #expect(!world.hasRelay)
    }

    // R60
    @Test func `A machine that slept through the window has heard nothing because it slept`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.tunnel.script = .hang
        let opening = world.beginOpen()
        world.simulation.time.advance(by: .seconds(8 * 3600))
        world.simulation.drain()
        #expect(world.carrier.takeover == nil)
        world.simulation.advance(by: .seconds(5))
        #expect(world.carrier.takeover != nil)
        _ = try world.simulation.run { try await opening.value.get() }
    }

    // R116, R140, B74
    @Test func `The log says when the relay took over and why, and an error names both`() throws {
        let world = try FallbackWorld()
        defer { world.end() }
        world.network.change("relay") { $0.refusal = TransportError(.refused, "nobody listens") }
        world.tunnel.script = .fail(FallbackWorld.refused())
        let outcome = try world.simulation.run { [opening = world.beginOpen()] in await opening.value }
        let why = "it refused: 4403 refused (not on the list)"
        #expect(throws: Close.self) { try outcome.get() }
        if case .failure(let close) = outcome {
            #expect(close.reason == "relay: 1006 path lost (nobody listens); before, tunnel: \(why)")
            #expect(close.cause?.code == .refused)
        }
        let lines = world.log.lines.filter { $0.level == .warning }.map(\.message)
        #expect(lines == ["relay takes over from tunnel: \(why)"])
        #expect(world.carrier.takeover?.time == world.simulation.time.wallNow())
        #expect(world.carrier.states.latest == .idle)
    }

    // B74
    @Test func `Closing ends both and whoever waits`() throws {
        let world = try FallbackWorld()
        let (near, _) = try world.carry()
        world.tunnel.script = .hang
        let opening = world.beginOpen()
        try world.simulation.run { [carrier = world.carrier] in await carrier.close(.goingAway, reason: "done") }
        #expect(try world.end(of: near)?.code == .goingAway)
        let outcome = try world.simulation.run { await opening.value }
        #expect(throws: Close(.goingAway, reason: "done", origin: .local)) { try outcome.get() }
        #expect(world.carrier.states.latest == .closed(Close(.goingAway, reason: "done", origin: .local)))
        #expect(throws: Close.self) { try world.open() }
        #expect(!world.hasRelay)
        world.end()
    }
}
