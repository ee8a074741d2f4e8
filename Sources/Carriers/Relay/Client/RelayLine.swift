internal import TransportKit

/// One session's share of the socket to the relay: what has arrived for it, and how it ended.
final class RelayLine: Sendable {
    let wire: any Socket
    let info: SocketInfo
    let inbox: Inbox<Message>

    init(over wire: any Socket, limits: Limits, maxFrameBytes: Int) {
        self.wire = wire
        inbox = Inbox(limit: limits.receiveBufferBytes)
        var info = wire.info
        info.capabilities = []
        info.isShared = true
        info.maxMessageBytes = min(info.maxMessageBytes, maxFrameBytes)
        self.info = info
    }

    /// Sends frames, if the session has not ended: nothing is kept for a later one (R102).
    func send(_ messages: [Message]) async throws(Close) {
        if let end = inbox.end { throw end }
        for message in messages {
            guard message.format == .binary else { throw .misuse("a relay passes on no text messages") }
            guard message.payload.count <= info.maxMessageBytes else {
                throw Close(
                    .tooBig,
                    reason: "a frame has \(message.payload.count) bytes, \(info.maxMessageBytes) are allowed",
                    origin: .local)
            }
        }
        do throws(Close) {
            try await wire.send(messages.map { Message($0.payload) })
        } catch {
            switch error.origin {
            case .cancellation: throw error
            case .local where error.cause != nil || error.code == .tooBig: throw error
            case .local, .remote, .path: throw inbox.end(error)
            }
        }
    }

    /// A frame has arrived.
    func received(_ frame: Message) {
        inbox.put(Message(frame.payload), weight: frame.payload.count + 64)
    }
}
