internal import TransportKit

/// A session through the relay. Dropping it ends it.
final class RelaySocket: Socket {
    let line: RelayLine
    private let whenClosed: @Sendable (RelayLine, Close) async -> Void
    private let executor: any TaskExecutor

    /// - Parameter whenClosed: takes the session's end to the carrier, and waits for the socket below to end.
    init(
        _ line: RelayLine, executor: any TaskExecutor,
        whenClosed: @escaping @Sendable (RelayLine, Close) async -> Void
    ) {
        self.line = line
        self.executor = executor
        self.whenClosed = whenClosed
    }

    deinit {
        let close = Close(.goingAway, reason: "nobody holds the socket any more", origin: .local)
        guard line.inbox.end == nil else { return }
        // It ends by itself within the linger time.
        Task(executorPreference: executor) { [line, whenClosed] in await whenClosed(line, close) }
    }

    var info: SocketInfo { line.info }

    func send(_ messages: [Message]) async throws(Close) {
        try await line.send(messages)
    }

    func receive() async throws(Close) -> [Message] {
        try await line.inbox.takeAll()
    }

    func openStream() async throws(Close) -> any Stream {
        throw .misuse("a session through the relay has no streams of its own")
    }

    func acceptStream() async throws(Close) -> any Stream {
        throw .misuse("a session through the relay has no streams of its own")
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let close = line.inbox.end(Close(code, reason: reason, origin: .local))
        await whenClosed(line, close)
        return close
    }
}

extension RelaySocket: PathAwareSocket {
    private var pathAware: (any PathAwareSocket)? { line.wire as? any PathAwareSocket }

    var hasMigrated: Bool { pathAware?.hasMigrated ?? false }

    var localAddress: SocketAddress? { pathAware?.localAddress ?? info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        await pathAware?.checkPath(within: limit) ?? false
    }
}
