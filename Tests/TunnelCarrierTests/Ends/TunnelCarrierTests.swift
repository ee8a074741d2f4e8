import MemoryTransport
import NoiseCarrier
import Synchronization
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// A client's sessions through a door that is scripted, with a box that is real.
@Suite struct TunnelCarrierTests {
    // R76, R77, R165
    @Test func `The first message of a session rides in message 1 to the door`() throws {
        let rig = TunnelRig()
        rig.network.change { $0.delay = .milliseconds(10) }
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let tunnel = try rig.tunnel()
            let start = rig.simulation.time.now()
            let socket = try await rig.sealed(over: tunnel).open()
            // A dial of one round trip, and then to the door, to the box, and back to the door and the client.
            #expect(rig.simulation.time.now() - start == .milliseconds(20 + 40))
            let hello = try #require(await rig.door.hellos.first)
            #expect(await rig.door.hellos.count == 1)
            #expect(hello.home == HomeID(of: rig.box.publicKey))
            #expect(hello.pair == nil)
            #expect(hello.tun?.payload.count == 96)
            #expect(await rig.door.fromClients.first == hello.tun)
            for delivery in Delivery.allCases { #expect(try await rig.echoes(socket, "hello", delivery)) }
            #expect(socket.info.protection == .endToEnd)
            #expect(socket.info.maxMessageBytes == 65_511 - 24)
            #expect(tunnel.states.latest == .open(CarrierPath(carrier: "tunnel", transport: .memory)))
            running.cancel()
            await running.value
        }
    }

    // R78, R79
    @Test func `A session that comes while the link is dialled begins with message 2`() throws {
        let rig = TunnelRig()
        rig.network.change { $0.delay = .milliseconds(10) }
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let tunnel = try rig.tunnel()
            let first = rig.simulation.start { try? await rig.sealed(over: tunnel).open() }
            // The dial has taken 20 ms, and message 2 is still out.
            try await rig.sleep(.milliseconds(25))
            let second = try await rig.sealed(over: tunnel).open()
            #expect(await first.value == nil)
            #expect(try await rig.echoes(second))
            #expect(await rig.door.hellos.count == 1)
            let begun = await rig.door.fromClients.filter { $0.kind == .begin }
            #expect(begun.count == 2)
            #expect(begun[0].session != begun[1].session)
            running.cancel()
        }
    }

    // R82, R166
    @Test func `An end from the box is followed by a new session with a new number`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let carrier = rig.sealed(over: try rig.tunnel())
            let first = try await carrier.open()
            #expect(try await rig.echoes(first))
            try await rig.sleep(.seconds(30))
            let old = try #require(await rig.door.fromClients.first).session
            await rig.door.toClient(.end(session: old))
            #expect(await rig.failure { try await first.receive() }?.code == .normal)
            let before = rig.simulation.time.now()
            let second = try await carrier.open()
            // It has carried for 30 s, so there is no pause.
            #expect(rig.simulation.time.now() == before)
            #expect(try await rig.echoes(second))
            // R168: what is late for the older one is dropped.
            await rig.door.toClient(TunnelFrame(.control, session: old, payload: Bytes("late")))
            await rig.door.toClient(.end(session: old))
            #expect(try await rig.echoes(second))
            #expect(await rig.door.hellos.count == 1)
            running.cancel()
        }
    }

    // R81, R167
    @Test func `A box that ends every session at its first message gets eight in a minute`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.serve(try rig.uplink()) { _ in }
            let carrier = rig.sealed(over: try rig.tunnel())
            let start = rig.simulation.time.now()
            var sessions = 0
            while rig.simulation.time.now() - start < .seconds(60) {
                let socket = try await carrier.open(firstFlight: Bytes("hello"))
                if rig.simulation.time.now() - start < .seconds(60) { sessions += 1 }
                #expect(await rig.failure { try await socket.receive() } != nil)
            }
            #expect(sessions == 8)
            running.cancel()
        }
    }

    // R85, R168
    @Test func `A wake dials afresh and lets nobody wait`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let carrier = rig.sealed(over: try rig.tunnel())
            let first = try await carrier.open()
            #expect(try await rig.echoes(first))
            let before = rig.simulation.time.now()
            await carrier.wake()
            #expect(await rig.failure { try await first.receive() }?.code == .pathLost)
            #expect(try await rig.echoes(try await carrier.open()))
            #expect(rig.simulation.time.now() == before)
            #expect(await rig.door.hellos.count == 2)
            running.cancel()
        }
    }

    // R86, R168
    @Test func `Closing a session ends it at the box and leaves the link`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let tunnel = try rig.tunnel()
            let carrier = rig.sealed(over: tunnel)
            let first = try await carrier.open()
            #expect(try await rig.echoes(first))
            #expect(rig.metrics["box.sessions"] == 1)
            #expect(await first.close() == Close(.normal, origin: .local))
            try await rig.sleep(.milliseconds(1))
            #expect(await rig.door.fromClients.last?.isEnd == true)
            #expect(rig.metrics["box.sessions"] == 0)
            #expect(try await rig.echoes(try await carrier.open()))
            #expect(await rig.door.hellos.count == 1)
            await carrier.close()
            try await rig.sleep(.milliseconds(1))
            #expect(rig.metrics["box.sessions"] == 0)
            #expect(await !rig.door.hasClient)
            running.cancel()
        }
    }

    // R90, R168
    @Test func `A refusal tries the door's next key with the same first message`() throws {
        let newer = StaticPrivateKey()
        let rig = TunnelRig(doorKeys: [newer])
        try rig.run {
            try await rig.openDoor()
            let uplink = BoxUplink(
                through: try rig.dialer(isBox: true), key: rig.box, doorKeys: [rig.doorKey, newer].map(\.publicKey),
                admission: rig.admission, executor: rig.simulation.executor, time: rig.simulation.time)
            let running = await rig.echo(uplink)
            let tunnel = try rig.tunnel { $0.doorKeys.append(newer.publicKey) }
            let carrier = rig.sealed(over: tunnel)
            #expect(try await rig.echoes(try await carrier.open()))
            #expect(await rig.door.refusals == 2)
            #expect(await rig.door.hellos.count == 1)
            #expect(await rig.door.fromClients.count { $0.kind == .begin } == 1)
            // The key that was right is tried first from now on.
            await carrier.wake()
            #expect(try await rig.echoes(try await carrier.open()))
            #expect(await rig.door.refusals == 2)
            // Where none is right, the client is refused.
            let stranger = rig.sealed(over: try rig.tunnel())
            #expect(await rig.failure { try await stranger.open() }?.code == .refused)
            running.cancel()
        }
    }

    // R91
    @Test func `Where the box is not linked or takes no sessions, another carrier is tried at once`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let carrier = rig.sealed(over: try rig.tunnel())
            let start = rig.simulation.time.now()
            for _ in 0..<3 {
                let close = await rig.failure { try await carrier.open() }
                #expect(close?.code == .nobodyThere)
                #expect(close?.cause?.code == .unsupported)
            }
            await rig.door.set { $0.capabilities = BoxCapabilities(["relay"]) }
            let running = await rig.echo(try rig.uplink())
            #expect(await rig.failure { try await carrier.open() }?.cause?.code == .unsupported)
            #expect(rig.simulation.time.now() == start)
            // As soon as the box says that it can, it is taken.
            await rig.door.set { $0.capabilities = nil }
            await rig.door.sayToClient(.box(.onlyTunnel))
            try await rig.sleep(.milliseconds(1))
            let socket = try await carrier.open()
            #expect(try await rig.echoes(socket))
            // R93
            await rig.door.sayToClient(.box(BoxCapabilities(["relay"])))
            #expect(try await rig.echoes(socket))
            #expect(await rig.door.hellos.count == 1)
            running.cancel()
        }
    }

    // R87, R88, R89, R168
    @Test func `A new client pairs through the door, which sees only the hash`() throws {
        let rig = TunnelRig()
        try rig.run {
            let code = Bytes((0..<16).map { _ in UInt8.random(in: 0...255) })
            rig.admission.codes.withLock { _ = $0.insert(code) }
            try await rig.openDoor()
            let uplink = try rig.uplink()
            let running = await rig.echo(uplink)
            await uplink.expect(code, for: .seconds(300))
            let phone = StaticPrivateKey()
            let tunnel = try rig.tunnel(phone) { $0.pairingCode = { code } }
            let socket = try await rig.sealed(over: tunnel, phone, code: code).open()
            #expect(try await rig.echoes(socket))
            let hash = try #require(PairingHash(home: HomeID(of: rig.box.publicKey), code: code))
            #expect(await rig.door.hellos.last?.pair == hash)
            let said = await rig.door.saidByBoxes
            #expect(said.contains(.expect(hash, seconds: 300)))
            #expect(said.suffix(2) == [.admit(DeviceKeys([phone.publicKey])), .forget(hash)])
            let seen = await rig.door.fromClients.map(\.payload)
            #expect(!seen.contains { Array($0).contains(Array(code)) })
            running.cancel()
        }
    }

    // B40
    @Test func `A door that does not route by the link any more is left within 40 s`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let carrier = rig.sealed(over: try rig.tunnel())
            let socket = try await carrier.open()
            #expect(try await rig.echoes(socket))
            let heard = rig.simulation.time.now()
            try await rig.sleep(.seconds(31))
            guard case .check = await rig.door.saidByClients.last else {
                Issue.record("no check")
                return
            }
            await rig.door.set { $0.answersChecks = false }
            #expect(await rig.failure { try await socket.receive() }?.code == .pathLost)
            // The answer to the first check was the last that came.
            #expect(rig.simulation.time.now() == heard + .seconds(30 + 30 + 10))
            #expect(try await rig.echoes(try await carrier.open()))
            running.cancel()
        }
    }

    @Test func `A second session ends the first, and a cancelled open leaves the carrier usable`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            let carrier = rig.sealed(over: try rig.tunnel())
            let first = try await carrier.open()
            let second = try await carrier.open()
            #expect(await rig.failure { try await first.receive() }?.code == .displaced)
            #expect(try await rig.echoes(second))
            rig.network.change { $0.isSilent = true }
            await carrier.wake()
            let opening = rig.simulation.start { await rig.failure { try await carrier.open() } }
            try await rig.sleep(.seconds(1))
            opening.cancel()
            #expect(await opening.value == .cancelled)
            rig.network.change { $0.isSilent = false }
            #expect(try await rig.echoes(try await carrier.open()))
            running.cancel()
        }
    }

    // R72, R79
    @Test func `A handshake that nobody answers is repeated on the standing socket under a new number`() throws {
        let rig = TunnelRig()
        try rig.run {
            try await rig.openDoor()
            let running = await rig.echo(try rig.uplink())
            await rig.door.set { $0.passesToBox = false }
            let carrier = rig.sealed(over: try rig.tunnel())
            let opening = rig.simulation.start { try? await carrier.open() }
            try await rig.sleep(.seconds(13))
            await rig.door.set { $0.passesToBox = true }
            let socket = try #require(await opening.value)
            #expect(rig.simulation.time.now() == .zero + .milliseconds(13_500))
            #expect(try await rig.echoes(socket))
            let begun = await rig.door.fromClients.filter { $0.kind == .begin }
            #expect(Set(begun.map(\.session)).count == 2)
            running.cancel()
        }
    }
}
