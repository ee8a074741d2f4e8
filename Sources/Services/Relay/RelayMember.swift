internal import TransportKit

/// One socket of a relay, and what waits to be written to it. Confined to the relay's loop.
final class RelayMember {
    let socket: any Socket
    private(set) var closing: Close?
    private var queue: [Message] = []
    private let queued = Signal()
    private let closed = Signal()

    init(_ socket: any Socket) {
        self.socket = socket
    }

    func put(_ message: Message) {
        guard closing == nil else { return }
        queue.append(message)
        queued.signal()
    }

    /// Waits for messages and takes the next ones; nil when nothing more is to be written.
    ///
    /// A few at a time: what the socket has taken counts no longer among what waits for a peer that does not read.
    func next() async -> [Message]? {
        while true {
            if closing != nil { return nil }
            if !queue.isEmpty { return take() }
            guard await queued.wait() else { return nil }
        }
    }

    private static let batchBytes = 128 << 10

    private func take() -> [Message] {
        var (count, bytes) = (0, 0)
        while count < queue.count, bytes < Self.batchBytes {
            bytes += queue[count].payload.count
            count += 1
        }
        defer { queue.removeFirst(count) }
        return Array(queue[..<count])
    }

    /// Its socket is to end with this; what still waits is dropped.
    func close(_ code: CloseCode, reason: String) {
        guard closing == nil else { return }
        closing = Close(code, reason: reason, origin: .local)
        queue = []
        queued.signal()
        closed.signal()
    }

    /// Waits until its socket is to end.
    func mustClose() async -> Close? {
        while closing == nil { guard await closed.wait() else { return nil } }
        return closing
    }
}
