import Testing
import TransportKit
import TransportKitTesting

@testable import NoiseCarrier

extension StaticPrivateKey {
    convenience init?(_ bytes: Bytes) {
        let key = bytes.withUnsafeBytes { StaticPrivateKey($0) }
        guard let text = key?.exportText() else { return nil }
        self.init(text)
    }
}

extension Secret {
    init(_ bytes: Bytes) {
        self.init(count: bytes.count)
        bytes.withUnsafeBytes { fill(from: $0) }
    }
}

extension NoiseSealer {
    /// A transport message as the Noise Protocol Framework has it: without a number in front, and without associated data.
    func plainNoise(_ plaintext: Bytes, number: UInt64) -> Bytes {
        Bytes(unsafeUninitializedCapacity: plaintext.count + Sodium.tagLength) { room in
            plaintext.withUnsafeBytes { plaintext in
                Sodium.seal(
                    plaintext, into: room, associatedData: UnsafeRawBufferPointer(start: nil, count: 0), number: number,
                    key: key)
            }
            return room.count
        }
    }
}

/// The two ends of one session.
final class Pair {
    var initiator: NoiseSession
    var responder: NoiseSession

    init(prologue: NoisePrologue = .session) throws {
        let (app, box) = (StaticPrivateKey(), StaticPrivateKey())
        var handshake = try InitiatorHandshake(key: app, peer: box.publicKey, prologue: prologue)
        let answer = try ResponderHandshake(key: box, prologue: prologue, reading: handshake.message1).answer()
        initiator = try handshake.finish(reading: answer.message2)
        responder = answer.begin()
    }

    func seal(_ text: String) throws -> Bytes { try initiator.seal(Bytes(text)) }

    func open(_ message: Bytes) throws(NoiseError) -> Bytes { try responder.open(message) }
}

extension Bytes {
    /// The same bytes with one bit changed.
    func flipped(at index: Int, bit: UInt8 = 1) -> Bytes {
        var changed = self
        changed[index] ^= bit
        return changed
    }

    static func random(_ count: Int, using generator: inout SeededGenerator) -> Bytes {
        Bytes((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}
