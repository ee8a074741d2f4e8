import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// The codec of the door's wire by itself: random values, random bytes, and what a text says.
@Suite struct DoorWireTests {
    @Test func `2,000 random values come back`() throws {
        var random = SeededGenerator.announced()
        for _ in 0..<2_000 {
            let (value, way) = DoorValue.random(using: &random)
            let bytes = try #require(value.encoded())
            #expect(try DoorValue.decode(value.reads, bytes, way) == value)
        }
    }

    @Test func `6,000 changed messages are read or refused, and nothing traps`() throws {
        var random = SeededGenerator.announced()
        var refused = 0
        for _ in 0..<6_000 {
            let (value, way) = DoorValue.random(using: &random)
            var bytes = try #require(value.encoded())
            for _ in 0..<Int.random(in: 1...4, using: &random) { bytes = bytes.mutated(using: &random) }
            do throws(DoorWireError) {
                let read = try DoorValue.decode(value.reads, bytes, way)
                // What is read can be written, and reads the same again.
                guard let written = read.encoded() else { continue }
                #expect(try DoorValue.decode(value.reads, written, way) == read)
            } catch {
                #expect((0...bytes.count).contains(error.offset))
                refused += 1
            }
        }
        #expect(refused > 600)
    }

    @Test func `Random bytes are read or refused, and nothing traps`() {
        var random = SeededGenerator.announced()
        for _ in 0..<4_000 {
            var bytes = Bytes.random(0...60, &random)
            // Most begin like something.
            if !bytes.isEmpty, Bool.random(using: &random) { bytes[0] = .random(in: 0...0x16, using: &random) }
            for reads in ["message", "control", "client-hello", "client-welcome", "box-hello", "box-welcome"] {
                for way in DoorWay.allCases {
                    guard let read = try? DoorValue.decode(reads, bytes, way) else { continue }
                    #expect(!read.described.isEmpty)
                }
            }
        }
    }

    // R77, R87-R89: who and where, the hash and the first message to the box ride in message 1, and the code is nowhere in it.
    @Test func `A hello rides in message 1, a welcome in message 2, and neither is of use on the other leg`() throws {
        let (client, door, box) = (StaticPrivateKey(), StaticPrivateKey(), StaticPrivateKey())
        let home = HomeID(of: box.publicKey)
        let code = Bytes((100..<116).map { UInt8($0) })
        let inner = try InitiatorHandshake(key: client, peer: box.publicKey, payload: code)
        let tun = TunnelFrame(.begin, session: .random(), payload: inner.message1)
        let hello = ClientHello(
            home: home, pair: PairingHash(home: home, code: code), tun: tun, window: DoorLimits.defaultWindow)
        let way = DoorWay.clientToDoor
        var handshake = try InitiatorHandshake(
            key: client, peer: door.publicKey, prologue: way.prologue, payload: hello.encoded())
        let sent = DoorMessage.handshake(handshake.message1).encoded()
        guard case .handshake(let message1) = try DoorMessage.decode(sent, way) else {
            Issue.record("message 1 reads as something else")
            return
        }
        #expect(throws: NoiseError.authentication) {
            _ = try ResponderHandshake(key: door, prologue: DoorWay.boxToDoor.prologue, reading: message1)
        }
        let responder = try ResponderHandshake(key: door, prologue: way.prologue, reading: message1)
        #expect(responder.peer == client.publicKey)
        let seen = responder.payload
        #expect(try ClientHello(seen) == hello)
        #expect(!seen.hex.contains(code.hex))
        #expect(!seen.isEmpty && seen.hex.contains(tun.payload.hex), "the search finds what is there")

        let welcome = ClientWelcome(window: DoorLimits.defaultWindow, box: BoxCapabilities(["tun"]))
        let answer = try responder.answer(payload: welcome.encoded())
        let session = try handshake.finish(reading: answer.message2)
        #expect(try ClientWelcome(session.payload) == welcome)
    }

    // R95: one text for one id.
    @Test func `An id has one text form`() throws {
        let home = HomeID(of: StaticPrivateKey().publicKey)
        let text = home.description
        #expect(text.utf8.count == 26)
        #expect(HomeID(text) == home)
        #expect(HomeID(text.uppercased()) == nil || text.uppercased() == text)
        #expect(HomeID(String(text.dropLast())) == nil)
        #expect(HomeID(text + "a") == nil)
        #expect(HomeID("1" + text.dropFirst()) == nil)
        #expect(HomeID("é" + text.dropFirst(2)) == nil)
        // The last character holds three bits; the other two are zero.
        #expect(HomeID(String(repeating: "a", count: 26))?.bytes == Bytes(repeating: 0, count: 16))
        #expect(HomeID(String(repeating: "7", count: 25) + "4")?.bytes == Bytes(repeating: 0xff, count: 16))
        #expect(HomeID(String(repeating: "a", count: 25) + "b") == nil)
        #expect(HomeID(Bytes(repeating: 0, count: 15)) == nil)
    }

    @Test func `Ids of homes and of devices differ for one key`() {
        let key = StaticPrivateKey().publicKey
        #expect(HomeID(of: key).bytes != DeviceID(of: key).bytes)
    }

    // B23.
    @Test func `A pairing hash does not show in text`() throws {
        let hash = try #require(
            PairingHash(home: HomeID(of: StaticPrivateKey().publicKey), code: Bytes(repeating: 1, count: 16)))
        #expect("\(hash)" == "a pairing hash")
        #expect(PairingHash(home: HomeID(of: StaticPrivateKey().publicKey), code: [1]) == nil)
    }

    @Test func `Capabilities are a set of plain names`() throws {
        let set = try #require(BoxCapabilities(["tun", "a.b-1", "tun"]))
        #expect(set.names == ["a.b-1", "tun"])
        #expect(set.contains(BoxCapabilities.tunnel))
        for name in ["", "Tun", "a b", "ü", String(repeating: "a", count: 33)] {
            #expect(BoxCapabilities([name]) == nil)
        }
        #expect(BoxCapabilities((0..<33).map { "n\($0)" }) == nil)
        #expect(BoxCapabilities((0..<32).map { "n\($0)" }) != nil)
    }

    @Test func `A frame costs its bytes and a little more, an end and what may be lost nothing`() {
        let session = TunnelSessionID.random()
        let frame = { (kind: TunnelFrame.Kind) in TunnelFrame(kind, session: session, payload: [1, 2, 3]) }
        #expect(frame(.begin).cost == 67)
        #expect(frame(.control).cost == 67)
        #expect(frame(.bulk).cost == 67)
        #expect(frame(.unreliable).cost == 0)
        #expect(TunnelFrame.end(session: session).cost == 0)
    }

    // Part 3: whoever has read everything has raised the credit to half a window at least, and that must be enough for the
    // longest bulk message and the reserve, or neither end would ever move again.
    @Test func `Half of the smallest window lets the longest bulk message through`() {
        let window = UInt64(DoorLimits.window.lowerBound)
        let longest = TunnelFrame(
            .bulk, session: .random(), payload: Bytes(repeating: 0, count: DoorLimits.framePayload))
        #expect(longest.cost + window / 8 <= window / 2)
        #expect(DoorLimits.framePayload + TunnelFrame.headerLength(.boxToDoor) == DoorLimits.message)
    }

    @Test func `A header goes into the headroom of what a frame carries`() {
        let payload = Bytes(copying: UnsafeRawBufferPointer(start: nil, count: 0), headroom: 64)
        var filled = payload
        filled.append(contentsOf: [9, 9, 9])
        let frame = TunnelFrame(.bulk, session: TunnelSessionID(rawValue: 1), payload: filled)
        #expect(frame.encoded() == [4, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9])
        #expect(frame.payload == [9, 9, 9])
    }

    @Test func `An error says what is wrong, and where`() {
        let error = #expect(throws: DoorWireError.self) {
            try DoorControl.decode([0x04, 7, 3, 1, 2, 3], .clientToDoor)
        }
        #expect(error == DoorWireError(.badLength, in: "credit", field: "sid", at: 1))
        #expect(
            error?.description
                == "a length that is not allowed in the field sid of the door's message credit, at byte 1")
    }
}
