import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// QUIC is tried again while the WebSocket's session stands, as often as the policy says (R38, R41). Simulated time.
@Suite struct ProbeTests {
    /// A world in which QUIC stands back because it did not open, and a session over the WebSocket stands.
    private func demoted() throws -> (DirectWorld, any Socket) {
        let world = try DirectWorld(demotion: EvidenceDemotionPolicy())
        world.network.change(.quic) { $0.isSilent = true }
        for _ in 0..<2 {
            #expect(try world.connect() == .webSocket)
            world.simulation.advance(by: .seconds(20))
        }
        #expect(world.history()[.quic].demotion?.kind == .opening)
        return (world, try world.open())
    }

    /// How many dials of QUIC there have been.
    private func count(_ world: DirectWorld) -> Int { world.dials(.quic).count }

    @Test func `A session that just stays up does not keep QUIC back once it opens again`() throws {
        let (world, standing) = try demoted()
        defer { world.end() }
        world.simulation.advance(by: .seconds(60))
        let before = count(world)
        world.network.change(.quic) { $0.isSilent = false }
        world.simulation.advance(by: .seconds(600))
        #expect(count(world) == before + 1)
        #expect(world.history()[.quic].demotion == nil)
        #expect(world.log.lines.contains { $0.message.contains("stands back no longer: it opens again") })
        // It was only to learn; the session stays, and nothing more is to be found out.
        #expect(world.openPaths == 1)
        #expect(world.carrier.states.latest == .open(CarrierPath(carrier: "direct", transport: .webSocket)))
        #expect(world.simulation.time.nextDeadline == nil)
        #expect(try world.connect() == .quic)
        withExtendedLifetime(standing) {}
    }

    @Test func `QUIC that stays silent is tried every ten minutes, until it stands back no longer`() throws {
        let (world, standing) = try demoted()
        defer { world.end() }
        let (begun, before) = (world.simulation.time.now(), count(world))
        let until = try #require(world.history()[.quic].demotion).until
        world.simulation.advance(by: .seconds(until.seconds - world.simulation.time.wallNow().seconds))
        let probes = world.dials(.quic).dropFirst(before)
        #expect((2...3).contains(probes.count))
        for (one, next) in zip(probes, probes.dropFirst()) { #expect(next - one >= .seconds(600)) }
        #expect(world.simulation.time.nextDeadline == nil, "since \(begun)")
        world.simulation.advance(by: .seconds(86_400))
        #expect(count(world) == before + probes.count)
        withExtendedLifetime(standing) {}
    }

    @Test func `What has broken after it opened is not tried, and no timer runs`() throws {
        let world = try DirectWorld(demotion: EvidenceDemotionPolicy())
        defer { world.end() }
        for _ in 0..<2 {
            let socket = try world.open()
            world.network.cut(.quic)
            _ = try world.simulation.run { try? await socket.receive() }
            #expect(try world.connect() == .webSocket)
            world.simulation.advance(by: .seconds(20))
        }
        #expect(world.history()[.quic].demotion?.kind == .carrying)
        let standing = try world.open()
        #expect(standing.info.transport == .webSocket)
        world.simulation.advance(by: .seconds(20))
        #expect(world.simulation.time.nextDeadline == nil)
        withExtendedLifetime(standing) {}
    }

    @Test func `Where nothing stands back no timer runs`() throws {
        let world = try DirectWorld(demotion: EvidenceDemotionPolicy())
        defer { world.end() }
        let standing = try world.open()
        #expect(world.simulation.time.nextDeadline == nil)
        withExtendedLifetime(standing) {}
    }

    @Test func `The timer ends with the session`() throws {
        let (world, standing) = try demoted()
        defer { world.end() }
        world.simulation.advance(by: .seconds(30))
        #expect(world.simulation.time.nextDeadline != nil)
        try world.simulation.run { _ = await standing.close() }
        world.simulation.drain()
        #expect(world.simulation.time.nextDeadline == nil)
    }

    @Test(arguments: [60, 585])
    func `A carrier that closes ends the timer and the dial`(seconds: Int) throws {
        let (world, standing) = try demoted()
        defer { world.end() }
        let before = count(world)
        world.simulation.advance(by: .seconds(seconds))
        let isDialling = count(world) == before + 1
        #expect(isDialling == (seconds > 60))
        try world.simulation.run(limit: .seconds(5)) { [carrier = world.carrier] in await carrier.close() }
        world.simulation.advance(by: .seconds(5))
        #expect(world.simulation.time.nextDeadline == nil)
        #expect(world.openPaths == 0)
        withExtendedLifetime(standing) {}
    }

    @Test func `A wake gives up the dial, and on the other network nothing is tried`() throws {
        let (world, standing) = try demoted()
        defer { world.end() }
        let before = count(world)
        world.simulation.advance(by: .seconds(585))
        #expect(count(world) == before + 1)
        world.place.current = "office"
        world.network.change(.quic) { $0.isSilent = false }
        try world.simulation.run { [carrier = world.carrier] in await carrier.wake() }
        world.simulation.advance(by: .seconds(5))
        #expect(world.openPaths == 1)
        #expect(world.history()[.quic].demotion != nil)
        let dials = count(world)
        world.simulation.advance(by: .seconds(7200))
        #expect(count(world) == dials)
        #expect(world.simulation.time.nextDeadline == nil)
        withExtendedLifetime(standing) {}
    }

    @Test func `Two carriers of one destination try it in turn, not twice`() throws {  // R41
        let (world, standing) = try demoted()
        defer { world.end() }
        let other = try world.another()
        let second = try world.simulation.run { try await other.open() }
        let before = count(world)
        world.simulation.advance(by: .seconds(1200))
        let probes = world.dials(.quic).dropFirst(before)
        #expect((1...2).contains(probes.count), "\(probes)")
        world.simulation.start { await other.close() }
        withExtendedLifetime((standing, second)) {}
    }

    @Test func `A carrier that nobody holds is not kept by its timer`() throws {
        let (world, standing) = try demoted()
        defer { world.end() }
        var other: DirectCarrier? = try world.another()
        weak let seen = other
        let second = try world.simulation.run { [carrier = other] in try await carrier?.open() }
        world.simulation.advance(by: .seconds(30))
        other = nil
        world.simulation.drain()
        #expect(seen == nil)
        withExtendedLifetime((standing, second)) {}
    }
}
