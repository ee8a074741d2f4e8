import TransportIO
import TransportKit
import WebSocketTransport

/// A peer that says what a test tells it to, byte by byte.
final class RawPeer: Sendable {
    let connection: TCPConnection

    init(_ connection: TCPConnection) {
        self.connection = connection
    }

    static func dial(_ endpoint: Endpoint, on loop: EventLoop) async throws -> RawPeer {
        RawPeer(try await TCPConnection.connect(to: endpoint.host, port: endpoint.port, loop: loop))
    }

    func send(_ bytes: Bytes) async throws { try await connection.write(bytes) }

    func send(_ text: String) async throws { try await send(Bytes(text)) }

    /// Everything up to the end of the connection, or its reset.
    func readToEnd() async -> Bytes {
        var all = Bytes()
        while let more = try? await connection.read(upTo: 65_536) { all.append(contentsOf: more) }
        return all
    }

    func read(_ count: Int) async throws -> Bytes {
        var all = Bytes()
        while all.count < count, let more = try await connection.read(upTo: count - all.count) {
            all.append(contentsOf: more)
        }
        return all
    }

    /// A head with the empty line that ends it.
    func readHead() async throws -> String {
        var head = Bytes()
        while head.count < 4 || head.dropFirst(head.count - 4) != Bytes("\r\n\r\n") {
            let byte = try await read(1)
            guard !byte.isEmpty else { break }
            head.append(contentsOf: byte)
        }
        return String(validating: head) ?? ""
    }

    // MARK: - As a client

    static let key: [UInt8] = [0x11, 0x22, 0x33, 0x44]

    static func request(_ target: String = "/", _ more: String...) -> String {
        UpgradeRequestTests.request(UpgradeRequestTests.sound + more, line: "GET \(target) HTTP/1.1")
    }

    /// Asks for a WebSocket, with bytes glued to the request.
    func upgrade(_ target: String = "/", glued: Bytes = Bytes()) async throws -> String {
        try await send(Bytes(Self.request(target)) + glued)
        return try await readHead()
    }

    // MARK: - As a server

    /// Reads the request and switches protocols, with bytes glued to the answer.
    func acceptUpgrade(_ more: String = "", glued: Bytes = Bytes()) async throws -> String {
        let request = try await readHead()
        let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19) ?? ""
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        let accept = "Sec-WebSocket-Accept: \(AcceptKey.answer(to: String(key)))\r\n"
        try await send(Bytes(head + accept + more + "\r\n") + glued)
        return request
    }
}

/// A close frame as a server writes it.
func closeFrame(_ code: UInt16, _ reason: String = "", key: [UInt8]? = nil) -> Bytes {
    frame(0x88, Bytes([UInt8(code >> 8), UInt8(code & 255)]) + Bytes(reason), key: key)
}
