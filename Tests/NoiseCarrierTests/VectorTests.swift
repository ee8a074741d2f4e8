import Testing
import TransportKit

@testable import NoiseCarrier

/// Handshakes and messages that others have written down, byte for byte (R62, part 2.2).
@Suite struct VectorTests {
    @Test(arguments: ["noise-ik-cacophony.json", "noise-ik-snow.json"])
    func `The handshakes of the Noise projects replay`(file: String) throws {
        let vectors = try (Vectors.read(file) as Vectors.Conversations).vectors
        #expect(vectors.count == 1)
        for vector in vectors {
            let initiatorKey = try #require(StaticPrivateKey(vector.initStatic))
            let responderKey = try #require(StaticPrivateKey(vector.respStatic))
            #expect(responderKey.publicKey.bytes == vector.initRemoteStatic)
            let messages = vector.messages

            var initiator = try InitiatorHandshake(
                key: initiatorKey, peer: responderKey.publicKey, prologue: .bytes(vector.initPrologue),
                payload: messages[0].payload, ephemeral: Secret(vector.initEphemeral))
            #expect(initiator.message1 == messages[0].ciphertext)

            let responder = try ResponderHandshake(
                key: responderKey, prologue: .bytes(vector.respPrologue), reading: messages[0].ciphertext)
            #expect(responder.payload == messages[0].payload)
            #expect(responder.peer == initiatorKey.publicKey)

            let answer = try responder.answer(
                payload: messages[1].payload, ephemeral: Secret(vector.respEphemeral))
            #expect(answer.message2 == messages[1].ciphertext)

            let session = try initiator.finish(reading: messages[1].ciphertext)
            #expect(session.payload == messages[1].payload)
            #expect(session.handshakeHash == answer.session.handshakeHash)
            if let hash = vector.handshakeHash { #expect(session.handshakeHash == hash) }

            // Their transport messages have no number in front, so their nonces are implicit and their data is empty.
            for (index, message) in messages.enumerated().dropFirst(2) {
                let number = UInt64(index / 2 - 1)
                let sealed =
                    index % 2 == 0
                    ? session.sealer.plainNoise(message.payload, number: number)
                    : answer.session.sealer.plainNoise(message.payload, number: number)
                #expect(sealed == message.ciphertext, "message \(index)")
            }
        }
    }

    @Test func `The end-to-end session of another implementation replays`() throws {
        let vectors: Vectors.EndToEnd = try Vectors.read("webapp-vectors.json")
        let handshake = vectors.handshake
        let app = try #require(StaticPrivateKey(handshake.initiatorStatic))
        let box = try #require(StaticPrivateKey(handshake.responderStatic))
        #expect(app.publicKey.bytes == handshake.initiatorStaticPublic)
        #expect(box.publicKey.bytes == handshake.responderStaticPublic)
        let prologue = NoisePrologue.bytes(handshake.prologue)

        var initiator = try InitiatorHandshake(
            key: app, peer: box.publicKey, prologue: prologue, payload: handshake.message1Payload,
            ephemeral: Secret(handshake.initiatorEphemeral))
        #expect(initiator.message1 == handshake.message1)
        let answer = try ResponderHandshake(key: box, prologue: prologue, reading: handshake.message1)
            .answer(payload: handshake.message2Payload, ephemeral: Secret(handshake.responderEphemeral))
        #expect(answer.message2 == handshake.message2)
        let session = try initiator.finish(reading: handshake.message2)
        #expect(session.handshakeHash == handshake.handshakeHash)
        #expect(session.payload == handshake.message2Payload)

        let (atApp, atBox) = (Ends(session), Ends(answer.begin()))
        for message in vectors.transport {
            let frame = try #require(vectors.frames.first { $0.name == message.frame }).bytes
            let (from, to) = message.from == "app" ? (atApp, atBox) : (atBox, atApp)
            #expect(TransportMessage.number(of: message.wire) == message.seq)
            #expect(try from.session.seal(frame) == message.wire, "\(message.from) \(message.seq)")
            #expect(try to.session.open(message.wire) == frame)
        }
        #expect(vectors.transport.count == 7)
    }

    @Test func `A prologue begins with its label and ends with the key of the responder`() {
        let box = StaticPrivateKey().publicKey
        var expected = Bytes("ftw.session.v1:")
        expected.append(contentsOf: box.bytes)
        #expect(NoisePrologue.session.bytes(responder: box) == expected)
    }
}

/// A session that a closure may change.
private final class Ends {
    var session: NoiseSession

    init(_ session: consuming NoiseSession) {
        self.session = session
    }
}
