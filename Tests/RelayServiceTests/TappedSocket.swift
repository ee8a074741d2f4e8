import Synchronization
import TransportKit

/// A socket of the relay's that a test looks into: what arrives, and when it is pinged.
final class TappedSocket: PathAwareSocket {
    let info: SocketInfo
    private let inner: any Socket
    private let arrived: @Sendable (Message) -> Void
    private let pinged: @Sendable () async -> Bool

    init(
        _ inner: any Socket, info: SocketInfo? = nil, arrived: @escaping @Sendable (Message) -> Void = { _ in },
        pinged: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.inner = inner
        self.info = info ?? inner.info
        self.pinged = pinged
        self.arrived = arrived
    }

    var hasMigrated: Bool { false }
    var localAddress: SocketAddress? { nil }

    func checkPath(within limit: Duration) async -> Bool { await pinged() }

    func send(_ messages: [Message]) async throws(Close) { try await inner.send(messages) }

    func receive() async throws(Close) -> [Message] {
        let batch = try await inner.receive()
        for message in batch { arrived(message) }
        return batch
    }

    func openStream() async throws(Close) -> any Stream { try await inner.openStream() }
    func acceptStream() async throws(Close) -> any Stream { try await inner.acceptStream() }
    func close(_ code: CloseCode, reason: String) async -> Close { await inner.close(code, reason: reason) }
}
