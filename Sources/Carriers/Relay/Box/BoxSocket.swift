internal import TransportKit

/// A session of a box through the relay, as whoever serves it sees it. Dropping it ends it.
final class BoxSocket: Socket {
    let info: SocketInfo
    private let uplink: RelayUplink
    private let id: BoxRoom.ID
    private let inbox: Inbox<Message>

    init(_ id: BoxRoom.ID, info: SocketInfo, inbox: Inbox<Message>, uplink: RelayUplink) {
        self.id = id
        self.info = info
        self.inbox = inbox
        self.uplink = uplink
    }

    deinit {
        let close = Close(.goingAway, reason: "nobody holds the socket any more", origin: .local)
        guard inbox.end == nil else { return }
        // It only takes the session out of the room.
        Task(executorPreference: uplink.taskExecutor) { [id, uplink] in await uplink.end(id, with: close) }
    }

    func send(_ messages: [Message]) async throws(Close) {
        if let end = inbox.end { throw end }
        for message in messages {
            guard message.format == .binary else { throw .misuse("a sealed session has no text messages") }
            guard message.payload.count <= info.maxMessageBytes else {
                throw Close(
                    .tooBig,
                    reason: "a message has \(message.payload.count) bytes, \(info.maxMessageBytes) are allowed",
                    origin: .local)
            }
        }
        guard !messages.isEmpty else { return }
        do throws(Close) {
            try await uplink.send(messages, for: id)
        } catch {
            throw error.origin == .cancellation ? error : inbox.end ?? error
        }
    }

    func receive() async throws(Close) -> [Message] {
        try await inbox.takeAll()
    }

    func openStream() async throws(Close) -> any Stream {
        throw .misuse("a sealed session has no streams of its own")
    }

    func acceptStream() async throws(Close) -> any Stream {
        throw .misuse("a sealed session has no streams of its own")
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let close = inbox.end(Close(code, reason: reason, origin: .local))
        await uplink.end(id, with: close)
        return close
    }
}
