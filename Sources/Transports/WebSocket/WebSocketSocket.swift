internal import Synchronization
internal import TransportIO
internal import TransportKit

/// A WebSocket as the application sees it: the rim around the session on its loop.
///
/// No actor, because the runtime would queue a task that is on the loop already on its way into the actor, and again on
/// its way out: a fifth of what a small message costs. Such a task goes straight to the session, every other one through
/// ``LoopSide``.
final class WebSocketSocket: Socket {
    let info: SocketInfo
    private let loop: EventLoop
    private let session: WebSocketSession
    private let loopSide: LoopSide
    private let isReceiving = Atomic(false)

    /// The way in for tasks that run elsewhere: one crossing there and one back, however long they wait.
    private actor LoopSide {
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }
        private nonisolated let loop: EventLoop
        private let session: WebSocketSession

        init(_ session: WebSocketSession, _ loop: EventLoop) {
            self.session = session
            self.loop = loop
        }

        func send(_ messages: [Message]) async throws(Close) { try await session.send(messages) }

        func receive() async throws(Close) -> [Message] {
            guard let messages = try await session.receive() else {
                preconditionFailure("an actor of the loop does not run on it")
            }
            return messages
        }

        func close(_ code: CloseCode, reason: String) async -> Close { await session.close(code, reason: reason) }

        func ask(_ question: PathQuestion) { session.ask(question) }
    }

    init(_ session: WebSocketSession, info: SocketInfo, loop: EventLoop) {
        self.session = session
        self.info = info
        self.loop = loop
        loopSide = LoopSide(session, loop)
    }

    deinit {
        let session = session
        loop.execute { session.abandon() }
    }

    func send(_ messages: [Message]) async throws(Close) {
        if loop.isCurrent, try session.sendNow(messages) { return }
        try await loopSide.send(messages)
    }

    func receive() async throws(Close) -> [Message] {
        guard !isReceiving.exchange(true, ordering: .relaxed) else {
            throw .misuse("another task receives already")
        }
        defer { isReceiving.store(false, ordering: .relaxed) }
        if let messages = try await session.receive() { return messages }
        return try await loopSide.receive()
    }

    func openStream() async throws(Close) -> any Stream {
        throw .misuse(Self.noStreams)
    }

    func acceptStream() async throws(Close) -> any Stream {
        throw .misuse(Self.noStreams)
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        await loopSide.close(code, reason: reason)
    }

    private static let noStreams = "a WebSocket without the sub-protocol \(WireNames.muxSubprotocol) has no streams"
}

extension WebSocketSocket: PathAwareSocket {
    var hasMigrated: Bool { false }

    var localAddress: SocketAddress? { info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        let question = PathQuestion()
        await loopSide.ask(question)
        return await question.answer(within: limit, time: loop, executor: loop)
    }
}
