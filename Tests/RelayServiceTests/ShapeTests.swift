import MemoryTransport
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import RelayCarrier
@testable import RelayService

/// The constant shape: what the relay sees of a room that is still and of one that is busy.
@Suite struct ShapeTests {
    /// What one socket has sent to the relay, and when.
    private struct Seen: Hashable {
        let after: Duration
        let count: Int
    }

    private static let shape = {
        var shape = RelayShape()
        shape.frameBytes = 512
        shape.interval = .milliseconds(50)
        return shape
    }()

    /// Runs a room for 20 s and says what the relay has seen of its two sockets.
    private func watch(isBusy: Bool) throws -> [RelayWire.Role: [Seen]] {
        let world = try RelayWorld()
        let seen = Mutex<[RelayWire.Role: [Seen]]>([:])
        try world.run {
            let service = RelayService(executor: world.simulation.executor, time: world.simulation.time)
            try await world.start { socket in
                let role: RelayWire.Role = socket.info.target.path.hasSuffix("/box") ? .box : .app
                let start = world.simulation.time.now()
                let tapped = TappedSocket(
                    socket,
                    arrived: { message in
                        let now = world.simulation.time.now()
                        seen.withLock {
                            $0[role, default: []].append(Seen(after: now - start, count: message.payload.count))
                        }
                    })
                await service.serve(tapped, target: socket.info.target)
            }
            var settings = RelayUplinkSettings()
            settings.room.shape = Self.shape
            let uplink = try RelayUplink(
                url: world.url, secret: world.secret, key: world.box, transport: world.transport, settings: settings,
                executor: world.simulation.executor, time: world.simulation.time, random: { 0.5 }
            ) { _, _ in true }
            let running = world.simulation.start {
                await uplink.run { socket, _ in
                    while let batch = try? await socket.receive() { try? await socket.send(batch) }
                }
            }
            let end = world.simulation.time.now() + .seconds(20)
            let room = try world.carrier(settings: settings.room)
            let carrier = world.noise(over: room)
            let socket = try await carrier.open()
            var echoes = 0
            while isBusy, world.simulation.time.now() < end {
                // Shorter and longer than a frame, alone and several at once.
                let texts = (0...(echoes % 3)).map {
                    Bytes(repeating: UInt8(echoes & 0xff), count: 1 + echoes * 331 % 3000 + $0)
                }
                try await socket.send(texts.map { Message($0) })
                var back: [Bytes] = []
                while back.count < texts.count { back += try await socket.receive().map(\.payload) }
                #expect(back == texts)
                echoes += 1
            }
            #expect(!isBusy || echoes > 10)
            try await world.simulation.time.sleep(until: end)
            seen.withLock { seen in
                for role in RelayWire.Role.allCases { seen[role] = seen[role]?.filter { $0.after <= .seconds(15) } }
            }
            await carrier.close()
            running.cancel()
            await running.value
            await world.stop()
        }
        return seen.withLock(\.self)
    }

    @Test func `A busy room looks like a still one`() throws {
        let (still, busy) = (try watch(isBusy: false), try watch(isBusy: true))
        #expect(still == busy)
        for role in RelayWire.Role.allCases {
            let frames = try #require(busy[role])
            #expect(frames.count > 250)
            #expect(Set(frames.map(\.count)) == [512])
            #expect(Set(zip(frames, frames.dropFirst()).map { $1.after - $0.after }) == [.milliseconds(50)])
        }
    }

    @Test func `It is off unless somebody asks for it`() {
        #expect(RelaySettings().shape == nil)
        #expect(RelayUplinkSettings().room.shape == nil)
    }

    private func shaper(_ name: UInt8, frameBytes: Int = 256, limit: Int = 65_536) throws -> Shaper {
        var shape = RelayShape()
        shape.frameBytes = frameBytes
        let secret = try #require(RelaySecret("000102030405060708090a0b0c0d0e0f"))
        return Shaper(shape, secret: secret, messageLimit: limit, name: Bytes(repeating: name, count: 8))
    }

    @Test func `Messages of every length come through, those of several senders mixed`() throws {
        var random = SeededGenerator.announced()
        var senders = try (0..<3).map { try shaper(UInt8($0)) }
        var reader = try shaper(9)
        var sent: [[Bytes]] = Array(repeating: [], count: 3)
        for _ in 0..<60 {
            let index = Int.random(in: 0..<3, using: &random)
            let count = [0, 1, 204, 205, 206, 400, 65_536].randomElement(using: &random) ?? 0
            let message =
                Bytes([UInt8(index)])
                + Bytes(repeating: UInt8.random(in: 0...255, using: &random), count: max(count - 1, 0))
            sent[index].append(message)
            senders[index].put(message)
        }
        var received: [[Bytes]] = Array(repeating: [], count: 3)
        while senders.contains(where: { $0.backlog > 0 }) {
            let index = Int.random(in: 0..<3, using: &random)
            let frame = senders[index].next()
            #expect(frame.count == 256)
            for message in reader.read(frame) { received[Int(message[0])].append(message) }
        }
        #expect(received == sent)
    }

    @Test func `Frames of strangers, of another length or changed are nobody's`() throws {
        var (sender, reader) = (try shaper(1), try shaper(2))
        sender.put(Bytes("text"))
        let frame = sender.next()
        for index in [0, 30, 255] {
            var changed = Array(frame)
            changed[index] ^= 1
            #expect(reader.read(Bytes(changed)).isEmpty)
        }
        #expect(reader.read(frame.prefix(255)).isEmpty)
        #expect(reader.read(Bytes()).isEmpty)
        #expect(reader.read(frame) == [Bytes("text")])
        #expect(reader.read(sender.next()).isEmpty)
        var short = try shaper(3, limit: 300)
        sender.put(Bytes(repeating: 1, count: 301))
        sender.put(Bytes("next"))
        var heard: [Bytes] = []
        while sender.backlog > 0 { heard += short.read(sender.next()) }
        #expect(!heard.contains { $0.count > 300 })
    }
}

private func + (left: Bytes, right: Bytes) -> Bytes {
    var both = left
    both.append(contentsOf: right)
    return both
}
