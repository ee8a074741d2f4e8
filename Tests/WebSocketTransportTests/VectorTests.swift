import Foundation
import Testing
import TransportKit
import WebSocketTransport

/// The examples of RFC 6455, replayed.
@Suite struct VectorTests {
    struct Vectors: Decodable {
        struct Handshake: Decodable {
            let key: String
            let accept: String
        }

        struct Frame: Decodable {
            let hex: String?
            let hex_prefix: String?
            let fin: Bool
            let opcode: UInt8
            let masked: Bool
            let payload: String?
            let len: Int?
        }

        let handshake: Handshake
        let frames: [Frame]
    }

    let vectors: Vectors

    init() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../vectors/rfc6455.json")
        vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
    }

    @Test func `The answer to the key of section 1.3 is the one printed there`() {
        #expect(AcceptKey.answer(to: vectors.handshake.key) == vectors.handshake.accept)
        #expect(AcceptKey.isValid(vectors.handshake.key))
    }

    @Test func `Every whole frame of section 5.7 is read as printed and, unmasked, written as printed`() throws {
        for vector in vectors.frames where vector.opcode != 0 {
            let payload = vector.payload.map { Bytes($0) } ?? Bytes(repeating: 9, count: vector.len ?? 0)
            let bytes = vector.hex.map { hex($0) } ?? (hex(vector.hex_prefix ?? "") + payload)
            let received = receive(bytes, as: vector.masked ? .server : .client)
            #expect(received.failure == nil)
            switch (vector.opcode, vector.fin) {
            case (1, true), (2, true):
                let message = Message(payload, format: vector.opcode == 1 ? .text : .binary)
                #expect(received.messages == [message])
                guard !vector.masked else { continue }
                var wire = WebSocketWire(role: .server, maxMessageBytes: 1 << 20)
                var output = Bytes()
                wire.write(message, into: &output)
                #expect(output == bytes)
            case (9, _):
                #expect(receive(received.answers, as: .server).failure == nil)
                #expect(received.answers.prefix(2) == hex("8a85"))
            default: #expect(received.messages.isEmpty)
            }
        }
        let fragments = vectors.frames.filter { !$0.fin || $0.opcode == 0 }.compactMap(\.hex)
        #expect(fragments.count == 2)
        #expect(receive(hex(fragments.joined()), as: .client).messages == [.text("Hello")])
    }
}
