import TransportKit
import WebSocketTransport

extension FuzzTarget {
    /// The frames of a WebSocket, at both ends: read alike however they are cut, and never more than a message may have.
    static let webSocketFrames = FuzzTarget(name: "websocket-frames") {
        let forms: [(UInt8, [UInt8])] = [
            (0, [0x82, 0x83, 1, 2, 3, 4, 5, 6, 7]), (1, [0x82, 0x03, 5, 6, 7]),
            (1, [0x01, 0x02] + Array("he".utf8) + [0x89, 0x01, 9, 0x80, 0x03] + Array("llo".utf8)),
            (1, [0x82, 0x7e, 0x00, 0x80] + [UInt8](repeating: 3, count: 128)),
            (1, [0x88, 0x05, 0x03, 0xe8] + Array("bye".utf8)),
            (1, [0x82, 0x7f, 0, 0, 0, 1, 0, 0, 0, 0]),
        ]
        return forms.map { Bytes([$0.0, 2] + $0.1) }
    } run: { input in
        let role: WebSocketWire.Role = input.byte() % 2 == 0 ? .server : .client
        let (whole, pieces) = input.wholeAndPieces()
        let (one, other) = try (read(role, [whole]), read(role, pieces))
        try demand(one == other, "whole: \(one); in pieces: \(other)")
    }

    private static let limit = 1024

    private static func read(_ role: WebSocketWire.Role, _ pieces: [Bytes]) throws -> [String] {
        var wire = WebSocketWire(role: role, maxMessageBytes: limit)
        var messages: [Message] = []
        var failure = ""
        for piece in pieces {
            do throws(WireFailure) {
                try piece.withUnsafeBytes { (bytes) throws(WireFailure) in try wire.receive(bytes, into: &messages) }
            } catch {
                failure = "\(error.code) \(error.what)"
                break
            }
        }
        try demand(messages.allSatisfy { $0.payload.count <= limit }, "a message beyond the limit")
        return messages.map { "\($0.format) \(Array($0.payload))" } + [failure, "\(wire.peerClose, default: "open")"]
    }
}
