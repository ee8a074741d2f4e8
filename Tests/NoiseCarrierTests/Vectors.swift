import Foundation
public import TransportKit

@testable import NoiseCarrier

/// The files of `Tests/vectors` that hold handshakes and sessions.
enum Vectors {
    static func read<File: Decodable>(_ name: String) throws -> File {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../vectors/\(name)")
        return try JSONDecoder().decode(File.self, from: Data(contentsOf: file))
    }

    /// One handshake with fixed keys and the messages after it, initiator first.
    struct Conversation: Decodable {
        struct Message: Decodable {
            let payload: Bytes
            let ciphertext: Bytes
        }

        let protocolName: String
        let initPrologue: Bytes
        let respPrologue: Bytes
        let initStatic: Bytes
        let initEphemeral: Bytes
        let initRemoteStatic: Bytes
        let respStatic: Bytes
        let respEphemeral: Bytes
        let handshakeHash: Bytes?
        let messages: [Message]

        enum CodingKeys: String, CodingKey {
            case protocolName = "protocol_name"
            case initPrologue = "init_prologue"
            case respPrologue = "resp_prologue"
            case initStatic = "init_static"
            case initEphemeral = "init_ephemeral"
            case initRemoteStatic = "init_remote_static"
            case respStatic = "resp_static"
            case respEphemeral = "resp_ephemeral"
            case handshakeHash = "handshake_hash"
            case messages
        }
    }

    struct Conversations: Decodable {
        /// Those of the one protocol that is spoken here.
        let vectors: [Conversation]

        enum CodingKeys: CodingKey { case vectors }

        init(from decoder: any Decoder) throws {
            let all = try decoder.container(keyedBy: CodingKeys.self).decode([Conversation].self, forKey: .vectors)
            vectors = all.filter { $0.protocolName == "Noise_IK_25519_ChaChaPoly_SHA256" }
        }
    }

    /// A handshake and messages of another implementation of the end-to-end session.
    struct EndToEnd: Decodable {
        struct Handshake: Decodable {
            let prologue, initiatorStatic, initiatorStaticPublic, initiatorEphemeral: Bytes
            let responderStatic, responderStaticPublic, responderEphemeral: Bytes
            let message1Payload, message1, message2Payload, message2, handshakeHash: Bytes
        }

        struct Frame: Decodable {
            let name: String
            let bytes: Bytes
        }

        struct Sealed: Decodable {
            let from, frame: String
            let seq: UInt64
            let wire: Bytes
        }

        let handshake: Handshake
        let frames: [Frame]
        let transport: [Sealed]
    }

    struct Window: Decodable {
        struct Step: Decodable {
            let number: UInt64
            let verdict: String

            init(from decoder: any Decoder) throws {
                var pair = try decoder.unkeyedContainer()
                number = try pair.decode(UInt64.self)
                verdict = try pair.decode(String.self)
            }
        }

        let edges, burstOvertakesControl, shuffled3000: [Step]
    }
}

extension Bytes: Decodable {
    /// Reads hexadecimal digits.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "an odd number of digits")
        }
        self.init(capacity: digits.count / 2)
        for start in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[start..<start + 2], as: UTF8.self)
            guard let byte = UInt8(pair, radix: 16) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(pair) is no byte")
            }
            append(byte)
        }
    }
}
