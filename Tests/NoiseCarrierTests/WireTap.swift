import Synchronization
import TransportKit

/// A socket between a session and its path: it records what is sent, and may change it.
final class WireTap: Socket {
    /// Everything that has passed, in order.
    final class Record: Sendable {
        private let kept = Mutex<[Message]>([])

        var messages: [Message] { kept.withLock { $0 } }

        func add(_ messages: [Message]) { kept.withLock { $0 += messages } }
    }

    private let inner: any Socket
    private let record: Record
    private let change: @Sendable ([Message]) -> [Message]

    init(
        _ inner: any Socket, record: Record, change: @escaping @Sendable ([Message]) -> [Message] = { $0 }
    ) {
        self.inner = inner
        self.record = record
        self.change = change
    }

    var info: SocketInfo { inner.info }

    func send(_ messages: [Message]) async throws(Close) {
        record.add(messages)
        try await inner.send(change(messages))
    }

    func receive() async throws(Close) -> [Message] { try await inner.receive() }

    func openStream() async throws(Close) -> any Stream { try await inner.openStream() }

    func acceptStream() async throws(Close) -> any Stream { try await inner.acceptStream() }

    func close(_ code: CloseCode, reason: String) async -> Close { await inner.close(code, reason: reason) }
}
