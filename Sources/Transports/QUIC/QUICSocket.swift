internal import TransportIO
internal import TransportKit

/// A conversation over QUIC.
final class QUICSocket: Socket {
    let info: SocketInfo
    private let connection: LoopBound<QUICConnection>
    private let migration: QUICConnection.Migration
    private let inbox: Inbox<QUICConnection.Arrived>
    private let acceptable: Inbox<StreamState>

    /// Makes the application's side of an open connection. On the loop only.
    init(_ connection: QUICConnection, on loop: EventLoop, info: SocketInfo) {
        self.info = info
        self.connection = LoopBound(connection, on: loop)
        migration = connection.migration
        inbox = connection.inbox
        acceptable = connection.acceptable
    }

    /// The listener's application has taken the socket.
    func handOut() { connection.post { $0.isHandedOut = true } }

    deinit {
        let loop = connection.loop
        connection.post { $0.close(.goingAway, reason: "nobody holds the socket any more", loop.now()) }
    }

    func send(_ messages: [Message]) async throws(Close) {
        for message in messages {
            guard message.payload.count <= info.maxMessageBytes else {
                throw Close(
                    .tooBig,
                    reason: "a message has \(message.payload.count) bytes, \(info.maxMessageBytes) are allowed",
                    origin: .local)
            }
            guard message.format == .binary else { throw .misuse("QUIC has no text messages") }
        }
        guard !messages.isEmpty else { return }
        switch connection.ifOnLoop?.send(messages, waiter: nil) {
        case .accepted: return
        case .failed(let close): throw close
        case .mustWait, nil: break
        }
        let waiter = Signal()
        while true {
            switch await connection.run({ $0.send(messages, waiter: waiter) }) {
            case .accepted: return
            case .failed(let close): throw close
            case .mustWait:
                guard await waiter.wait() else {
                    connection.post { $0.forgetWaiter(waiter) }
                    throw .cancelled
                }
            }
        }
    }

    func receive() async throws(Close) -> [Message] {
        let arrived = try await inbox.takeAll()
        if let connection = connection.ifOnLoop {
            connection.taken(arrived)
        } else {
            connection.post { $0.taken(arrived) }
        }
        return arrived.map(\.message)
    }

    func openStream() async throws(Close) -> any Stream {
        let waiter = Signal()
        while true {
            let answer = await connection.run { connection -> Result<StreamState?, Close> in
                connection.openStream(waiter: waiter)
            }
            if let stream = try answer.get() { return QUICStream(stream, connection) }
            guard await waiter.wait() else {
                connection.post { $0.streamWaiters.removeAll { $0 === waiter } }
                throw .cancelled
            }
        }
    }

    func acceptStream() async throws(Close) -> any Stream {
        let stream = try await acceptable.takeFirst()
        connection.post { $0.accepted(stream) }
        return QUICStream(stream, connection)
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        let waiter = Signal()
        let loop = connection.loop
        await connection.run { connection in
            connection.endWaiters.append(waiter)
            connection.close(code, reason: reason, loop.now())
        }
        while true {
            if let end = await connection.run({ $0.finalWord }) { return end }
            guard await waiter.wait() else {
                // The caller will not wait for the peer any longer.
                return await connection.run { connection in
                    connection.terminate(loop.now())
                    return connection.end ?? Close(code, reason: reason, origin: .local)
                }
            }
        }
    }
}

extension QUICSocket: PathAwareSocket {
    var hasMigrated: Bool { migration.hasHappened }

    var localAddress: SocketAddress? { migration.localAddress ?? info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        let question = PathQuestion()
        let loop = connection.loop
        let patience = await connection.run { connection in
            connection.ask(question, loop.now())
            return max(limit, connection.library.probeTimeout * 3)
        }
        return await question.answer(within: patience, time: loop, executor: loop)
    }
}

extension QUICSocket: EarlySocket {
    func confirmed() async throws(Close) {
        let waiter = Signal()
        while true {
            if try await connection.run({ $0.confirmation(waiter: waiter) }).get() { return }
            guard await waiter.wait() else {
                connection.post { $0.forgetConfirmation(waiter) }
                throw .cancelled
            }
        }
    }
}
