import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import FallbackCarrier

/// The way back to the tunnel, where one is configured (R115).
@Suite struct SwitchBackTests {
    /// A world whose relay has taken over at the start, with a session of it.
    private func fallen(probe: Duration = .seconds(60)) throws -> (world: FallbackWorld, near: any Socket) {
        let world = try FallbackWorld {
            $0.switchBack = ProbingSwitchBack(probe: probe, dwell: .seconds(10))
        }
        world.tunnel.script = .fail(FallbackWorld.refused())
        let near = try world.open()
        #expect(near.info.transport == "relay")
        #expect(!world.journal.words.contains("tunnel closes"))
        return (world, near)
    }

    @Test func `A tunnel that stands for 10 s takes over, and nothing ends before that`() throws {
        let (world, near) = try fallen()
        defer { world.end() }
        world.tunnel.script = .dial
        world.simulation.advance(by: .milliseconds(59_999))
        #expect(world.journal.count(of: "tunnel opens") == 1)
        world.simulation.advance(by: .milliseconds(1))
        #expect(world.journal.count(of: "tunnel opens") == 2)
        world.simulation.advance(by: .milliseconds(9999))
        #expect(world.carrier.takeover != nil)
        #expect(try world.end(of: near)?.code == .goingAway)
        #expect(world.now == .seconds(70))
        #expect(world.carrier.takeover == nil && world.carrier.current == "tunnel")
        #expect(world.log.lines.last?.message == "tunnel takes over from relay again")
        // The session that was tried is the one that is handed out.
        let far = try world.accept("tunnel")
        let back = try world.open()
        #expect(world.journal.count(of: "tunnel opens") == 2)
        try world.answer(back, far)
        world.simulation.advance(by: .seconds(3600))
        #expect(world.journal.count(of: "relay opens") == 1)
    }

    @Test func `What has arrived on a session that was tried is not lost`() throws {
        let (world, near) = try fallen()
        defer { world.end() }
        world.tunnel.script = .dial
        world.simulation.advance(by: .seconds(61))
        let far = try world.accept("tunnel")
        try world.simulation.run { try await far.send([Message([7]), Message([8])]) }
        world.simulation.advance(by: .seconds(9))
        _ = try world.end(of: near)
        let back = try world.open(firstFlight: [5])
        let early = try world.simulation.run { try await back.receive().map(\.payload) }
        #expect(early == [[7], [8]])
        #expect(try world.simulation.run { try await far.receive().map(\.payload) } == [[5]])
    }

    @Test(arguments: [ScriptedCarrier.Script.fail(FallbackWorld.refused()), .hang])
    func `A tunnel that does not open is tried again later`(script: ScriptedCarrier.Script) throws {
        let (world, near) = try fallen()
        defer { world.end() }
        world.tunnel.script = script
        world.simulation.advance(by: .seconds(200))
        #expect(world.journal.count(of: "tunnel opens") == 4)
        #expect(world.carrier.takeover != nil)
        try world.answer(near, try world.accept("relay"))
    }

    @Test func `A tunnel that ends within its 10 s does not take over`() throws {
        let (world, near) = try fallen()
        defer { world.end() }
        world.tunnel.script = .dial
        world.simulation.advance(by: .seconds(65))
        let far = try world.accept("tunnel")
        world.simulation.start { _ = await far.close(.restarting, reason: "") }
        world.simulation.advance(by: .seconds(59))
        #expect(world.carrier.takeover != nil)
        #expect(world.journal.count(of: "tunnel opens") == 2)
        world.simulation.advance(by: .seconds(11))
        #expect(world.carrier.takeover == nil)
        _ = near
    }

    // No more than one return a minute.
    @Test func `A tunnel that fails after its return stays away for a minute`() throws {
        let (world, near) = try fallen(probe: .seconds(1))
        defer { world.end() }
        world.tunnel.script = .dial
        #expect(try world.end(of: near)?.code == .goingAway)
        #expect(world.now == .seconds(11))
        let back = try world.open()
        try world.drop(back, try world.accept("tunnel"))
        world.tunnel.script = .dial
        #expect(try world.open().info.transport == "relay")
        let before = world.journal.count(of: "tunnel opens")
        world.simulation.advance(by: .milliseconds(59_999))
        #expect(world.journal.count(of: "tunnel opens") == before)
        world.simulation.advance(by: .milliseconds(1))
        #expect(world.journal.count(of: "tunnel opens") == before + 1)
    }

    @Test func `A wake tries the tunnel at once`() throws {
        let (world, near) = try fallen()
        defer { world.end() }
        world.tunnel.script = .dial
        try world.wake()
        world.simulation.drain()
        #expect(world.journal.count(of: "tunnel opens") == 2)
        #expect(try world.end(of: near)?.code == .goingAway)
        #expect(world.now == .seconds(10))
        // Nobody takes the session, and it is let go.
        world.simulation.advance(by: .seconds(11))
        #expect(world.network.openPaths(of: "tunnel") == 0)
    }

    @Test func `Closing ends what is being tried`() throws {
        let (world, _) = try fallen()
        world.tunnel.script = .dial
        world.simulation.advance(by: .seconds(65))
        try world.simulation.run { [carrier = world.carrier] in await carrier.close() }
        #expect(world.network.openPaths(of: "tunnel") == 0)
        world.end()
    }
}
