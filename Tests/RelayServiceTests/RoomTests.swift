import MemoryTransport
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import RelayCarrier
@testable import RelayService

/// Clients and boxes in a room of the relay, in simulated time.
@Suite struct RoomTests {
    /// Answers every message 1 on a box's socket that comes, and echoes what the last session says.
    private static func answer(_ world: RelayWorld, on socket: any Socket) -> Task<Close, Never> {
        world.simulation.start { [key = world.box] in
            var answered: [NoiseAnswerBox] = []
            while true {
                let batch: [Message]
                do throws(Close) { batch = try await socket.receive() } catch { return error }
                for message in batch where message.format == .binary {
                    if let reply = answered.compactMap({ $0.echo(message.payload) }).first {
                        try? await socket.send(Message(reply))
                    } else if let answer = try? ResponderHandshake(key: key, reading: message.payload).answer() {
                        let message2 = answer.message2
                        answered.append(NoiseAnswerBox(answer.begin()))
                        try? await socket.send(Message(message2))
                    }
                }
            }
        }
    }

    // R96, R101: the whole way, and a peer that goes and comes again.
    @Test func `A session begins when the box is there, and the next one on the same socket`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let room = try world.carrier()
            let carrier = world.noise(over: room)
            let opening = world.simulation.start { try? await carrier.open() }
            try await world.simulation.time.sleep(for: .seconds(60))
            #expect(room.states.latest == .connecting(attempt: 1))
            for _ in 0..<2 {
                let box = try await world.join(.box)
                let answering = Self.answer(world, on: box)
                var opened = await opening.value
                if opened == nil || world.dials > 2 { opened = try await carrier.open() }
                let socket = try #require(opened)
                #expect(room.states.latest.description == "Connected · WebSocket")
                #expect(socket.info.maxMessageBytes == 65_536 - NoiseSession.overhead)
                #expect(socket.info.protection == .endToEnd)
                try await socket.send(Message(Bytes("hello")))
                #expect(try await socket.receive().first?.payload == Bytes("hello"))
                await box.close()
                _ = await answering.value
                let end = await socket.end()
                #expect(end.code == .nobodyThere)
            }
            // The client has dialled once, each box once.
            #expect(world.dials == 3)
            #expect(room.roundTrip == nil)
            await carrier.close()
            #expect(await (try? carrier.open()) == nil)
            await world.stop()
        }
    }

    // R101: an hour of the peer's absence costs one connection.
    @Test func `A client that waits alone hears nothing and dials once`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let carrier = try world.carrier()
            let opening = world.simulation.start { try? await carrier.open() }
            try await world.simulation.time.sleep(for: .seconds(3500))
            #expect(world.dials == 1)
            opening.cancel()
            #expect(await opening.value == nil)
            try await world.simulation.time.sleep(for: .seconds(1))
            #expect(carrier.states.latest == .idle)
            #expect(world.network.openPaths(of: .webSocket) == 0)
            await carrier.close()
            await world.stop()
        }
    }

    // R73, R74: what the box says to somebody else ends neither a handshake nor a session. The fault of a stray frame.
    @Test func `Two clients in a room do not disturb each other`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let box = try await world.join(.box)
            let answering = Self.answer(world, on: box)
            let rooms = [try world.carrier(), try world.carrier()]
            let carriers = [world.noise(over: rooms[0]), world.noise(over: rooms[1], key: StaticPrivateKey())]
            let first = try await carriers[0].open()
            let second = world.simulation.start { try? await carriers[1].open() }
            for index in 0..<50 {
                // Of message 2's length, too.
                try await box.send(Message(Bytes(repeating: UInt8(index), count: index % 2 == 0 ? 48 : 100)))
                try await first.send(Message(Bytes("ping \(index)")))
                #expect(try await first.receive().first?.payload == Bytes("ping \(index)"))
            }
            let other = try #require(await second.value)
            try await other.send(Message(Bytes("from the other")))
            #expect(try await other.receive().first?.payload == Bytes("from the other"))
            try await first.send(Message(Bytes("still here")))
            #expect(try await first.receive().first?.payload == Bytes("still here"))
            for carrier in carriers { await carrier.close() }
            await box.close()
            _ = await answering.value
            await world.stop()
        }
    }

    // R104: the epoch turns over while a client waits; it finds the room of the new one.
    @Test func `Everybody moves to the room of the new epoch`() throws {
        let world = try RelayWorld(secondsIntoEpoch: 3500)
        try world.run {
            try await world.start()
            let carrier = try world.carrier()
            let box = try await world.join(.box)
            let socket = try await carrier.open()
            let (closes, start) = (await (socket.end(), box.end()), world.simulation.time.now())
            for close in [closes.0, closes.1] {
                #expect(close.code == .epochTurned)
                #expect(close.reason == "500001")
            }
            let newBox = try await world.join(.box)
            let again = try await carrier.open()
            #expect(world.simulation.time.now() - start >= .milliseconds(1500))
            #expect(carrier.states.latest.description == "Connected · WebSocket")
            await again.close()
            await carrier.close()
            await newBox.close()
            await world.stop()
        }
    }

    // R104, R105: a clock that is an epoch off, and one that is beyond help.
    @Test func `A clock that is one epoch off is corrected, and no more than that`() throws {
        let world = try RelayWorld(secondsIntoEpoch: 3599)
        try world.run {
            // The relay's clock stands still; this machine's moves into the next epoch.
            let wall = world.simulation.time.wallNow()
            let service = RelayService(
                executor: world.simulation.executor, time: StoppedWall(world.simulation.time, wall: wall))
            try await world.start { await service.serve($0, target: $0.info.target) }
            try await world.simulation.time.sleep(for: .seconds(5))
            let box = try await world.join(.box, epoch: 500_000)
            let carrier = try world.carrier()
            let socket = try await carrier.open()
            #expect(world.dials == 3)
            await socket.close()
            try await world.simulation.time.sleep(for: .seconds(2 * 3600))
            let failure = await #expect(throws: Close.self) { try await carrier.open() }
            #expect(failure?.code == .displaced)
            // Two corrections at once, then no more.
            #expect(world.dials == 6)
            await box.close()
            await carrier.close()
            await world.stop()
        }
    }

    // R103: the fault of a relay that accepts and crashes, and was dialled at the floor interval.
    @Test func `A relay that accepts and crashes is dialled ever more seldom`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start { await $0.close(.internalError, reason: "crash") }
            let carrier = try world.carrier(random: { 0.999 })
            let end = world.simulation.time.now() + .seconds(600)
            while world.simulation.time.now() < end {
                let failure = await #expect(throws: Close.self) { try await carrier.open() }
                #expect(failure?.code == .internalError)
            }
            #expect((14...18).contains(world.dials), "\(world.dials) dials")
            await carrier.close()
            await world.stop()
        }
    }

    // R98: busy is a state of its own.
    @Test func `A relay that is full shows as busy`() throws {
        let world = try RelayWorld()
        try world.run {
            var limits = RelayLimits()
            limits.sockets = 0
            try await world.start(limits)
            let carrier = try world.carrier()
            let failure = await #expect(throws: Close.self) { try await carrier.open() }
            #expect(failure == Close(.busy, reason: "full", origin: .remote))
            #expect(carrier.states.latest.description == "Waiting · 4429 busy (full)")
            await carrier.close()
            await world.stop()
        }
    }

    // R106
    @Test func `A wake drops what looks open and dials afresh`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let box = try await world.join(.box)
            let carrier = try world.carrier()
            let socket = try await carrier.open()
            await carrier.wake()
            try await world.simulation.time.sleep(for: .milliseconds(100))
            #expect(world.dials == 2)
            try await world.simulation.time.sleep(for: .seconds(1))
            await carrier.wake()
            let end = await socket.end()
            #expect(end.code == .pathLost)
            let again = try await carrier.open()
            #expect(world.dials == 3)
            try await again.send(Message(Bytes("here")))
            #expect(try await box.next(.binary) == Bytes("here"))
            await carrier.close()
            await box.close()
            await world.stop()
        }
    }

    // R102: a frame of an ended session is refused, and never comes later.
    @Test func `No frame is kept across a gap`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let box = try await world.join(.box)
            let carrier = try world.carrier()
            let socket = try await carrier.open(firstFlight: Bytes("first"))
            #expect(try await box.next(.binary) == Bytes("first"))
            world.network.cut(.webSocket)
            let end = await socket.end()
            let late = await #expect(throws: Close.self) { try await socket.send(Message(Bytes("late"))) }
            #expect(late == end)
            let other = try await world.join(.box)
            let again = try await carrier.open(firstFlight: Bytes("second"))
            #expect(try await other.next(.binary) == Bytes("second"))
            let text = await #expect(throws: Close.self) { try await again.send(.text("no")) }
            #expect(text?.cause?.code == .misuse)
            let long = Message(Bytes(repeating: 0, count: 65_537))
            let tooBig = await #expect(throws: Close.self) { try await again.send(long) }
            #expect(tooBig?.code == .tooBig)
            // A second session takes the place of the first.
            let third = try await carrier.open()
            #expect(await again.end().code == .displaced)
            try await third.send(Message(Bytes("third")))
            #expect(try await other.next(.binary) == Bytes("third"))
            await third.close()
            await carrier.close()
            await other.close()
            await world.stop()
        }
    }

    // R147: neither a handle nor an address nor a byte.
    @Test func `The relay logs counts alone`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let box = try await world.join(.box)
            let app = try await world.join(.app)
            try await app.send(Message(Bytes("a frame")))
            #expect(try await box.next(.binary) == Bytes("a frame"))
            try await world.simulation.time.sleep(for: .seconds(40))
            await app.close()
            await box.close()
            try await world.simulation.time.sleep(for: .seconds(1))
            await world.stop()
        }
        let lines = world.log.lines.map(\.message)
        #expect(lines.contains { $0.contains("epoch 500000: 1 rooms, 2 sockets, 1 frames, 7 bytes") })
        let handle = world.secret.handle(of: 500_000, info: RelaySettings().info).text
        for line in lines {
            #expect(!line.contains(handle) && !line.contains("a frame") && !line.contains("127.0.0.1"))
        }
    }

    @Test func `A refused peer that says on is no trouble`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let bad = try await world.transport.dial(
                try ServiceURL("wss://relay.example/nonsense"), options: DialOptions())
            // The fault of a bad frame after a refusal that ended the process.
            try? await bad.send([Message(Bytes(repeating: 9, count: 70_000)), .text("\u{0}"), Message(Bytes("x"))])
            let close = await bad.end()
            #expect(close.code == .badTarget)
            #expect(close.reason == "join")
            let box = try await world.join(.box)
            let app = try await world.join(.app)
            try await app.send(Message(Bytes("works")))
            #expect(try await box.next(.binary) == Bytes("works"))
            await app.close()
            await box.close()
            await world.stop()
        }
    }
}

/// A session of a box that echoes.
private final class NoiseAnswerBox {
    private var session: NoiseSession

    init(_ session: consuming NoiseSession) {
        self.session = session
    }

    func echo(_ message: Bytes) -> Bytes? {
        guard let text = try? session.open(message) else { return nil }
        return try? session.seal(text)
    }
}

/// Another machine's clock, whose wall time stands still.
private struct StoppedWall: TimeSource {
    private let time: ManualTime
    private let wall: WallTime

    init(_ time: ManualTime, wall: WallTime) {
        self.time = time
        self.wall = wall
    }

    func now() -> Instant { time.now() }
    func wallNow() -> WallTime { wall }
    func sleep(until deadline: Instant) async throws(CancellationError) { try await time.sleep(until: deadline) }
}
