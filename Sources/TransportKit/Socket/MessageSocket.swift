/// A socket for a wire that has messages and nothing else, ready made: the contract of ``Socket`` is kept here, and a
/// transport only moves messages between its wire and a ``MessagePipe``.
///
/// ```swift
/// MessageSocket(info: info, limits: options.limits, executor: loop, time: loop) { pipe in
///     async let reading: Void = read(from: wire, into: pipe)
///     await write(to: wire, from: pipe)
///     await reading
///     await wire.close()
/// }
/// ```
public final class MessageSocket: Socket {
    /// What the socket is.
    public let info: SocketInfo
    private let pipe: MessagePipe
    private let serving: Task<Void, Never>

    /// Makes the socket and starts to serve its wire.
    ///
    /// - Parameters:
    ///   - info: what it is; its limit on messages holds for `send`, the one in `limits` for what arrives.
    ///   - limits: how much may wait in either direction, and the linger time.
    ///   - executor: where `serve` runs, for example the loop.
    ///   - time: the clock of the linger time.
    ///   - serve: serves the wire until both directions have ended, and closes it. It is cancelled when the linger time
    ///     after the end is over; it must then end at once.
    public init(
        info: SocketInfo, limits: Limits, executor: (any TaskExecutor)?, time: any TimeSource,
        serve: @escaping @Sendable (MessagePipe) async -> Void
    ) {
        self.info = info
        let pipe = MessagePipe(limits: limits)
        self.pipe = pipe
        // The task holds the pipe and not the socket, so that a socket that nobody holds ends.
        serving = Task(executorPreference: executor) {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await serve(pipe) }
                group.addTask {
                    guard await pipe.ended.wait() else { return }
                    try? await time.sleep(for: limits.linger)
                }
                await group.next()
                group.cancelAll()
            }
            pipe.lost(TransportError(.pathReset, "the wire ended without a close"))
        }
    }

    deinit {
        pipe.end(.goingAway, reason: "nobody holds the socket any more")
    }

    /// Sends messages in the order given.
    public func send(_ messages: [Message]) async throws(Close) {
        for message in messages {
            if message.format == .text, !info.capabilities.contains(.text) {
                throw .misuse("\(info.transport) has no text messages")
            }
            guard message.payload.count <= info.maxMessageBytes else {
                throw Close(
                    .tooBig,
                    reason: "a message has \(message.payload.count) bytes, \(info.maxMessageBytes) are allowed",
                    origin: .local)
            }
        }
        guard !messages.isEmpty else { return }
        try await pipe.outbox.put(messages, weight: messages.reduce(0) { $0 + MessagePipe.weight(of: $1) })
    }

    /// Waits for messages and returns all that are here.
    public func receive() async throws(Close) -> [Message] {
        try await pipe.inbox.takeAll()
    }

    /// Always misuse: the wire has no streams.
    public func openStream() async throws(Close) -> any Stream {
        throw .misuse("\(info.transport) has no streams")
    }

    /// Always misuse: the wire has no streams.
    public func acceptStream() async throws(Close) -> any Stream {
        throw .misuse("\(info.transport) has no streams")
    }

    /// Ends the socket after everything accepted so far has been written and the peer has ended too, or the linger time
    /// is over.
    @discardableResult
    public func close(_ code: CloseCode, reason: String) async -> Close {
        pipe.end(code, reason: reason)
        await serving.value
        return pipe.inbox.end ?? Close(code, reason: reason, origin: .local)
    }
}
