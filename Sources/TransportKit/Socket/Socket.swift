/// One live conversation. It ends once, with one ``Close``.
///
/// **Who calls.** Any task may call any member. A socket does its work on its own loop; a task that runs on that loop
/// (`Task(executorPreference:)`) pays nothing for a call, another pays for the crossing, once per batch.
///
/// **Concurrency.** Any number of tasks may send at once; each batch keeps its order. One task may receive and one may
/// accept streams at a time: a second call while one waits throws ``Close/misuse(_:)`` and changes nothing.
///
/// **Cancellation.** A cancelled call throws ``Close/cancelled`` and leaves the socket as it was: a cancelled `receive`
/// or `acceptStream` loses nothing, a cancelled `send` has sent all of its batch or none of it.
///
/// **End.** What arrived before the end is delivered first; then every call throws the socket's one `Close`, the same
/// every time. Dropping the last reference to a socket that was not closed ends it with 1001.
///
/// **Limits.** A message above `info.maxMessageBytes` throws 1009 from `send` and ends nothing; a peer that announces
/// one is closed with 1009.
public protocol Socket: AnyObject, Sendable {
    /// What the socket is: transport, capabilities, limits, identity.
    var info: SocketInfo { get }

    /// Sends messages in the order given. Suspends while the path cannot take more. No messages are no work.
    ///
    /// Returning means accepted, not arrived; ``close(_:reason:)`` says when the rest has arrived.
    func send(_ messages: [Message]) async throws(Close)

    /// Waits for messages and returns all that are here, at least one.
    ///
    /// Memory and credit are given back to the peer as messages are taken, so a receiver that stops slows its peer down.
    func receive() async throws(Close) -> [Message]

    /// Opens a stream. Suspends while the peer's limit on streams is reached.
    ///
    /// The peer may see the stream only once something was written to it, or it was finished. Needs
    /// ``Capabilities/streams``; a socket without them throws ``Close/misuse(_:)``.
    func openStream() async throws(Close) -> any Stream

    /// Waits for a stream that the peer opened; streams come in the order they were opened.
    ///
    /// Needs ``Capabilities/streams``; a socket without them throws ``Close/misuse(_:)``.
    func acceptStream() async throws(Close) -> any Stream

    /// Ends the socket after everything accepted so far has reached the peer, or the linger time is over.
    ///
    /// Messages already sent and streams already finished are delivered first; streams still open are reset. Closing
    /// twice is harmless. Never throws: a second failure must not mask the first.
    ///
    /// - Returns: how the socket really ended, which is the peer's close where that came first.
    @discardableResult
    func close(_ code: CloseCode, reason: String) async -> Close
}

extension Socket {
    /// Sends one message.
    public func send(_ message: Message) async throws(Close) {
        try await send([message])
    }

    /// Ends the socket with 1000.
    @discardableResult
    public func close() async -> Close {
        await close(.normal, reason: "")
    }
}
