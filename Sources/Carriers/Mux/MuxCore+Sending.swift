internal import TransportKit

/// A `send` that waits for room in the lanes it uses.
struct WaitingSender {
    let signal: Signal
    let controlBytes: Int
    let bulkBytes: Int
}

extension MuxCore {
    func send(_ messages: [Message]) async throws(Close) {
        if let close = ended ?? closing { throw close }
        for message in messages {
            guard message.format == .binary else { throw .misuse("streams over messages carry no text messages") }
            guard message.payload.count <= info.maxMessageBytes else {
                throw Close(
                    .tooBig,
                    reason: "a message of \(message.payload.count) bytes, of which \(info.maxMessageBytes) are allowed",
                    origin: .local)
            }
        }
        var (control, bulk, datagrams) = (LaneBatch(), LaneBatch(), [Message]())
        let hasDatagrams = info.capabilities.contains(.datagrams)
        for message in messages {
            switch message.delivery {
            case .control: control.append(message.payload)
            case .bulk: bulk.append(message.payload)
            case .unreliable:
                if hasDatagrams, message.payload.count <= Self.datagramLimit {
                    datagrams.append(message)
                } else {
                    control.append(message.payload)
                }
            }
        }
        try await waitForRoom(controlBytes: control.count, bulkBytes: bulk.count)
        for piece in control.finish() { session.write(piece, to: YamuxSession.Lane.control) }
        for piece in bulk.finish() { session.write(piece, to: YamuxSession.Lane.bulk) }
        // Where the path takes no more, an unreliable message is one that is lost.
        datagramsOut += datagrams.prefix(max(0, Self.datagramQueueLimit - datagramsOut.count))
        kick()
    }

    /// Waits until the lanes that a batch uses have room and nobody waits before it. Each lane has its own room, so bulk
    /// that the peer does not take holds up no control (R22).
    private func waitForRoom(controlBytes: Int, bulkBytes: Int) async throws(Close) {
        let sender = WaitingSender(signal: Signal(), controlBytes: controlBytes, bulkBytes: bulkBytes)
        if maySend(sender, before: senders.count) { return }
        senders.append(sender)
        defer {
            senders.removeAll { $0.signal === sender.signal }
            wakeSenders()
        }
        while true {
            let isWoken = await sender.signal.wait()
            if let close = ended ?? closing { throw close }
            let place = senders.firstIndex { $0.signal === sender.signal } ?? 0
            if maySend(sender, before: place) { return }
            guard isWoken else { throw .cancelled }
        }
    }

    private func maySend(_ sender: WaitingSender, before place: Int) -> Bool {
        func hasRoom(_ bytes: Int, _ lane: UInt32, _ used: (WaitingSender) -> Int) -> Bool {
            guard bytes > 0 else { return true }
            let queued = session.queued(lane)
            return (queued == 0 || queued + bytes <= limits.sendBufferBytes)
                && senders[..<place].allSatisfy { used($0) == 0 }
        }
        return hasRoom(sender.controlBytes, YamuxSession.Lane.control, \.controlBytes)
            && hasRoom(sender.bulkBytes, YamuxSession.Lane.bulk, \.bulkBytes)
    }

    func wakeSenders() {
        for (place, sender) in senders.enumerated() where maySend(sender, before: place) { sender.signal.signal() }
    }
}
