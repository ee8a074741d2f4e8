import DoorService
import MemoryTransport
import MuxCarrier
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// A client and a box through a door, all three real, in simulated time: sealed end to end, with streams over it.
@Suite struct ThroughDoorTests {
    // R76, R77
    @Test func `Messages and streams go through a door, and 20 MB come back whole`() throws {
        let rig = ThroughDoor()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.streams(try rig.uplink())
            let socket = try await rig.muxed().open()
            try await socket.send(Message(Bytes("hello")))
            #expect(try await socket.receive().map(\.payload) == [Bytes("hello")])
            let stream = try await socket.openStream()
            async let echoed = rig.read(stream)
            let piece = Bytes((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            for _ in 0..<320 { try await stream.write(piece) }
            try await stream.finish()
            #expect(try await echoed == (320 * 65_536, 320 * piece.reduce(0) { $0 + Int($1) }))
            running.cancel()
        }
    }

    // R22
    @Test func `A device whose session nobody reads holds up neither its own control nor another device`() throws {
        let rig = ThroughDoor()
        let other = StaticPrivateKey()
        rig.rig.admission.keys.withLock { _ = $0.insert(other.publicKey) }
        try rig.run {
            try await rig.openDoor()
            let (uplink, slow) = (try rig.uplink(), rig.rig.device.publicKey)
            let go = Signal()
            let running = await rig.rig.serve(uplink) { socket in
                if socket.peer == slow {
                    _ = await go.wait()
                    while let batch = try? await socket.receive() {
                        if batch.contains(where: { $0.payload == Bytes("last") }) {
                            try? await socket.send(Message(Bytes("done")))
                        }
                    }
                } else {
                    while let batch = try? await socket.receive(), (try? await socket.send(batch)) != nil {}
                }
            }
            let blocked = try await rig.sealed(rig.rig.device).open(firstFlight: Bytes("hello"))
            let bulk = Message(Bytes(repeating: 1, count: 60_000), delivery: .bulk)
            let sending = rig.rig.simulation.start {
                for _ in 0..<40 { try? await blocked.send(bulk) }
                try? await blocked.send(Message(Bytes("last"), delivery: .bulk))
            }
            try await rig.rig.sleep(.seconds(5))
            let fine = try await rig.sealed(other).open()
            for _ in 0..<50 { #expect(try await rig.rig.echoes(fine, "again", .bulk)) }
            // There is always room for control.
            try await blocked.send(Message(Bytes("control")))
            go.signal()
            await sending.value
            #expect(try await blocked.receive().map(\.payload) == [Bytes("done")])
            running.cancel()
        }
    }

    // B10
    @Test func `A box that comes back from elsewhere is not held up by its ghost`() throws {
        let rig = ThroughDoor()
        try rig.run {
            try await rig.openDoor()
            let ghost = await rig.rig.echo(try rig.uplink())
            let carrier = rig.sealed(rig.rig.device)
            let socket = try await carrier.open()
            #expect(try await rig.rig.echoes(socket))
            // Nothing gets to or from the box any more, and nobody is told.
            rig.vanishBox()
            try await rig.rig.sleep(.seconds(3))
            let before = rig.rig.simulation.time.now()
            let running = await rig.rig.echo(try rig.uplink())
            #expect(await rig.rig.failure { try await socket.receive() } != nil)
            #expect(try await rig.rig.echoes(try await carrier.open()))
            #expect(rig.rig.simulation.time.now() - before < .seconds(1))
            ghost.cancel()
            running.cancel()
        }
    }

    // R81, R91, R136
    @Test func `A box that stops and comes back is reached again over the same link`() throws {
        let rig = ThroughDoor()
        try rig.run {
            try await rig.openDoor()
            let first = await rig.rig.echo(try rig.uplink())
            let carrier = rig.sealed(rig.rig.device)
            let socket = try await carrier.open()
            #expect(try await rig.rig.echoes(socket))
            first.cancel()
            #expect(await rig.rig.failure { try await socket.receive() } != nil)
            try await rig.rig.sleep(.seconds(1))
            #expect(await rig.rig.failure { try await carrier.open() }?.cause?.code == .unsupported)
            let second = await rig.rig.echo(try rig.uplink())
            try await rig.rig.sleep(.milliseconds(1))
            #expect(try await rig.rig.echoes(try await carrier.open()))
            #expect(rig.dials(isBox: false) == 1)
            second.cancel()
        }
    }

    // R173
    @Test func `A wake in the middle of bulk streams again at once`() throws {
        let rig = ThroughDoor()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.rig.echo(try rig.uplink())
            let carrier = rig.sealed(rig.rig.device)
            let first = try await carrier.open(firstFlight: Bytes("hello"))
            let bulk = Message(Bytes(repeating: 1, count: 60_000), delivery: .bulk)
            let sending = rig.rig.simulation.start {
                while (try? await first.send(bulk)) != nil {}
            }
            try await rig.rig.sleep(.seconds(1))
            let before = rig.rig.simulation.time.now()
            await carrier.wake()
            await sending.value
            let second = try await carrier.open()
            #expect(try await rig.rig.echoes(second, "again", .bulk))
            #expect(rig.rig.simulation.time.now() - before < .seconds(1))
            running.cancel()
        }
    }

    // R88
    @Test func `A new device that waits for its box is let in by its code when the box links`() throws {
        let rig = ThroughDoor()
        try rig.run {
            let code = Bytes(repeating: 5, count: 16)
            let phone = StaticPrivateKey()
            rig.rig.admission.codes.withLock { _ = $0.insert(code) }
            try await rig.openDoor()
            let carrier = rig.sealed(phone, code: code)
            #expect(await rig.rig.failure { try await carrier.open() }?.cause?.code == .unsupported)
            let uplink = try rig.uplink()
            await uplink.expect(code, for: .seconds(300))
            let running = await rig.rig.echo(uplink)
            try await rig.rig.sleep(.milliseconds(1))
            #expect(try await rig.rig.echoes(try await carrier.open()))
            #expect(rig.dials(isBox: false) == 1)
            running.cancel()
        }
    }
}
