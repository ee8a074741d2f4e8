internal import TransportKit

/// One session that travels through a door: messages only, not sealed by itself. Dropping it ends it.
final class TunnelSocket: Socket {
    let info: SocketInfo
    /// By what number its connection knows it.
    let id: UInt64
    let connection: DoorConnection

    init(id: UInt64, info: SocketInfo, connection: DoorConnection) {
        self.id = id
        self.info = info
        self.connection = connection
    }

    deinit {
        connection.drop(id)
    }

    func send(_ messages: [Message]) async throws(Close) {
        try await connection.send(messages, of: id)
    }

    func receive() async throws(Close) -> [Message] {
        try await connection.receive(id)
    }

    func openStream() async throws(Close) -> any Stream {
        throw .misuse("a session through the door has no streams of its own")
    }

    func acceptStream() async throws(Close) -> any Stream {
        throw .misuse("a session through the door has no streams of its own")
    }

    @discardableResult
    func close(_ code: CloseCode, reason: String) async -> Close {
        await connection.close(id, Close(code, reason: reason, origin: .local))
    }
}
