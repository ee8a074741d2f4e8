import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// The carrier over a scripted network: who carries, what is left behind, what is remembered.
@Suite struct DirectCarrierTests {
    @Test func `QUIC wins where it works, and the WebSocket is never dialled`() throws {  // R34, R36
        let world = try DirectWorld()
        defer { world.end() }
        let socket = try world.open()
        #expect(socket.info.transport == .quic)
        #expect(world.simulation.time.now() == .zero + .milliseconds(40))
        world.simulation.advance(by: .seconds(20))
        #expect(world.dials(.webSocket).isEmpty)
        #expect(world.openPaths == 1)
        #expect(world.record.winner == .quic)
        #expect(world.carrier.states.latest.description == "Connected · QUIC")  // R137
        let report = try #require(world.carrier.reports.last)
        #expect(report.winner == .quic)
        #expect(report.why == "QUIC opened first after 40 ms; WebSocket was not needed")
        #expect(report.candidates[0].steps.map(\.progress) == [.secured, .opened])
        #expect(world.log.lines.count { $0.level == .info } == 1)
    }

    @Test func `A dial is told how long round trips usually take on this network`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let told = OptionsRecorder(inner: world.quic)
        let (simulation, url, memory, place) = (world.simulation, world.url, world.memory, world.place)
        let carrier = try DirectCarrier(
            url: url, transports: [told],
            context: BuildContext(
                executor: simulation.executor, time: simulation.time, memory: memory, network: { place.current }))
        func connect() throws { try simulation.run { _ = await (try await carrier.open()).close() } }
        try connect()
        let now = simulation.time.wallNow()
        memory.change(world.key("home"), at: now) { $0.measured(roundTrip: .milliseconds(40)) }
        try connect()
        world.place.current = "elsewhere"
        try connect()
        #expect(told.all.map(\.usualRoundTrip) == [nil, .milliseconds(40), nil])
        try simulation.run { await carrier.close() }
    }

    @Test func `A silent QUIC costs 250 ms once, and then the WebSocket goes first`() throws {  // B02, R37, R42
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        #expect(try world.open().info.transport == .webSocket)
        #expect(world.simulation.time.now() == .zero + .milliseconds(370))
        world.simulation.advance(by: .seconds(60))
        #expect(world.record.winner == .webSocket)
        // The dial that went on to learn has ended and left nothing.
        #expect(world.carrier.reports.last?.candidates.first?.outcome != .learning)
        let before = world.simulation.time.now()
        #expect(try world.open().info.transport == .webSocket)
        #expect(world.simulation.time.now() - before == .milliseconds(120))
    }

    @Test func `A service without QUIC costs 250 ms once per network and day`() throws {  // R42
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        for network in ["home", "office"] {
            world.place.current = network
            var took: [Duration] = []
            for _ in 0..<24 {
                let before = world.simulation.time.now()
                #expect(try world.connect() == .webSocket)
                took.append(world.simulation.time.now() - before)
                world.simulation.advance(by: .seconds(3600))
            }
            // Three round trips and the close's one, and the head start before the first of them.
            let usual = took[1]
            #expect(took == [usual + .milliseconds(250)] + Array(repeating: usual, count: 23))
        }
    }

    @Test func `A dial that goes on to learn has the ordinary limit of a handshake`() throws {  // R41
        let world = try DirectWorld()
        defer { world.end() }
        world.remember(.webSocket)
        world.network.change(.quic) { $0.isSilent = true }
        let socket = try world.open()
        // It began in its turn, after 250 ms.
        world.simulation.advance(by: .milliseconds(10_120))
        #expect(world.carrier.reports.last?.candidates.last?.outcome == .learning)
        world.simulation.advance(by: .milliseconds(10))
        guard case .failed(let error) = world.carrier.reports.last?.candidates.last?.outcome else {
            Issue.record("it still goes on")
            return
        }
        #expect(error.code == .timedOut)
        withExtendedLifetime(socket) {}
    }

    @Test func `A refused QUIC costs a round trip`() throws {  // R35
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.refusal = TransportError(.refused, "nobody listens") }
        #expect(try world.open().info.transport == .webSocket)
        #expect(world.simulation.time.now() == .zero + .milliseconds(160))
        #expect(world.dials(.webSocket) == [.milliseconds(40)])
    }

    @Test func `A slow QUIC loses, and its dial leaves no socket`() throws {  // R36, R38, R41
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.delay = .milliseconds(600) }
        let socket = try world.open()
        #expect(socket.info.transport == .webSocket)
        #expect(world.record.winner == .webSocket)
        world.simulation.advance(by: .seconds(20))
        #expect(world.network.openPaths(of: .quic) == 0)
        // It would have worked, so it goes first next time.
        #expect(world.record.winner == .quic)
        #expect(world.carrier.reports.last?.candidates.first?.outcome == .wouldHaveWorked)
    }

    @Test func `One lost packet does not keep QUIC second for a day`() throws {  // R38
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        let opening = world.simulation.start { [carrier = world.carrier] in try? await carrier.open() }
        world.simulation.advance(by: .milliseconds(500))
        world.network.change(.quic) { $0.isSilent = false }
        #expect(try world.simulation.run { await opening.value }?.info.transport == .webSocket)
        world.simulation.advance(by: .seconds(1))
        #expect(world.record.winner == .quic)
        #expect(try world.connect() == .quic)
    }

    @Test func `Both dead end in one close that names both`() throws {  // R45
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        world.network.change(.webSocket) { $0.refusal = TransportError(.refused, "nobody listens there") }
        let close = try #require(try world.failure())
        #expect(close.code == .pathLost)
        #expect(close.cause?.code == .refused)
        #expect(close.reason.contains("QUIC: ") && close.reason.contains("WebSocket: nobody listens there"))
        #expect(world.simulation.time.now() == .zero + .seconds(10))
        #expect(world.carrier.states.latest == .idle)
        #expect(world.record == PathRecord())
        // Whoever asked has it, and says it as often as it needs saying.
        #expect(world.log.lines.filter { $0.message.contains("nothing opened") }.map(\.level) == [.debug])
        #expect(!world.log.lines.contains { $0.level > .info })
    }

    @Test func `The service's own refusal is the close`() throws {  // R45
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.refusal = TransportError(.refused, "nobody listens") }
        world.network.change(.webSocket) {
            $0.refusal = TransportError(.upgradeRefused, "the service answered 403", number: 403)
        }
        let close = try #require(try world.failure())
        #expect(close.code == .refused)
        #expect(close.origin == .remote)
    }

    @Test func `With the WebSocket remembered, QUIC is probed in its turn and comes back`() throws {  // R39
        let world = try DirectWorld()
        defer { world.end() }
        world.remember(.webSocket)
        #expect(try world.connect() == .webSocket)
        world.simulation.advance(by: .seconds(1))
        #expect(world.dials(.quic) == [.milliseconds(250)])
        #expect(world.network.openPaths(of: .quic) == 0)
        #expect(try world.connect() == .quic)
    }

    @Test func `30 reconnects over 25 hours with QUIC working have QUIC first again`() throws {  // R177
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        #expect(try world.connect() == .webSocket)
        world.simulation.advance(by: .seconds(11))
        #expect(world.record.winner == .webSocket)
        world.network.change(.quic) { $0.isSilent = false }
        var carried: [TransportName] = []
        for _ in 0..<30 {
            carried.append(try world.connect())
            world.simulation.advance(by: .seconds(3000))
        }
        // The first of them is the last that the WebSocket carries: its probe brings QUIC back.
        #expect(carried == [.webSocket] + Array(repeating: .quic, count: 29))
    }

    @Test func `A reconnect that could not try QUIC lets the memory of the WebSocket expire`() throws {  // R40
        let world = try DirectWorld()
        defer { world.end() }
        world.remember(.webSocket)
        for _ in 0..<29 {
            // Each ends before QUIC's turn comes, and the end of the carrier's network watch cuts the probe short.
            #expect(try world.connect() == .webSocket)
            try world.simulation.run { [carrier = world.carrier] in await carrier.wake() }
            world.simulation.advance(by: .seconds(2900))
        }
        #expect(world.dials(.quic).isEmpty)
        world.simulation.advance(by: .seconds(5900))
        #expect(try world.connect() == .quic)
    }

    // B48
    @Test(arguments: ["day", "evidence"])
    func `200 dials to a service without QUIC keep nobody else on the network from it`(policy: String) throws {
        let demotion: any DemotionPolicy = policy == "day" ? DayDemotionPolicy() : EvidenceDemotionPolicy()
        let world = try DirectWorld(demotion: demotion)
        defer { world.end() }
        let url = try ServiceURL("wss://bare.example/")
        let context = BuildContext(
            executor: world.simulation.executor, time: world.simulation.time, memory: world.memory,
            network: { "home" })
        let bare = try DirectCarrier(
            url: url, transports: [world.quic, world.webSocket], demotion: demotion, context: context)
        let listener = try world.simulation.run { [webSocket = world.webSocket] in
            try await webSocket.listen(url.endpoint, options: ListenOptions())
        }
        for _ in 0..<200 {
            let socket = try world.simulation.run { try await bare.open() }
            #expect(socket.info.transport == .webSocket)
            try world.simulation.run { _ = await socket.close() }
        }
        let bareKey = PathKey(network: "home", destination: "bare.example:443")
        let history = world.memory.history(of: bareKey, at: world.simulation.time.wallNow())
        #expect((history[.quic].demotion != nil) == (policy == "evidence"))
        #expect(world.record == PathRecord(), "nothing is known of the other service")
        let begun = world.simulation.time.now()
        #expect(try world.open().info.transport == .quic)
        #expect(world.simulation.time.now() == begun + .milliseconds(40))
        try world.simulation.run {
            await bare.close()
            await listener.close()
        }
    }

    @Test func `At most one learning dial runs per network`() throws {  // R41
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        for _ in 0..<5 { _ = try world.open() }
        #expect(world.dials(.quic).count <= 2)
        let learning = world.carrier.reports.flatMap(\.candidates).count { $0.outcome == .learning }
        #expect(learning == 1)
    }

    @Test func `Carriers of one host share the learning dials of a destination`() throws {  // R41
        let world = try DirectWorld()
        defer { world.end() }
        let others = [try world.another(), try world.another()]
        world.network.change(.quic) { $0.isSilent = true }
        for carrier in [world.carrier] + others {
            _ = try world.simulation.run { try await carrier.open() }
        }
        let learning = ([world.carrier] + others).flatMap(\.reports).flatMap(\.candidates)
        #expect(learning.count { $0.outcome == .learning } == 1)
        // Elsewhere it may run at the same time, and once it is over the next one may.
        world.place.current = "office"
        _ = try world.simulation.run { try await others[0].open() }
        #expect(others[0].reports.last?.candidates.contains { $0.outcome == .learning } == true)
        world.simulation.advance(by: .seconds(11))
        _ = try world.simulation.run { try await others[1].open() }
        world.simulation.drain()
        #expect(others[1].reports.last?.candidates.contains { $0.outcome == .waiting } == true)
        for carrier in others { world.simulation.start { await carrier.close() } }
    }

    @Test func `Without a race policy one transport is dialled, once, and nothing else waits`() throws {  // R43
        let world = try DirectWorld()
        defer { world.end() }
        let plain = try DirectCarrier(
            url: world.url, transports: [world.webSocket],
            context: BuildContext(
                executor: world.simulation.executor, time: world.simulation.time, network: { "home" }))
        for round in 1...3 {
            let socket = try world.simulation.run { try await plain.open() }
            #expect(socket.info.transport == .webSocket)
            // No head start, no dial that goes on to learn, no timer.
            #expect(plain.reports.last?.candidates.map(\.outcome) == [.won])
            #expect(world.simulation.time.nextDeadline == nil)
            try world.simulation.run { _ = await socket.close() }
            #expect(world.network.dials.count == round)
        }
        world.simulation.start { await plain.close() }
    }

    @Test func `The race is the policy that was injected`() throws {  // R43
        let world = try DirectWorld()
        defer { world.end() }
        for (policy, webSocket) in [
            (ParallelRacePolicy() as any RacePolicy, Duration.zero), (HeadStartRacePolicy(), .milliseconds(250)),
        ] {
            world.network.change(.quic) { $0.isSilent = true }
            let carrier = try DirectCarrier(
                url: world.url, transports: [world.quic, world.webSocket], race: policy,
                context: BuildContext(executor: world.simulation.executor, time: world.simulation.time))
            let begun = world.simulation.time.now() - .zero
            _ = try world.simulation.run { try await carrier.open() }
            #expect(world.dials(.webSocket).last == begun + webSocket, "\(policy.name)")
            world.simulation.start { await carrier.close() }
        }
    }

    @Test func `Without a network nothing is remembered and nothing probed`() throws {  // R58
        let world = try DirectWorld()
        defer { world.end() }
        world.place.current = nil
        world.network.change(.quic) { $0.isSilent = true }
        #expect(try world.connect() == .webSocket)
        world.simulation.advance(by: .seconds(20))
        world.network.change(.quic) { $0.isSilent = false }
        #expect(try world.connect() == .quic)
        #expect(world.record == PathRecord())
    }

    @Test func `A cancelled open leaves no dial and no socket`() throws {
        for moment in stride(from: 0, through: 400, by: 10) {
            let world = try DirectWorld()
            defer { world.end() }
            world.network.change(.quic) { $0.delay = .milliseconds(150) }
            let opening = world.simulation.start { [carrier = world.carrier] () async -> Close? in
                do throws(Close) { _ = try await carrier.open() } catch { return error }
                return nil
            }
            world.simulation.advance(by: .milliseconds(moment))
            opening.cancel()
            let close = try world.simulation.run { await opening.value }
            #expect(close == nil || close == .cancelled)
            world.simulation.advance(by: .seconds(30))
            #expect(world.openPaths == 0, "cancelled after \(moment) ms")
            #expect(world.simulation.time.nextDeadline == nil, "cancelled after \(moment) ms")
        }
    }

    @Test func `The same instant has one winner`() throws {
        // The WebSocket's third round trip and QUIC's only one end together.
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.delay = .milliseconds(185) }
        let socket = try world.open()
        #expect(world.simulation.time.now() == .zero + .milliseconds(370))
        #expect(world.openPaths == 1)
        world.simulation.advance(by: .seconds(30))
        #expect(world.network.openPaths(of: socket.info.transport) == 1)
        #expect(world.openPaths == 1)
    }

    @Test func `The first flight is the first message, and a probe says nothing`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.isSilent = true }
        let opening = world.simulation.start { [carrier = world.carrier] in
            try? await carrier.open(firstFlight: Bytes("message 1"))
        }
        world.simulation.advance(by: .milliseconds(400))
        world.network.change(.quic) { $0.isSilent = false }
        let near = try world.simulation.run { await opening.value }
        let far = try world.accept(.webSocket)
        let messages = try world.simulation.run { try await far.receive() }
        #expect(messages.map(\.payload) == [Bytes("message 1")])
        #expect(world.network.openPaths(of: .quic) == 0)
        withExtendedLifetime(near) {}
    }

    @Test func `A closed carrier opens nothing more and leaves nothing`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        let standing = try world.open()
        world.network.change(.quic) { $0.isSilent = true }
        world.network.change(.webSocket) { $0.isSilent = true }
        let opening = world.simulation.start { [carrier = world.carrier] () async -> Close? in
            do throws(Close) { _ = try await carrier.open() } catch { return error }
            return nil
        }
        world.simulation.drain()
        world.network.change(.quic) { $0.isSilent = false }
        try world.simulation.run { [carrier = world.carrier] in await carrier.close(.goingAway, reason: "stopping") }
        #expect(try world.simulation.run { await opening.value }?.reason == "stopping")
        #expect(try world.failure()?.reason == "stopping")
        world.simulation.advance(by: .seconds(30))
        #expect(world.openPaths == 0)
        withExtendedLifetime(standing) {}
    }

    @Test func `Branches that protect differently are refused when the chain is built`() throws {
        struct AlwaysProtected: Transport {
            let inner: MemoryTransport
            var name: TransportName { "always" }
            var capabilities: Capabilities { inner.capabilities }
            func protection(of endpoint: Endpoint) -> Protection { .transport }
            func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
                try await inner.dial(url, options: options)
            }
            func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
                try await inner.listen(endpoint, options: options)
            }
        }
        let simulation = Simulation()
        let plain = MemoryTransport(network: MemoryNetwork(time: simulation.time))
        let context = BuildContext(executor: simulation.executor, time: simulation.time)
        let (wss, ws) = (try ServiceURL("wss://a.example"), try ServiceURL("ws://a.example"))
        let branches: [any Transport] = [AlwaysProtected(inner: plain), plain]
        #expect(throws: TransportError.self) { try DirectCarrier(url: ws, transports: branches, context: context) }
        #expect(throws: Never.self) { try DirectCarrier(url: wss, transports: branches, context: context) }
        #expect(throws: TransportError.self) { try DirectCarrier(url: wss, transports: [], context: context) }
        #expect(throws: TransportError.self) {
            try DirectCarrier(url: wss, transports: [plain, plain], context: context)
        }
    }
}
