internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// A bound port that hands out WebSockets: the rim around its core on the loop.
actor WebSocketListener: Listener {
    nonisolated let endpoint: Endpoint
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe transport.loop.asUnownedSerialExecutor() }

    private nonisolated let transport: WebSocketTransport
    private nonisolated let core: WebSocketListenerCore
    private let limits: Limits

    static func bind(
        _ transport: WebSocketTransport, endpoint: Endpoint, options: ListenOptions
    ) async throws(TransportError) -> WebSocketListener {
        let address = try await Resolver.address(of: endpoint.host, port: endpoint.port)
        let core = try WebSocketListenerCore(transport, scheme: endpoint.scheme, options: options)
        let started = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<UInt16, TransportError>, _>) in
            transport.loop.execute { continuation.resume(returning: core.start(at: address)) }
        }
        var bound = endpoint
        bound.port = try started.get()
        return WebSocketListener(transport, bound, core, options.limits)
    }

    private init(
        _ transport: WebSocketTransport, _ endpoint: Endpoint, _ core: WebSocketListenerCore, _ limits: Limits
    ) {
        self.transport = transport
        self.endpoint = endpoint
        self.core = core
        self.limits = limits
    }

    func accept() async throws(Close) -> any Socket {
        let socket = try await core.accept()
        return await transport.wrap(socket, isDialer: false, limits: limits)
    }

    func close(_ code: CloseCode, reason: String) async {
        core.close(Close(code, reason: reason, origin: .local))
    }
}
