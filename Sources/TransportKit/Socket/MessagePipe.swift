/// The inner side of a ``MessageSocket``: what a transport drives whose wire has messages and nothing else.
///
/// Two tasks serve a wire. One writes: it takes what ``nextMessages()`` gives until that is nil, then says
/// ``farewell`` if there is one, and ends its direction. The other reads, hands over what arrives with
/// ``received(_:)``, ``closed(_:reason:)`` and ``lost(_:)``, and calls ``waitForRoom()`` before it reads more. It reads
/// on after the end, until the peer's direction has ended too: most kernels answer unread bytes with a reset, which
/// could overtake the farewell.
///
/// Any thread may call any member; one task each may wait for messages and for room.
public final class MessagePipe: Sendable {
    /// The bounds of the socket.
    public let limits: Limits
    let inbox: Inbox<Message>
    let outbox: Outbox<[Message]>
    let ended = Signal()

    init(limits: Limits) {
        self.limits = limits
        inbox = Inbox(limit: limits.receiveBufferBytes)
        outbox = Outbox(limit: limits.sendBufferBytes)
    }

    // MARK: - For the task that writes

    /// Waits for messages and takes all that are here, in order. What was taken before has left by now.
    ///
    /// - Returns: nil when nothing more is to be written but the ``farewell``.
    public func nextMessages() async -> [Message]? {
        await outbox.next().map { $0.flatMap(\.self) }
    }

    /// The close to tell the peer, or nil where the peer or the path ended the socket: then there is nobody to tell.
    public var farewell: Close? {
        guard let end = inbox.end, end.origin == .local else { return nil }
        return end
    }

    // MARK: - For the task that reads

    /// Hands over a message that arrived. One above the limit ends the socket with 1009, text that is not UTF-8 with
    /// 1007; after the end it is dropped.
    public func received(_ message: Message) {
        let size = message.payload.count
        guard size <= limits.maxMessageBytes else {
            return end(.tooBig, reason: "a message has \(size) bytes, \(limits.maxMessageBytes) are allowed")
        }
        if message.format == .text, String(validating: message.payload) == nil {
            return end(.badText, reason: "a text is not UTF-8")
        }
        inbox.put(message, weight: Self.weight(of: message))
    }

    /// Waits until the application has taken enough for more to be read; at once after the end.
    public func waitForRoom() async {
        _ = await inbox.waitForRoom()
    }

    /// The peer has closed, in its own words. Nothing more is written.
    public func closed(_ code: CloseCode, reason: String) {
        finish(Close(code, reason: reason, origin: .remote))
    }

    /// The path is gone. Nothing more is written.
    public func lost(_ cause: TransportError) {
        finish(.pathLost(cause))
    }

    /// Ends the socket from this end: what was accepted is still written, then the farewell. For a peer that broke a
    /// rule, for example; the application closes by its socket.
    public func end(_ code: CloseCode, reason: String) {
        let end = inbox.end(Close(code, reason: reason, origin: .local))
        outbox.finish(end)
        ended.signal()
    }

    private func finish(_ close: Close) {
        outbox.end(inbox.end(close))
        ended.signal()
    }

    /// An empty message takes memory too, so that a flood of them is bounded as well.
    static func weight(of message: Message) -> Int { message.payload.count + 64 }
}
