import MemoryTransport
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

/// A link in simulated time, over a carrier that dials one memory transport.
@Suite struct LinkTests {
    /// A carrier without a race.
    private final class OneTransport: Carrier {
        let transport: MemoryTransport
        let url: ServiceURL
        let source = CarrierStateSource()
        let wakes = Mutex(0)

        init(_ transport: MemoryTransport, _ url: ServiceURL) {
            self.transport = transport
            self.url = url
        }

        var capabilities: Capabilities { transport.capabilities }
        var protection: Protection { .transport }
        var states: CarrierStates { source.states }

        func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
            if case .closed(let close) = source.latest { throw close }
            do {
                return try await transport.dial(url, options: DialOptions())
            } catch {
                throw .pathLost(error)
            }
        }

        func wake() async { wakes.withLock { $0 += 1 } }

        func close(_ code: CloseCode, reason: String) async {
            source.set(.closed(Close(code, reason: reason, origin: .local)))
        }
    }

    private struct World {
        let simulation = Simulation()
        let network: MemoryNetwork
        let transport: MemoryTransport
        let carrier: OneTransport
        let log = RecordingLog()
        let url: ServiceURL

        init() throws {
            network = MemoryNetwork(time: simulation.time, executor: simulation.executor)
            transport = MemoryTransport(network: network)
            url = try ServiceURL("wss://service.example/")
            carrier = OneTransport(transport, url)
        }

        func link(_ opening: Link.Opening = .eagerly) -> Link {
            Link(
                carrier, opening: opening, executor: simulation.executor, time: simulation.time,
                log: Log(level: .debug, sink: log), random: { 0.5 })
        }

        func listen() throws -> any Listener {
            try simulation.run { [transport, url] in
                try await transport.listen(url.endpoint, options: ListenOptions())
            }
        }
    }

    @Test func `An eager link opens at once and dials again when its session ends`() throws {
        let world = try World()
        let listener = try world.listen()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        let first = try world.simulation.run { try await link.socket() }
        #expect(link.states.latest == .open(CarrierPath(carrier: "", transport: .memory)))
        // R82: it lasted, so the next dial goes out at once.
        world.simulation.advance(by: .seconds(31))
        world.network.cut()
        let end = try world.simulation.run { () async -> Close? in
            do throws(Close) { _ = try await first.receive() } catch { return error }
            return nil
        }
        #expect(end?.code == .pathLost)
        let before = world.simulation.time.now()
        let second = try world.simulation.run { try await link.socket() }
        #expect(second !== first)
        #expect(world.simulation.time.now() == before)
        // Cancelling the task of `run` ends the session.
        running.cancel()
        world.simulation.drain()
        #expect(world.network.openPaths(of: .memory) == 0)
        #expect(link.states.latest == .idle)
        withExtendedLifetime(listener) {}
    }

    @Test func `A session that did not last is followed by a wait`() throws {  // R81
        let world = try World()
        let listener = try world.listen()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        for (round, wait) in [250, 500, 1000].enumerated() {
            let socket = try world.simulation.run { try await link.socket() }
            world.network.cut()
            _ = try world.simulation.run { try? await socket.receive() }
            world.simulation.drain()
            let before = world.simulation.time.now()
            _ = try world.simulation.run { try await link.socket() }
            #expect(world.simulation.time.now() - before == .milliseconds(wait), "after session \(round)")
        }
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }

    @Test func `A day without a network costs few lines and a bounded pace`() throws {  // B25
        let world = try World()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        world.simulation.advance(by: .seconds(86_400))
        let dials = world.network.dials.count
        // With the jitter in the middle a wait is 30 s in the end.
        #expect((2870...2900).contains(dials))
        let lines = world.log.lines.filter { $0.level == .warning }
        #expect((10...13).contains(lines.count), "one for every power of two: \(lines.count)")
        #expect(lines.last?.message.contains("failure 2048 in a row") == true)
        // The service is there at last.
        let listener = try world.listen()
        _ = try world.simulation.run { try await link.socket() }
        #expect(world.log.lines.last?.message.hasPrefix("link: connected · memory after 28") == true)
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }

    // B34
    @Test func `Where a sign-in is missing the next dial comes within five seconds, for hours`() throws {
        let world = try World()
        world.network.change(.memory) {
            $0.refusal = TransportError(.intercepted, "the network needs sign-in or is intercepted")
        }
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        world.simulation.advance(by: .seconds(7200))
        let starts = world.network.dials.map(\.start)
        let pauses = zip(starts, starts.dropFirst()).map { $1 - $0 }
        #expect(pauses.suffix(1000).allSatisfy { $0 == .milliseconds(2500) }, "the jitter is in the middle")
        #expect(world.log.lines.count { $0.level == .warning } <= 13)
        #expect(link.states.latest.description.hasSuffix("(the network needs sign-in or is intercepted)"))
        running.cancel()
        world.simulation.drain()
    }

    @Test func `Whoever asks during a long wait shortens it, once`() throws {
        let world = try World()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        // With the jitter in the middle a wait is 30 s by now.
        world.simulation.advance(by: .seconds(600))
        let (asked, dials) = (world.simulation.time.now(), world.network.dials.count)
        let asking = world.simulation.start { try? await link.socket() }
        world.simulation.advance(by: .seconds(2))
        #expect(world.network.dials.count == dials + 1, "1.5 s after the last failure at the latest")
        // It goes on waiting, and the pace is the old one.
        world.simulation.advance(by: .seconds(600))
        #expect((20...22).contains(world.network.dials.count - dials))
        let listener = try world.listen()
        #expect(try world.simulation.run { await asking.value } != nil)
        #expect(world.simulation.time.now() - asked <= .seconds(640))
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }

    @Test func `Whoever is in no hurry shortens nothing`() throws {
        let world = try World()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        world.simulation.advance(by: .seconds(600))
        let dials = world.network.dials.count
        let waiting = world.simulation.start { try? await link.socket(isUrgent: false) }
        world.simulation.advance(by: .seconds(600))
        #expect(world.network.dials.count - dials == 20)
        let listener = try world.listen()
        #expect(try world.simulation.run { await waiting.value } != nil)
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }

    @Test(arguments: [CloseCode.goingAway, .restarting, .tryAgainLater, .internalError])
    func `A service that goes away gets its clients back one after the other`(code: CloseCode) throws {  // B20, R127
        let world = try World()
        let listener = try world.listen()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        let socket = try world.simulation.run { try await link.socket() }
        let far = try world.simulation.run { try await listener.accept() }
        // R82: it has lasted, so where only this one has ended, the next dial goes out at once.
        world.simulation.advance(by: .seconds(3600))
        try world.simulation.run { _ = await far.close(code, reason: "") }
        _ = try world.simulation.run { try? await socket.receive() }
        let ended = world.simulation.time.now()
        _ = try world.simulation.run { try await link.socket(isUrgent: false) }
        #expect(world.simulation.time.now() - ended == (code == .internalError ? .zero : .seconds(4)))
        running.cancel()
        world.simulation.drain()
    }

    @Test func `A wake ends the wait and starts the backoff over`() throws {  // R61
        let world = try World()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        world.simulation.advance(by: .seconds(600))
        let listener = try world.listen()
        guard case .waiting(let until, _) = link.states.latest else {
            Issue.record("the link does not wait: \(link.states.latest)")
            return
        }
        let now = world.simulation.time.now()
        #expect(until > now)
        try world.simulation.run { await link.wake() }
        _ = try world.simulation.run { try await link.socket() }
        #expect(world.simulation.time.now() == now)
        #expect(world.carrier.wakes.withLock { $0 } == 1)
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }

    @Test func `A lazy link dials only when somebody asks`() throws {
        let world = try World()
        let listener = try world.listen()
        let link = world.link(.lazily)
        let running = world.simulation.start { await link.run() }
        world.simulation.advance(by: .seconds(3600))
        #expect(world.network.dials.isEmpty)
        let socket = try world.simulation.run { try await link.socket() }
        #expect(world.network.dials.count == 1)
        world.network.cut()
        _ = try world.simulation.run { try? await socket.receive() }
        world.simulation.advance(by: .seconds(3600))
        #expect(world.network.dials.count == 1)
        #expect(link.states.latest == .idle)
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }

    @Test func `A closed carrier ends the link and whoever waits`() throws {
        let world = try World()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        let waiting = world.simulation.start { () async -> Close? in
            do throws(Close) { _ = try await link.socket() } catch { return error }
            return nil
        }
        world.simulation.advance(by: .seconds(5))
        let end = try world.simulation.run { [carrier = world.carrier] in
            await carrier.close(.goingAway, reason: "the program stops")
            return await waiting.value
        }
        #expect(end?.code == .goingAway)
        try world.simulation.run { await running.value }
    }

    @Test func `A cancelled wait for a session gives up and nothing else`() throws {
        let world = try World()
        let link = world.link()
        let running = world.simulation.start { await link.run() }
        let waiting = world.simulation.start { () async -> Close? in
            do throws(Close) { _ = try await link.socket() } catch { return error }
            return nil
        }
        world.simulation.advance(by: .seconds(1))
        waiting.cancel()
        #expect(try world.simulation.run { await waiting.value } == .cancelled)
        let listener = try world.listen()
        _ = try world.simulation.run { try await link.socket() }
        running.cancel()
        world.simulation.drain()
        withExtendedLifetime(listener) {}
    }
}
