import MemoryTransport
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// A box at a door that is scripted.
@Suite struct BoxUplinkTests {
    // R130, R132, R136
    @Test func `A box comes back with full jitter, says who it is again, and starts over after a minute`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let uplink = try rig.uplink()
            let running = await rig.echo(uplink)
            await uplink.expect(Bytes(repeating: 1, count: 16), for: .seconds(100))
            await uplink.expect(Bytes(repeating: 2, count: 16), for: .seconds(5))
            var links: [Duration] = []
            // Half of 0.5, 1, 2 and 4 s, and of 0.5 s again after a minute.
            for lifetime in [Duration.seconds(1), .seconds(1), .seconds(1), .seconds(61), .zero] {
                try await rig.sleep(lifetime)
                let before = rig.simulation.time.now()
                await rig.door.closeBox(.restarting)
                for await state in uplink.states { if case .waiting = state { break } }
                for await state in uplink.states { if case .open = state { break } }
                links.append(rig.simulation.time.now() - before)
            }
            // The first comes back wide: everybody on the door has lost it at once (R127).
            #expect(links[0] == .seconds(4))
            #expect(links[3...] == [.seconds(4), .seconds(8)])
            let hellos = await rig.door.boxHellos
            #expect(hellos.count == 6)
            #expect(hellos.allSatisfy { $0.capabilities.contains("tun") })
            let said = await rig.door.saidByBoxes
            #expect(said.count { $0 == .roster(DeviceKeys([rig.device.publicKey]), more: false) } == 6)
            let expected = said.compactMap { if case .expect(_, let seconds) = $0 { seconds } else { nil } }
            // What is over is not said again, and what is said is the rest of it.
            #expect(expected.count { $0 <= 5 } <= 3)
            #expect(expected.max() == 100)
            running.cancel()
            await running.value
            #expect(uplink.states.latest == .idle)
            #expect(await !rig.door.hasBox)
        }
    }

    @Test func `A path that is lost is dialled again sooner than a door that has restarted`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let uplink = try rig.uplink()
            let running = await rig.echo(uplink)
            let before = rig.simulation.time.now()
            rig.network.cut()
            for await state in uplink.states { if case .waiting = state { break } }
            for await state in uplink.states { if case .open = state { break } }
            #expect(rig.simulation.time.now() - before == .milliseconds(250))
            running.cancel()
        }
    }

    // R133
    @Test func `A stranger hears nothing, whatever the door lets through`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let stranger = StaticPrivateKey()
            let carrier = rig.sealed(over: try rig.tunnel(stranger), stranger, code: Bytes(repeating: 9, count: 16))
            let opening = rig.simulation.start { try? await carrier.open() }
            try await rig.sleep(.seconds(11))
            #expect(await rig.door.fromClients.count == 1)
            // A device of the home behind the id of another is a stranger too.
            let first = try InitiatorHandshake(key: rig.device, peer: rig.box.publicKey).message1
            let frame = TunnelFrame(.begin, session: .random(), payload: first)
            await rig.door.toBox(frame, as: DeviceID(of: stranger.publicKey))
            await rig.door.toBox(
                TunnelFrame(.begin, session: .random(), payload: Bytes(repeating: 7, count: 96)),
                as: DeviceID(of: rig.device.publicKey))
            try await rig.sleep(.seconds(30))
            #expect(await rig.door.fromBoxes.isEmpty)
            opening.cancel()
            // And it keeps nothing of them.
            #expect(try await rig.echoes(try await rig.sealed(over: try rig.tunnel()).open()))
            running.cancel()
        }
    }

    // R83, R134
    @Test func `A handshake that was recorded takes no slot, and a session that is really there does`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let device = DeviceID(of: rig.device.publicKey)
            let first = try await rig.sealed(over: try rig.tunnel()).open()
            #expect(try await rig.echoes(first))
            // Somebody at the door sends what it has recorded once more.
            var recorded = try #require(await rig.door.fromClients.first)
            recorded.session = .random()
            await rig.door.toBox(recorded, as: device)
            try await rig.sleep(.seconds(9))
            #expect(await rig.door.fromBoxes.contains { $0.session == recorded.session })
            #expect(try await rig.echoes(first))
            try await rig.sleep(.seconds(2))
            #expect(await rig.door.fromBoxes.last == .end(device: device, session: recorded.session))
            #expect(try await rig.echoes(first))
            // The device comes a second time: with the handshake nothing has changed, with its first message it has.
            var handshake = try InitiatorHandshake(key: rig.device, peer: rig.box.publicKey)
            let second = TunnelSessionID.random()
            await rig.door.toBox(TunnelFrame(.begin, session: second, payload: handshake.message1), as: device)
            try await rig.sleep(.seconds(1))
            #expect(try await rig.echoes(first))
            let answer = try #require(await rig.door.fromBoxes.first { $0.session == second })
            var session = try handshake.finish(reading: answer.payload)
            let hello = TunnelFrame(.control, session: second, payload: try session.seal(Bytes("hello")))
            await rig.door.toBox(hello, as: device)
            #expect(await rig.failure { try await first.receive() }?.code == .normal)
            try await rig.sleep(.milliseconds(1))
            let echo = try #require(await rig.door.fromBoxes.last { $0.session == second })
            #expect(try session.open(echo.payload) == Bytes("hello"))
            #expect(rig.metrics["box.sessions"] == 1)
            running.cancel()
        }
    }

    // R84
    @Test func `What is unreliable and nobody takes costs itself and nothing else`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let taken = Mutex<[Message]>([])
            let go = Signal()
            let running = await rig.serve(try rig.uplink()) { socket in
                _ = await go.wait()
                while let batch = try? await socket.receive() { taken.withLock { $0 += batch } }
            }
            let socket = try await rig.sealed(over: try rig.tunnel()).open(firstFlight: Bytes("hello"))
            try await rig.sleep(.milliseconds(1))
            for number in 0..<300 {
                try await socket.send(Message(Bytes("\(number)"), delivery: .unreliable))
                try await rig.sleep(.milliseconds(1))
            }
            try await socket.send(Message(Bytes("last")))
            try await rig.sleep(.milliseconds(1))
            go.signal()
            try await rig.sleep(.milliseconds(1))
            let (unreliable, control) = taken.withLock { taken in
                (taken.filter { $0.delivery == .unreliable }, taken.filter { $0.delivery == .control })
            }
            #expect(unreliable.count == 256)
            #expect(control.map(\.payload) == [Bytes("hello"), Bytes("last")])
            #expect(rig.metrics["tunnel.messages.dropped"] == 300 - 256)
            running.cancel()
        }
    }

    @Test func `A device that is removed loses its session, and the door is told`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let uplink = try rig.uplink()
            let running = await rig.echo(uplink)
            let carrier = rig.sealed(over: try rig.tunnel())
            let socket = try await carrier.open()
            #expect(try await rig.echoes(socket))
            rig.admission.keys.withLock { $0 = [] }
            await uplink.revoke(rig.device.publicKey)
            #expect(await rig.failure { try await socket.receive() }?.code == .normal)
            try await rig.sleep(.milliseconds(1))
            #expect(await rig.door.saidByBoxes.last == .revoke(DeviceKeys([rig.device.publicKey])))
            let opening = rig.simulation.start { try? await carrier.open() }
            try await rig.sleep(.seconds(20))
            #expect(rig.metrics["box.sessions"] == 0)
            opening.cancel()
            running.cancel()
        }
    }

    @Test func `A large roster goes in parts`() throws {
        let rig = TunnelRig()
        rig.admission.keys.withLock { keys in
            for _ in 0..<1_500 { keys.insert(StaticPrivateKey().publicKey) }
        }
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            var parts: [(count: Int, more: Bool)] = []
            var keys: Set<StaticPublicKey> = []
            for control in await rig.door.saidByBoxes {
                guard case .roster(let part, let more) = control else { continue }
                parts.append((part.keys.count, more))
                keys.formUnion(part.keys)
            }
            #expect(parts.map(\.count) == [1_024, 477])
            #expect(parts.map(\.more) == [true, false])
            #expect(keys == rig.admission.keys.withLock { $0 })
            running.cancel()
        }
    }

    // B55
    @Test func `A changed frame ends the session, and as a datagram costs itself`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let carrier = rig.sealed(over: try rig.tunnel())
            let socket = try await carrier.open()
            #expect(try await rig.echoes(socket))
            await rig.door.set { script in
                script.change = { frame in
                    guard frame.kind == .unreliable else { return frame }
                    var frame = frame
                    var bytes = Array(frame.payload)
                    bytes[bytes.count / 2] ^= 1
                    frame.payload = Bytes(bytes)
                    return frame
                }
            }
            try await socket.send(Message(Bytes("lost"), delivery: .unreliable))
            #expect(try await rig.echoes(socket))
            await rig.door.set { script in
                script.change = { frame in
                    guard frame.kind == .control, !frame.isEnd else { return frame }
                    var frame = frame
                    frame.payload = Bytes(Array(frame.payload.dropFirst(1)) + [0])
                    return frame
                }
            }
            #expect(await rig.failure { try await rig.echoes(socket) } != nil)
            #expect(rig.metrics["box.sessions"] == 0)
            await rig.door.set { $0.change = { $0 } }
            #expect(try await rig.echoes(try await carrier.open()))
            running.cancel()
        }
    }
}
