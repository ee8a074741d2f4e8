internal import TransportIO
internal import TransportKit

/// A WebSocket as the application sees it: the rim around the session on its loop.
actor WebSocketSocket: Socket {
    nonisolated let info: SocketInfo
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private nonisolated let loop: EventLoop
    private nonisolated let session: WebSocketSession

    init(_ session: WebSocketSession, info: SocketInfo, loop: EventLoop) {
        self.session = session
        self.info = info
        self.loop = loop
    }

    deinit {
        let session = session
        loop.execute { session.abandon() }
    }

    func send(_ messages: [Message]) async throws(Close) {
        try await session.send(messages)
    }

    func receive() async throws(Close) -> [Message] {
        try await session.receive()
    }

    func openStream() async throws(Close) -> any Stream {
        throw .misuse(Self.noStreams)
    }

    func acceptStream() async throws(Close) -> any Stream {
        throw .misuse(Self.noStreams)
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        await session.close(code, reason: reason)
    }

    private static let noStreams = "a WebSocket without the sub-protocol \(WireNames.muxSubprotocol) has no streams"
}
