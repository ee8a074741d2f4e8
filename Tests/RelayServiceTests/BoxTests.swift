import MemoryTransport
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import RelayCarrier
@testable import RelayService

/// A box on the relay and its clients, in simulated time (R135, part 2.3).
@Suite struct BoxTests {
    /// What an uplink's sessions do: echo, and be counted.
    private final class Sessions: Sendable {
        private struct State {
            var begun: [StaticPublicKey] = []
            var ended: [Close] = []
            var cancelled = 0
        }

        private let state = Mutex(State())

        var begun: [StaticPublicKey] { state.withLock { $0.begun } }
        var ended: [Close] { state.withLock { $0.ended } }
        var cancelled: Int { state.withLock { $0.cancelled } }

        func serve(_ socket: any Socket, _ peer: StaticPublicKey) async {
            state.withLock { $0.begun.append(peer) }
            do throws(Close) {
                while true { try await socket.send(try await socket.receive()) }
            } catch {
                state.withLock { state in
                    state.ended.append(error)
                    if Task.isCancelled { state.cancelled += 1 }
                }
            }
        }
    }

    private static func uplink(
        _ world: RelayWorld, jitter: Double = 0.5, terminate: Bytes? = nil,
        admits: @escaping NoiseAcceptor.Admission = { _, _ in true }
    ) throws -> RelayUplink {
        var settings = RelayUplinkSettings()
        settings.terminate = terminate
        return try RelayUplink(
            url: world.url, secret: world.secret, key: world.box, transport: world.transport, settings: settings,
            executor: world.simulation.executor, time: world.simulation.time,
            log: Log(level: .debug, sink: world.log), random: { jitter }, admits: admits)
    }

    private static func echoes(_ text: String, on socket: any Socket) async throws -> Bool {
        try await socket.send(Message(Bytes(text)))
        return try await socket.receive().first?.payload == Bytes(text)
    }

    @Test func `The defaults are those of the contract`() {
        let settings = RelayUplinkSettings()
        #expect(settings.maxSessions == 4)
        #expect(settings.dialTimeout == .seconds(15))
        #expect(settings.writeTimeout == .seconds(10))
        #expect(settings.readTimeout == .seconds(45))
    }

    @Test func `A relay is an origin, on a transport with text`() throws {
        let world = try RelayWorld()
        for url in ["wss://relay.example/r", "wss://relay.example/?x=1"] {
            let error = #expect(throws: TransportError.self) {
                try RelayUplink(
                    url: try ServiceURL(url), secret: world.secret, key: world.box, transport: world.transport,
                    executor: world.simulation.executor, time: world.simulation.time
                ) { _, _ in true }
            }
            #expect(error?.code == .misuse)
        }
        let streams = MemoryTransport(network: world.network, capabilities: [.streams])
        let error = #expect(throws: TransportError.self) {
            try RelayCarrier(
                url: world.url, secret: world.secret, transport: streams, executor: world.simulation.executor,
                time: world.simulation.time)
        }
        #expect(error?.code == .unsupported)
    }

    // The whole chain: one uplink, several clients, each with its own keys.
    @Test func `Clients reach the box at once, each in its own session`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let sessions = Sessions()
            let uplink = try Self.uplink(world)
            let running = world.simulation.start { await uplink.run(sessions.serve) }
            var carriers: [NoiseCarrier] = []
            var sockets: [any Socket] = []
            for _ in 0..<4 {
                let carrier = world.noise(over: try world.carrier(), key: StaticPrivateKey())
                sockets.append(try await carrier.open())
                carriers.append(carrier)
            }
            for round in 0..<20 {
                for (index, socket) in sockets.enumerated() {
                    #expect(try await Self.echoes("\(round) \(index)", on: socket))
                }
            }
            #expect(sessions.begun.count == 4)
            #expect(await uplink.sessionCount == 4)
            #expect(uplink.states.latest.description == "Connected · WebSocket")
            // The last client leaves: the box hears it, and all sessions end.
            for carrier in carriers { await carrier.close() }
            try await world.simulation.time.sleep(for: .seconds(1))
            #expect(sessions.ended.map(\.code) == Array(repeating: .nobodyThere, count: 4))
            #expect(await uplink.sessionCount == 0)
            running.cancel()
            await running.value
            #expect(world.dials == 5)
            await world.stop()
        }
    }

    // R135: a fifth evicts the oldest, whose service is cancelled.
    @Test func `A fifth session evicts the oldest`() throws {
        let world = try RelayWorld()
        try world.run {
            var limits = RelayLimits()
            limits.streamsPerRoom = 8
            try await world.start(limits)
            let sessions = Sessions()
            let uplink = try Self.uplink(world)
            let running = world.simulation.start { await uplink.run(sessions.serve) }
            var sockets: [any Socket] = []
            var carriers: [NoiseCarrier] = []
            for _ in 0..<5 {
                carriers.append(world.noise(over: try world.carrier(), key: StaticPrivateKey()))
                sockets.append(try await carriers[carriers.count - 1].open())
            }
            #expect(await uplink.sessionCount == 4)
            #expect(sessions.ended.map(\.code) == [.displaced])
            #expect(sessions.cancelled == 1)
            for socket in sockets.dropFirst() { #expect(try await Self.echoes("still", on: socket)) }
            for carrier in carriers { await carrier.close() }
            running.cancel()
            await running.value
            await world.stop()
        }
    }

    // R135: revoking a key ends its live sessions and cancels what they do; the others go on.
    @Test func `A revoked key loses its sessions and hears the last message`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let sessions = Sessions()
            let revoked = Mutex(false)
            let uplink = try Self.uplink(world, terminate: Bytes("terminate")) { [app = world.app] peer, _ in
                peer != app.publicKey || !revoked.withLock { $0 }
            }
            let running = world.simulation.start { await uplink.run(sessions.serve) }
            let carrier = world.noise(over: try world.carrier())
            let other = world.noise(over: try world.carrier(), key: StaticPrivateKey())
            let (socket, stays) = (try await carrier.open(), try await other.open())
            #expect(try await Self.echoes("before", on: socket))
            revoked.withLock { $0 = true }
            await uplink.revoke(world.app.publicKey)
            #expect(try await socket.receive().first?.payload == Bytes("terminate"))
            try await world.simulation.time.sleep(for: .seconds(1))
            #expect(sessions.ended.map(\.code) == [.refused])
            #expect(sessions.cancelled == 1)
            try await socket.send(Message(Bytes("nobody hears this")))
            #expect(try await Self.echoes("after", on: stays))
            #expect(await uplink.sessionCount == 1)
            // It is not let in again, and gets silence.
            let again = world.simulation.start { try? await carrier.open() }
            try await world.simulation.time.sleep(for: .seconds(30))
            #expect(sessions.begun.count == 2)
            again.cancel()
            _ = await again.value
            for carrier in [carrier, other] { await carrier.close() }
            running.cancel()
            await running.value
            await world.stop()
        }
    }

    // R133, R135: strangers, scanners and replays end nothing and get nothing.
    @Test func `A stranger's bytes are dropped, and the uplink stands`() throws {
        let world = try RelayWorld()
        let seed = SeededGenerator.announced()
        try world.run {
            try await world.start()
            let sessions = Sessions()
            let uplink = try Self.uplink(world) { [app = world.app] peer, _ in peer == app.publicKey }
            let running = world.simulation.start { await uplink.run(sessions.serve) }
            let carrier = world.noise(over: try world.carrier())
            let socket = try await carrier.open()
            let stranger = try await world.join(.app)
            var random = seed
            for _ in 0..<100 {
                let count = Int.random(in: 0...300, using: &random)
                try await stranger.send(
                    Message(Bytes((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })))
                try await world.simulation.time.sleep(for: .milliseconds(20))
            }
            var unknown = try InitiatorHandshake(key: StaticPrivateKey(), peer: world.box.publicKey)
            try await stranger.send(Message(unknown.message1))
            #expect(try await Self.echoes("works", on: socket))
            // All that the stranger has heard is what the box says to everybody, and no answer of its own.
            var heard: [Message] = []
            while heard.isEmpty { heard += try await stranger.receive() }
            for message in heard { #expect((try? unknown.finish(reading: message.payload)) == nil) }
            #expect(sessions.begun.count == 1)
            #expect(world.dials == 3)
            await stranger.close()
            await carrier.close()
            running.cancel()
            await running.value
            await world.stop()
        }
    }

    // R104, R136: the room of the next hour.
    @Test func `Box and client meet again in the room of the next epoch`() throws {
        let world = try RelayWorld(secondsIntoEpoch: 3500)
        try world.run {
            try await world.start()
            let sessions = Sessions()
            let uplink = try Self.uplink(world)
            let running = world.simulation.start { await uplink.run(sessions.serve) }
            let carrier = world.noise(over: try world.carrier())
            for hour in 0..<3 {
                let socket = try await carrier.open()
                #expect(try await Self.echoes("hour \(hour)", on: socket))
                let end = await socket.end()
                #expect([.epochTurned, .nobodyThere].contains(end.code))
            }
            // Each has dialled once an hour; a client may have been told first that the box has left.
            #expect(world.dials <= 8)
            await carrier.close()
            running.cancel()
            await running.value
            await world.stop()
        }
    }

    // R127, R136: a relay that is away, and comes again.
    @Test func `The uplink comes back by itself`() throws {
        let world = try RelayWorld()
        try world.run {
            let sessions = Sessions()
            let uplink = try Self.uplink(world, jitter: 0.999)
            let running = world.simulation.start { await uplink.run(sessions.serve) }
            try await world.simulation.time.sleep(for: .seconds(600))
            #expect((14...18).contains(world.dials), "\(world.dials) dials")
            try await world.start()
            let carrier = world.noise(over: try world.carrier())
            let socket = try await carrier.open()
            #expect(try await Self.echoes("back", on: socket))
            let before = world.dials
            await uplink.wake()
            _ = await socket.end()
            let again = try await carrier.open()
            #expect(try await Self.echoes("again", on: again))
            // The relay may have heard of the new uplink before the old one's end.
            #expect(world.dials <= before + 2)
            await carrier.close()
            running.cancel()
            await running.value
            await world.stop()
        }
    }
}

/// Frames and the sessions of a box, without a socket.
@Suite struct BoxRoomTests {
    private let key = StaticPrivateKey()

    private func handshake(_ room: inout BoxRoom) throws -> (id: UInt64, session: Held) {
        var attempt = try InitiatorHandshake(key: StaticPrivateKey(), peer: key.publicKey)
        let found = Answer(room.answer(to: attempt.message1))
        let answer = try #require(found)
        let message2 = answer.message2
        let id = room.register(answer.take()).id
        return (id, Held(try attempt.finish(reading: message2)))
    }

    // A failed trial with one session's keys must leave the frame whole for the next.
    @Test func `Each frame finds its session, whatever the order`() throws {
        var room = BoxRoom(key: key, prologue: .session, limit: 4)
        var clients: [(id: UInt64, session: Held)] = []
        for _ in 0..<4 { clients.append(try handshake(&room)) }
        var random = SeededGenerator.announced()
        var frames: [(id: UInt64, frame: Bytes, text: Bytes)] = []
        for index in 0..<200 {
            let client = clients[Int.random(in: 0..<4, using: &random)]
            let text = Bytes("frame \(index)")
            frames.append((client.id, try client.session.seal(text), text))
        }
        for frame in frames.shuffled(using: &random) {
            let opened = room.open(frame.frame)
            #expect(opened?.id == frame.id)
            #expect(opened?.message == frame.text)
            // A second time it is nobody's.
            #expect(room.open(frame.frame) == nil)
        }
        room.end(clients[0].id)
        let late = try clients[0].session.seal(Bytes("late"))
        #expect(room.open(late) == nil)
        #expect(room.ids == clients.dropFirst().map(\.id))
    }

    @Test func `What is too short for a message 1 is none`() throws {
        let room = BoxRoom(key: key, prologue: .session, limit: 4)
        let attempt = try InitiatorHandshake(key: StaticPrivateKey(), peer: key.publicKey)
        #expect(attempt.message1.count == 96)
        for (frame, isOne) in [(attempt.message1.prefix(95), false), (Bytes(), false), (attempt.message1, true)] {
            let answer = Answer(room.answer(to: frame))
            #expect((answer != nil) == isOne)
        }
    }
}

/// A session that a closure may hold.
private final class Held {
    private var session: NoiseSession

    init(_ session: consuming NoiseSession) {
        self.session = session
    }

    func seal(_ text: Bytes) throws(NoiseError) -> Bytes { try session.seal(text) }
}

/// An answer that a macro may look at.
private final class Answer: Equatable {
    private var answer: NoiseAnswer?
    let message2: Bytes

    init?(_ answer: consuming NoiseAnswer?) {
        guard let found = consume answer else { return nil }
        message2 = found.message2
        self.answer = .some(consume found)
    }

    func take() -> NoiseAnswer {
        guard let answer = answer.take() else { preconditionFailure("it is taken once") }
        return answer
    }

    static func == (left: Answer, right: Answer) -> Bool { left === right }
}
