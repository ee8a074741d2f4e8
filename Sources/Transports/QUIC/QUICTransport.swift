public import TransportIO
public import TransportKit
internal import TransportTLS

/// QUIC over UDP: the transport that is tried first.
///
/// All its connections and listeners live on one loop. The wire is described in `docs/protocol.md`.
public struct QUICTransport: Transport {
    /// `quic`.
    public let name = TransportName.quic
    /// Streams and datagrams.
    public let capabilities: Capabilities = [.streams, .datagrams]

    private let loop: EventLoop
    private let log: Log
    private let metrics: any MetricsSink
    let pool: LoopBound<ClientPool>

    /// Makes the transport; nothing is opened.
    public init(loop: EventLoop, log: Log = Log(), metrics: any MetricsSink = NoMetrics()) {
        self.loop = loop
        self.log = log
        self.metrics = metrics
        pool = LoopBound(ClientPool(loop: loop, log: log, metrics: metrics), on: loop)
    }

    /// Always TLS: QUIC has no plain form, so it cannot stand beside a plain transport in a race.
    public func protection(of endpoint: Endpoint) -> Protection { .transport }

    /// Opens a socket to a service.
    public func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        guard url.endpoint.scheme == .wss else {
            throw TransportError(.unsupported, "QUIC is always protected by TLS; use a wss:// URL")
        }
        let deadline = loop.now() + options.limits.handshakeTimeout
        let credentials = try TLSClientCredentials(options.security)
        let addresses = try await Resolver.addresses(
            of: url.endpoint.host, port: url.endpoint.port, timeout: options.limits.handshakeTimeout)
        report(.resolved(addresses), options)
        let dial = Dial(url: url, options: options, credentials: credentials, deadline: deadline, pool: pool)
        let endpoint = try await dialStaggered(addresses, time: loop) {
            (address) async throws(TransportError) -> LoopBound<ClientEndpoint> in
            try await dial.attempt(address)
        } discard: { endpoint in
            await dial.abandon(endpoint, "another address answered first")
        }
        if let claim = options.claim, !claim.take() {
            await dial.abandon(endpoint, "")
            throw TransportError(
                .superseded, "QUIC to \(url.endpoint) would have worked, but another dial was open first")
        }
        let loop = loop
        return await endpoint.run { endpoint in
            let connection = endpoint.connection
            connection.sendTarget(url.target, firstFlight: options.firstFlight)
            options.progress?(.opened)
            return QUICSocket(
                connection, on: loop,
                info: connection.info(
                    target: url.target, local: endpoint.localAddress, remote: endpoint.remoteAddress))
        }
    }

    /// Binds a UDP port and answers on it.
    public func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        guard endpoint.scheme == .wss, let security = options.security else {
            throw TransportError(.unsupported, "QUIC is always protected by TLS; use a wss:// URL and a certificate")
        }
        let credentials = try TLSServerCredentials(security)
        let key = try TLSFile.read(security.identity.key, what: "the private key", isSecret: true)
        let secret = ResetSecret(key: key)
        let address = try await Resolver.address(of: endpoint.host, port: endpoint.port)
        let made = await pool.run { pool -> Result<LoopBound<ListenerEndpoint>, TransportError> in
            do throws(TransportError) {
                let listener = try ListenerEndpoint(
                    address, options: options, credentials: credentials, resetSecret: secret, loop: pool.loop,
                    log: pool.log, metrics: pool.metrics)
                return .success(LoopBound(listener, on: pool.loop))
            } catch {
                return .failure(error)
            }
        }
        let listener = try made.get()
        return await listener.run { made in
            var bound = endpoint
            bound.port = made.socket.localAddress.port
            return QUICListener(listener, endpoint: bound, accepted: made.accepted)
        }
    }

    private func report(_ progress: DialProgress, _ options: DialOptions) {
        guard let report = options.progress else { return }
        loop.execute { report(progress) }
    }
}

/// A bound UDP port.
final class QUICListener: Listener {
    let endpoint: Endpoint
    private let listener: LoopBound<ListenerEndpoint>
    private let accepted: Inbox<QUICSocket>

    init(_ listener: LoopBound<ListenerEndpoint>, endpoint: Endpoint, accepted: Inbox<QUICSocket>) {
        self.listener = listener
        self.endpoint = endpoint
        self.accepted = accepted
    }

    deinit {
        accepted.end(Close(.goingAway, reason: "nobody holds the listener any more", origin: .local))
        listener.post { $0.close(.goingAway, reason: "the listener closed") }
    }

    func accept() async throws(Close) -> any Socket {
        let socket = try await accepted.takeFirst()
        socket.handOut()
        return socket
    }

    func close(_ code: CloseCode, reason: String) async {
        accepted.end(Close(code, reason: reason, origin: .local))
        await listener.run { $0.close(code, reason: reason) }
        // What nobody accepted is not handed out any more.
        while (try? await accepted.takeFirst()) != nil {}
    }
}
