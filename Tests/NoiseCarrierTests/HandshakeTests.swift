import Testing
import TransportKit
import TransportKitTesting

@testable import NoiseCarrier

/// A handshake becomes a session once, with the right peer, and with nobody else.
@Suite struct HandshakeTests {
    let app = StaticPrivateKey()
    let box = StaticPrivateKey()

    @Test func `The messages have the lengths of the wire`() throws {
        let bare = try InitiatorHandshake(key: app, peer: box.publicKey)
        #expect(bare.message1.count == 96)
        let pairing = try InitiatorHandshake(key: app, peer: box.publicKey, payload: Bytes("sixteen byte cod"))
        #expect(pairing.message1.count == 112)
        let responder = try ResponderHandshake(key: box, reading: pairing.message1)
        #expect(responder.payload == Bytes("sixteen byte cod"))
        #expect(responder.peer == app.publicKey)
        let answer = try responder.answer()
        #expect(answer.message2.count == 48)
    }

    @Test func `Each handshake is new`() throws {
        // R69
        let first = try InitiatorHandshake(key: app, peer: box.publicKey)
        let second = try InitiatorHandshake(key: app, peer: box.publicKey)
        #expect(first.message1 != second.message1)
        let answers = try (0..<2).map { _ in
            try ResponderHandshake(key: box, reading: first.message1).answer().session.handshakeHash
        }
        #expect(answers[0] != answers[1])
    }

    @Test func `Another prologue, another key and an impostor are refused`() throws {
        let handshake = try InitiatorHandshake(key: app, peer: box.publicKey)
        #expect(throws: NoiseError.authentication) {
            _ = try ResponderHandshake(key: box, prologue: .label("ftw.session.v2:"), reading: handshake.message1).peer
        }
        #expect(throws: NoiseError.authentication) {
            _ = try ResponderHandshake(key: StaticPrivateKey(), reading: handshake.message1).peer
        }
        // Somebody who has the public key of the box, and not its private one, cannot answer.
        let impostor = StaticPrivateKey()
        var toImpostor = try InitiatorHandshake(key: app, peer: impostor.publicKey)
        let answer = try ResponderHandshake(key: impostor, reading: toImpostor.message1).answer()
        var toBox = try InitiatorHandshake(key: app, peer: box.publicKey)
        #expect(throws: NoiseError.authentication) { _ = try toBox.finish(reading: answer.message2).peer }
        #expect(try toImpostor.finish(reading: answer.message2).peer == impostor.publicKey)
    }

    @Test func `A handshake becomes a session once`() throws {
        // R70
        var handshake = try InitiatorHandshake(key: app, peer: box.publicKey)
        let answer = try ResponderHandshake(key: box, reading: handshake.message1).answer()
        _ = try handshake.finish(reading: answer.message2).peer
        #expect(throws: NoiseError.wrongState) { _ = try handshake.finish(reading: answer.message2).peer }
    }

    @Test func `Stray messages poison the handshake on neither side`() throws {
        // R73
        var random = SeededGenerator.announced()
        var handshake = try InitiatorHandshake(key: app, peer: box.publicKey)
        let answer = try ResponderHandshake(key: box, reading: handshake.message1).answer()
        for index in 0..<handshake.message1.count {
            let changed = handshake.message1.flipped(at: index, bit: 1 << UInt8.random(in: 0..<8, using: &random))
            // The top bit of a point is not part of it (RFC 7748 §5), but of the hash.
            #expect(throws: NoiseError.self) { _ = try ResponderHandshake(key: box, reading: changed).peer }
        }
        for index in 0..<answer.message2.count {
            let changed = answer.message2.flipped(at: index, bit: 1 << UInt8.random(in: 0..<8, using: &random))
            #expect(throws: NoiseError.self) { _ = try handshake.finish(reading: changed).peer }
        }
        for count in [0, 1, 31, 32, 47, 48, 95, 96, 97, 1000, 65_535, 65_536] {
            let stray = Bytes.random(count, using: &random)
            #expect(throws: NoiseError.self) { _ = try handshake.finish(reading: stray).peer }
            #expect(throws: NoiseError.self) { _ = try ResponderHandshake(key: box, reading: stray).peer }
        }
        #expect(throws: NoiseError.messageTooShort) { _ = try handshake.finish(reading: Bytes()).peer }
        var session = try handshake.finish(reading: answer.message2)
        var other = answer.begin()
        #expect(try other.open(try session.seal(Bytes("still fine"))) == Bytes("still fine"))
    }

    @Test func `Mutated and made up handshakes are refused, and none of them traps`() throws {
        var random = SeededGenerator.announced()
        var handshake = try InitiatorHandshake(key: app, peer: box.publicKey, payload: Bytes("payload"))
        let answer = try ResponderHandshake(key: box, reading: handshake.message1).answer()
        for round in 0..<400 {
            for message in [handshake.message1, answer.message2] {
                var changed = message
                switch Int.random(in: 0..<5, using: &random) {
                case 0: changed = changed.prefix(Int.random(in: 0..<changed.count, using: &random))
                case 1: changed.append(contentsOf: Bytes.random(round % 40 + 1, using: &random))
                case 2: changed = .random(Int.random(in: 0...200, using: &random), using: &random)
                case 3:
                    // A run of zeros, so that points of small order come up.
                    changed = Bytes([UInt8](repeating: 0, count: 32))
                    changed.append(contentsOf: message.dropFirst(32))
                default:
                    let place = Int.random(in: 0..<changed.count, using: &random)
                    changed = changed.flipped(at: place, bit: 1 << UInt8.random(in: 0..<8, using: &random))
                }
                #expect(throws: NoiseError.self) { _ = try handshake.finish(reading: changed).peer }
                #expect(throws: NoiseError.self) { _ = try ResponderHandshake(key: box, reading: changed).peer }
            }
        }
        #expect(try handshake.finish(reading: answer.message2).peer == box.publicKey)
    }

    @Test func `A public key of small order is refused before anything is said`() throws {
        // RFC 7748 §6.1: points whose multiples are all zero.
        for first in [UInt8(0), 1] {
            var bytes = [UInt8](repeating: 0, count: 32)
            bytes[0] = first
            let small = try #require(StaticPublicKey(Bytes(bytes)))
            #expect(throws: NoiseError.badKey) { _ = try InitiatorHandshake(key: app, peer: small).message1 }
        }
        var message = Bytes([UInt8](repeating: 0, count: 32))
        message.append(contentsOf: try InitiatorHandshake(key: app, peer: box.publicKey).message1.dropFirst(32))
        #expect(throws: NoiseError.badKey) { _ = try ResponderHandshake(key: box, reading: message).peer }
    }

    @Test func `A payload that Noise has no room for is refused`() throws {
        let most = Bytes([UInt8](repeating: 7, count: 65_535 - 96))
        #expect(try InitiatorHandshake(key: app, peer: box.publicKey, payload: most).message1.count == 65_535)
        var more = most
        more.append(7)
        #expect(throws: NoiseError.messageTooLong) {
            _ = try InitiatorHandshake(key: app, peer: box.publicKey, payload: more).message1
        }
    }
}
