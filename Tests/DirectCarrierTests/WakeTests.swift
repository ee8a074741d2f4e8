import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// What a wake does to sessions that stand and to dials under way, through the whole carrier (B05, B06, R60, R61).
@Suite struct WakeTests {
    private func wake(_ world: DirectWorld) throws {
        try world.simulation.run { [carrier = world.carrier] in await carrier.wake() }
    }

    private func silence(_ isSilent: Bool, _ world: DirectWorld) {
        for transport in [TransportName.quic, .webSocket] { world.network.change(transport) { $0.isSilent = isSilent } }
    }

    /// How a session has ended; nil while it has not.
    private func end(of socket: any Socket, in world: DirectWorld) throws -> Close? {
        let task = world.simulation.start { () async -> Close? in
            do throws(Close) { _ = try await socket.receive() } catch { return error }
            return nil
        }
        world.simulation.drain()
        task.cancel()
        let close = try world.simulation.run { await task.value }
        return close?.origin == .cancellation ? nil : close
    }

    @Test func `A session that answers stays, and the dial beside the question is given up`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        try wake(world)
        // Both take a round trip; the dial was begun beside the question.
        #expect(world.dials(.quic) == [.zero, .milliseconds(40)])
        world.simulation.advance(by: .seconds(20))
        #expect(try end(of: standing, in: world) == nil)
        #expect(world.openPaths == 1)
        #expect(world.carrier.states.latest == .open(CarrierPath(carrier: "direct", transport: .quic)))
        #expect(world.record.demotions.isEmpty)
        try world.simulation.run { try await standing.send(Message(Bytes("still here"))) }
        #expect(try world.connect() == .quic)
    }

    @Test func `A session that is silent for a second gives way to the new one, which is ready by then`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        world.network.vanish(.quic)
        world.place.current = "office"
        let woken = world.simulation.time.now()
        try wake(world)
        let closed = try world.simulation.run { () async -> Close? in
            do throws(Close) { _ = try await standing.receive() } catch { return error }
            return nil
        }
        #expect(closed?.code == .goingAway && closed?.origin == .local)
        #expect(world.simulation.time.now() - woken == .seconds(1))
        let fresh = try world.open()
        // No time was needed.
        #expect(world.simulation.time.now() - woken == .seconds(1))
        #expect(world.carrier.reports.last?.network == "office")
        world.simulation.advance(by: .seconds(30))
        #expect(try end(of: fresh, in: world) == nil)
        // A local end blames nobody.
        #expect(world.record.demotions.isEmpty)
        withExtendedLifetime(standing) {}
    }

    @Test func `A session whose end comes as the answer is followed by the one that is being dialled`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        try wake(world)
        world.network.cut(.quic)
        #expect(try end(of: standing, in: world)?.code == .pathLost)
        let woken = world.simulation.time.now()
        let fresh = try world.open()
        #expect(world.dials(.quic).count == 2)
        #expect(world.simulation.time.now() - woken == .milliseconds(40))
        world.simulation.advance(by: .seconds(30))
        #expect(try end(of: fresh, in: world) == nil)
        #expect(world.openPaths == 1)
    }

    @Test func `A first flight travels on the session that was dialled without it`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        _ = try world.accept(.quic)
        try wake(world)
        world.network.cut(.quic)
        _ = try end(of: standing, in: world)
        let fresh = try world.simulation.run { [carrier = world.carrier] in try await carrier.open(firstFlight: [7]) }
        let far = try world.accept(.quic)
        #expect(try world.simulation.run { try await far.receive() }.map(\.payload) == [[7]])
        withExtendedLifetime(fresh) {}
    }

    @Test func `A session on which the first flight cannot be sent is closed`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        try wake(world)
        world.network.cut(.quic)
        _ = try end(of: standing, in: world)
        world.simulation.advance(by: .milliseconds(50))
        #expect(world.openPaths == 1)
        let tooLong = Bytes(repeating: 0, count: Limits.defaultMaxMessageBytes + 1)
        let close = try world.simulation.run { [carrier = world.carrier] () async -> Close? in
            do throws(Close) { _ = try await carrier.open(firstFlight: tooLong) } catch { return error }
            return nil
        }
        #expect(close?.code == .tooBig)
        // Its other end hears of it; nothing waits for that.
        let far = try world.accept(.quic)
        _ = try world.simulation.run { try? await far.receive() }
        world.simulation.advance(by: .seconds(5))
        #expect(world.openPaths == 0)
        #expect(world.carrier.states.latest == .idle)
    }

    // B06
    @Test func `Where the way is still closed the session waits for it, and is kept when it opens`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        silence(true, world)
        try wake(world)
        world.simulation.advance(by: .seconds(3))
        #expect(try end(of: standing, in: world) == nil)
        silence(false, world)
        world.simulation.advance(by: .seconds(20))
        #expect(try end(of: standing, in: world) == nil)
        #expect(world.openPaths == 1)
    }

    @Test func `A new session that nobody takes is let go`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        world.network.vanish(.quic)
        try wake(world)
        world.simulation.advance(by: .seconds(2))
        #expect(world.dials(.quic).count == 2)
        #expect(try world.accept(.quic) !== world.accept(.quic))
        world.simulation.advance(by: .seconds(60))
        #expect(world.openPaths == 0)
        withExtendedLifetime(standing) {}
    }

    @Test func `A new session waits for whoever takes it, also when its own dials come to their end meanwhile`() throws
    {
        let world = try DirectWorld { $0.limits.handshakeTimeout = .seconds(3) }
        defer { world.end() }
        let standing = try world.open()
        world.network.vanish(.quic)
        world.network.change(.quic) { $0.isSilent = true }
        try wake(world)
        // The WebSocket has won, the session that stood was asked for a second, and QUIC was tried for three.
        world.simulation.advance(by: .seconds(5))
        #expect(world.carrier.reports.last?.candidates.allSatisfy { $0.end != nil } == true)
        let fresh = try world.open()
        #expect(fresh.info.transport == .webSocket)
        #expect(world.dials(.webSocket).count == 1)
        withExtendedLifetime((standing, fresh)) {}
    }

    @Test func `A wake while the carrier closes dials nothing`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        world.simulation.start { [carrier = world.carrier] in await carrier.close() }
        world.simulation.drain()
        #expect(world.openPaths == 1)
        try wake(world)
        world.simulation.advance(by: .seconds(60))
        #expect(world.dials(.quic).count == 1)
        #expect(world.openPaths == 0)
        withExtendedLifetime(standing) {}
    }

    @Test func `Wakes that come in a row cost one session at most`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        for pause in [0, 10, 39, 40, 41, 200, 999, 1000] {
            try wake(world)
            world.simulation.advance(by: .milliseconds(pause))
        }
        world.simulation.advance(by: .seconds(60))
        #expect(try end(of: standing, in: world) == nil)
        #expect(world.openPaths == 1)
    }

    @Test func `A wake dials afresh`() throws {  // R61
        let world = try DirectWorld()
        defer { world.end() }
        silence(true, world)
        let opening = world.simulation.start { [carrier = world.carrier] in try? await carrier.open() }
        world.simulation.advance(by: .seconds(5))
        silence(false, world)
        world.place.current = "office"
        let woken = world.simulation.time.now()
        try wake(world)
        let fresh = try #require(try world.simulation.run { await opening.value })
        #expect(world.simulation.time.now() - woken == .milliseconds(40))
        #expect(world.carrier.reports.last?.network == "office")
        withExtendedLifetime(fresh) {}
    }

    @Test func `A session that has moved to another network blames none`() throws {  // R54
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        world.network.migrate(.quic)
        world.network.cut(.quic)
        #expect(try end(of: standing, in: world)?.code == .pathLost)
        #expect(world.record.demotions.isEmpty)
        #expect(try world.connect() == .quic)
    }

    @Test func `Closing in the middle of a wake leaves nothing`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        world.network.vanish(.quic)
        try wake(world)
        world.simulation.advance(by: .milliseconds(100))
        try world.simulation.run { [carrier = world.carrier] in await carrier.close() }
        world.simulation.advance(by: .seconds(60))
        #expect(world.openPaths == 0)
        withExtendedLifetime(standing) {}
    }
}
