internal import TransportKit

/// A socket with streams over one that has only messages.
///
/// Messages travel on two streams of their own, so that one stream that nobody reads holds up neither them nor any other
/// stream. Dropping it ends it.
final class MuxSocket: Socket {
    private let core: MuxCore

    init(core: MuxCore) {
        self.core = core
    }

    deinit {
        core.drop()
    }

    var info: SocketInfo { core.info }

    func send(_ messages: [Message]) async throws(Close) {
        try await core.send(messages)
    }

    func receive() async throws(Close) -> [Message] {
        try await core.receive()
    }

    func openStream() async throws(Close) -> any Stream {
        try await core.openStream()
    }

    func acceptStream() async throws(Close) -> any Stream {
        try await core.acceptStream()
    }

    func close(_ code: CloseCode, reason: String) async -> Close {
        await core.close(code, reason: reason)
    }
}

extension MuxSocket: PathAwareSocket {
    private var pathAware: (any PathAwareSocket)? { core.inner as? any PathAwareSocket }

    var hasMigrated: Bool { pathAware?.hasMigrated ?? false }

    var localAddress: SocketAddress? { pathAware?.localAddress ?? info.localAddress }

    func checkPath(within limit: Duration) async -> Bool {
        await pathAware?.checkPath(within: limit) ?? false
    }
}
