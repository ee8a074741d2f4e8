internal import TransportIO
internal import TransportKit

/// The smallest web server: it answers every request with one line and closes.
struct DemoWebServer: Sendable {
    let listener: TCPListener

    static let greeting = "hello from behind the forward\n"

    static func bind(loop: EventLoop) async throws(TransportError) -> DemoWebServer {
        DemoWebServer(listener: try await TCPListener.bind(.loopback(), loop: loop))
    }

    var endpoint: TCPEndpoint {
        TCPEndpoint(host: .ipv4(.loopback), port: listener.localAddress.port)
    }

    /// Serves until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            while let connection = try? await listener.accept() {
                group.addTask { try? await Self.answer(connection) }
            }
        }
    }

    private static func answer(_ connection: TCPConnection) async throws {
        var head = Bytes()
        while !ends(head) {
            guard head.count < 8192, let bytes = try await connection.read(upTo: 8192) else {
                return await connection.reset()
            }
            head.append(contentsOf: bytes)
        }
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: \(greeting.utf8.count)\r\n"
            + "Connection: close\r\n\r\n\(greeting)"
        try await connection.write(Bytes(answer))
        try await connection.finish()
        while try await connection.read(upTo: 8192) != nil {}
        await connection.close()
    }

    private static func ends(_ head: Bytes) -> Bool {
        head.count >= 4 && head[(head.count - 4)..<head.count] == Bytes("\r\n\r\n")
    }

    /// Asks a web server at a local port, as a browser would.
    ///
    /// - Returns: the status line and the body.
    static func get(
        _ address: SocketAddress, loop: EventLoop
    ) async throws -> (status: String, body: String) {
        let connection = try await TCPConnection.connect(to: address, loop: loop)
        try await connection.write(Bytes("GET / HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n"))
        var answer = Bytes()
        while let bytes = try await connection.read(upTo: 65_536), answer.count < 65_536 {
            answer.append(contentsOf: bytes)
        }
        await connection.close()
        let text = String(decoding: Array(answer), as: UTF8.self)
        let body = text.firstRange(of: "\r\n\r\n").map { String(text[$0.upperBound...]) } ?? ""
        return (String(text.prefix { $0 != "\r\n" }), body)
    }
}
