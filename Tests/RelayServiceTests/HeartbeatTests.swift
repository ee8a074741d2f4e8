import MemoryTransport
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import RelayCarrier
@testable import RelayService

/// The relay's one timer, and whose address counts, in simulated time.
@Suite struct HeartbeatTests {
    // The relay's cadence does not follow traffic, and a dead uplink makes room within two heartbeats.
    @Test func `Pings come at whole multiples of the heartbeat, and who is silent makes room`() throws {
        let world = try RelayWorld()
        let pings = Mutex<[RelayWire.Role: [Instant]]>([:])
        try world.run {
            let simulation = world.simulation
            let isDead = Mutex(false)
            let service = RelayService(executor: simulation.executor, time: simulation.time)
            try await world.start { socket in
                let role: RelayWire.Role = socket.info.target.path.hasSuffix("/box") ? .box : .app
                let tapped = TappedSocket(
                    socket,
                    pinged: {
                        pings.withLock { $0[role, default: []].append(simulation.time.now()) }
                        return role == .app || !isDead.withLock { $0 }
                    })
                await service.serve(tapped, target: socket.info.target)
            }
            let box = try await world.join(.box)
            let app = try await world.join(.app)
            #expect(try await app.next(.text) == Bytes("ready"))
            for _ in 0..<500 {
                try await app.send(Message(Bytes("traffic")))
                try await simulation.time.sleep(for: .milliseconds(170))
            }
            let beats = pings.withLock(\.self)
            for role in RelayWire.Role.allCases {
                let times = try #require(beats[role])
                #expect(times.count == 5 || times.count == 6)
                #expect(times.allSatisfy { $0.nanoseconds % 15_000_000_000 == 0 })
            }
            isDead.withLock { $0 = true }
            let death = simulation.time.now()
            #expect(try await app.next(.text) == Bytes("gone"))
            #expect(simulation.time.now() - death <= .seconds(30))
            let next = try await world.join(.box)
            #expect(try await next.next(.text) == Bytes("ready"))
            for socket in [box, app, next] { await socket.close() }
            await world.stop()
        }
    }

    // The fault of a limit by what the client wrote: without a proxy of one's own the entry is not looked at.
    @Test(arguments: [true, false])
    func `The address of the proxy counts only where the proxy is trusted`(trustsProxy: Bool) throws {
        let world = try RelayWorld()
        try world.run {
            var limits = RelayLimits()
            limits.socketsPerAddress = 1
            let service = RelayService(
                limits: limits, trustsProxy: trustsProxy, executor: world.simulation.executor,
                time: world.simulation.time)
            let count = Mutex(0)
            try await world.start { socket in
                var info = socket.info
                info.remoteAddress = SocketAddress(.ipv4(.loopback), port: 1)
                info.forwardedFor = count.withLock { count in
                    count += 1
                    return "192.0.2.\(count)"
                }
                await service.serve(TappedSocket(socket, info: info), target: socket.info.target)
            }
            let first = try await world.join(.box)
            let second = try await world.join(.app)
            if trustsProxy {
                #expect(try await second.next(.text) == Bytes("ready"))
            } else {
                #expect(await second.end() == Close(.busy, reason: "full", origin: .remote))
            }
            await first.close()
            await second.close()
            await world.stop()
        }
    }

    @Test func `A socket without text is told so`() throws {
        let world = try RelayWorld()
        try world.run {
            let service = RelayService(executor: world.simulation.executor, time: world.simulation.time)
            try await world.start { socket in
                var info = socket.info
                info.capabilities = .streams
                await service.serve(TappedSocket(socket, info: info), target: socket.info.target)
            }
            #expect(await (try world.join(.app)).end().code == .unsupported)
            await world.stop()
        }
    }
}
