import TransportKit
import WebSocketTransport

extension FuzzTarget {
    /// The upgrade to a WebSocket, at both ends: read alike however it is cut.
    static let upgrade = FuzzTarget(name: "upgrade") {
        let request =
            "GET /v1/app?x=1 HTTP/1.1\r\nHost: door.example:443\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Protocol: tk-mux.1, other\r\n\r\nrest"
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: tk-mux.1\r\n\r\nrest"
        let refusal =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Length: 4\r\n\r\nbusy"
        return [(0, request), (1, answer), (1, refusal)].map { Bytes([$0.0, 3] + Array($0.1.utf8)) }
    } run: { input in
        let isClient = input.byte() % 2 == 1
        let (whole, pieces) = input.wholeAndPieces()
        let read = isClient ? askedBy : askedOf
        let (one, other) = try (read([whole]), read(pieces))
        try demand(one == other, "whole: \(one); in pieces: \(other)")
    }

    private static func askedOf(_ pieces: [Bytes]) throws -> [String] {
        var reader = HTTPHeadReader()
        var rest = pieces[...]
        while let piece = rest.popFirst() {
            do throws(HTTPHead.Malformed) {
                guard
                    let (head, left) = try piece.withUnsafeBytes({ (bytes) throws(HTTPHead.Malformed) in
                        try reader.take(bytes)
                    })
                else { continue }
                let after = Array(left) + rest.flatMap { Array($0) }
                return ["\(UpgradeRequest.judge(head))", "\(after)"]
            } catch {
                return [error.what]
            }
        }
        return ["more"]
    }

    private static func askedBy(_ pieces: [Bytes]) throws -> [String] {
        let url = try ServiceURL("wss://door.example/v1/app")
        var client = UpgradeClient(url, subprotocol: "tk-mux.1", key: "dGhlIHNhbXBsZSBub25jZQ==")
        var rest = pieces[...]
        while let piece = rest.popFirst() {
            do throws(TransportError) {
                let outcome = try piece.withUnsafeBytes { (bytes) throws(TransportError) in try client.take(bytes) }
                guard case .open(let subprotocol, let left) = outcome else { continue }
                return ["open", subprotocol ?? "none", "\(Array(left) + rest.flatMap { Array($0) })"]
            } catch {
                // How much of a refusal's body is shown depends on how much had come.
                return [client.isRefused ? "refused" : error.message]
            }
        }
        return [client.isRefused ? "refused" : client.ended().message]
    }
}
