import MemoryTransport
import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// The door with sockets: who reads, who writes, what waits, and how it ends.
@Suite struct DoorDriverTests {
    private static let one = TunnelSessionID(rawValue: 1)
    private static let two = TunnelSessionID(rawValue: 2)

    private func end(of socket: any Socket) async -> CloseCode {
        while true {
            do throws(Close) { _ = try await socket.receive() } catch { return error.code }
        }
    }

    // R13, R14, R121
    @Test func `Only a box is answered before the handshake of its wire is done`() throws {
        let house = try DoorHouse()
        #expect(house.door.boxService.answersEarly && !house.door.appService.answersEarly)
    }

    // R118, R125
    @Test func `A client and a box talk through sockets, and nothing is left when they have gone`() throws {
        let house = try DoorHouse()
        try house.simulation.run {
            let listener = try await house.listen()
            let device = StaticPrivateKey()
            let box = try await LivePeer.box(house, devices: [device.publicKey])
            let client = try await LivePeer.client(house, key: device, of: box)
            let id = DeviceID(of: device.publicKey)
            try await client.send(TunnelFrame(.begin, session: Self.one, payload: [1]))
            try await box.hear { $0.frames.count == 1 }
            try await box.send(TunnelFrame(.control, device: id, session: Self.one, payload: [2]))
            try await client.hear { $0.frames.count == 1 }
            for kind in [TunnelFrame.Kind.control, .bulk, .unreliable] {
                try await client.send(TunnelFrame(kind, session: Self.one, payload: [3]))
            }
            try await box.hear { $0.frames.count == 4 }
            #expect(house.metrics["door.sessions"] == 1 && house.metrics["door.links.box"] == 1)
            #expect(house.metrics["door.frames.toBox"] == 3 && house.metrics["door.frames.toClient"] == 1)
            await client.socket.close()
            try await box.hear { $0.frames.last == .end(device: id, session: Self.one) }
            await box.socket.close()
            await listener.close()
        }
        house.simulation.drain()
        #expect(house.network.openPaths(of: .memory) == 0)
        #expect(["door.links.app", "door.links.box", "door.sessions"].allSatisfy { house.metrics[$0] == 0 })
        // Nothing waits for a deadline of a link that is gone.
        #expect(house.simulation.time.nextDeadline == nil)
        #expect(house.lines.lines.map(\.message).contains { $0.contains("has linked, with 1 devices") })
    }

    @Test func `A link that says nothing is closed with 4408, text with 1003, and a stream is refused`() throws {
        let house = try DoorHouse()
        let closes = try house.simulation.run {
            let listener = try await house.listen()
            let silent = try await house.dial(.app)
            let texting = try await house.dial(.box)
            let streaming = try await house.dial(.app)
            let stream = try await streaming.openStream()
            try await stream.write([1])
            try await texting.send(.text("hello"))
            var closes: [CloseCode] = []
            var reset: UInt64?
            do throws(StreamError) { _ = try await stream.read(upTo: 10) } catch { reset = error.resetCode }
            #expect(reset == CloseCode.unsupported.rawValue)
            for socket in [texting, silent, streaming] {
                closes.append(await end(of: socket))
            }
            await listener.close()
            return closes
        }
        #expect(closes == [.unsupported, .tooSlow, .tooSlow])
        #expect(house.simulation.time.now() < .zero + .seconds(11))
    }

    @Test func `A link too many is closed with 4429, and all with 1001 when the door stops`() throws {
        var options = DoorOptions()
        options.links = 1
        let house = try DoorHouse(options: options)
        try house.simulation.run {
            let listener = try await house.listen()
            let box = try await LivePeer.box(house, devices: [])
            let second = try await house.dial(.app)
            #expect(await end(of: second) == .busy)
            house.stop()
            #expect(await end(of: box.socket) == .goingAway)
            await listener.close()
        }
    }

    // B10
    @Test func `A ghost that does not read is closed all the same`() throws {
        let house = try DoorHouse()
        try house.simulation.run {
            let listener = try await house.listen()
            let device = StaticPrivateKey()
            let box = try await LivePeer.box(house, devices: [device.publicKey])
            let ghost = try await LivePeer.client(house, key: device, of: box)
            let id = DeviceID(of: device.publicKey)
            try await ghost.send(TunnelFrame(.begin, session: Self.one, payload: [1]))
            try await ghost.say(.credit(device: nil, session: Self.one, total: 1 << 40))
            // The ghost says that it takes all, and takes nothing: the wire toward it fills up.
            var lane = SendLane(device: id, session: Self.one, window: DoorLimits.defaultWindow)
            var seen = 0
            for nonce in UInt64(0)..<400 {
                lane.put(
                    TunnelFrame(.control, device: id, session: Self.one, payload: Bytes(repeating: 1, count: 30_000)))
                while let frame = lane.next() { try await box.send(frame) }
                try await box.say(.check(nonce: nonce))
                try await box.hear { $0.controls.contains(.here(nonce: nonce)) }
                for control in box.controls[seen...] {
                    if case .credit(_, _, let total) = control { lane.credit(total) }
                }
                seen = box.controls.count
            }
            #expect(lane.waitingCost > 0)
            let newer = try await LivePeer.client(house, key: device, of: box)
            #expect(await end(of: ghost.socket) == .displaced)
            for peer in [newer, box] { await peer.socket.close() }
            await listener.close()
        }
        house.simulation.drain()
        #expect(house.network.openPaths(of: .memory) == 0 && house.simulation.time.nextDeadline == nil)
    }

    @Test func `A box whose socket nobody reads stops the one who sends to it, and no more than a window waits`() throws
    {
        let house = try DoorHouse()
        try house.simulation.run {
            let listener = try await house.listen()
            let devices = (0..<2).map { _ in StaticPrivateKey() }
            let box = try await LivePeer.box(house, devices: [devices[0].publicKey])
            let other = try await LivePeer.box(house, devices: [devices[1].publicKey])
            let client = try await LivePeer.client(house, key: devices[0], of: box)
            let neighbour = try await LivePeer.client(house, key: devices[1], of: other)
            var lane = SendLane(session: Self.one, window: DoorLimits.defaultWindow)
            lane.put(TunnelFrame(.begin, session: Self.one, payload: [1]))
            // As much as may be sent, with all credit that comes back: the wire takes some of it, and then nothing.
            var (sent, seen) = (0, 0)
            for nonce in UInt64(0)..<400 {
                lane.put(TunnelFrame(.bulk, session: Self.one, payload: Bytes(repeating: 1, count: 30_000)))
                while let frame = lane.next() {
                    try await client.send(frame)
                    sent += 1
                }
                // The answer comes whatever else waits.
                try await client.say(.check(nonce: nonce))
                try await client.hear { $0.controls.contains(.here(nonce: nonce)) }
                for control in client.controls[seen...] {
                    if case .credit(_, _, let total) = control { lane.credit(total) }
                }
                seen = client.controls.count
            }
            #expect(sent < 200 && lane.waitingCost > 0)
            try await neighbour.send(TunnelFrame(.begin, session: Self.two, payload: [1]))
            try await other.hear { $0.frames.count == 1 }
            // Once it reads, and gives credit, all of it comes.
            let device = DeviceID(of: devices[0].publicKey)
            try await box.say(.credit(device: device, session: Self.one, total: 100_000_000))
            try await box.hear { $0.frames.count == sent }
            for peer in [box, other, client, neighbour] { await peer.socket.close() }
            await listener.close()
        }
        house.simulation.drain()
        #expect(house.metrics["door.sessions"] == 0 && house.network.openPaths(of: .memory) == 0)
    }
}
