public import TransportIO
public import TransportKit
internal import TransportTLS

/// QUIC over UDP: the transport that is tried first.
///
/// All the connections that it dials live on one loop, those that it accepts on that one or on several. The wire is described in `docs/protocol.md`.
public struct QUICTransport: Transport {
    /// `quic`.
    public let name = TransportName.quic
    /// Streams and datagrams.
    public let capabilities: Capabilities = [.streams, .datagrams]

    private let loop: EventLoop
    private let moreLoops: @Sendable () throws(TransportError) -> [EventLoop]
    private let log: Log
    private let metrics: any MetricsSink
    let pool: LoopBound<ClientPool>

    /// Makes the transport; nothing is opened.
    ///
    /// - Parameters:
    ///   - loop: where its dials and listeners run.
    ///   - moreLoops: loops that share the ports of its listeners with the first one, at most 254. The kernel spreads the
    ///     connections over them, and one whose client moves stays on its loop (R20).
    ///   - log: where it logs.
    ///   - metrics: where it counts.
    public init(
        loop: EventLoop, moreLoops: [EventLoop] = [], log: Log = Log(), metrics: any MetricsSink = NoMetrics()
    ) {
        precondition(moreLoops.count < 255, "the number of a loop is one byte")
        self.init(loop: loop, log: log, metrics: metrics) { moreLoops }
    }

    /// Makes the transport with loops that are made once a listener needs them; `moreLoops` is called for each listener.
    package init(
        loop: EventLoop, log: Log, metrics: any MetricsSink,
        moreLoops: @escaping @Sendable () throws(TransportError) -> [EventLoop]
    ) {
        self.loop = loop
        self.moreLoops = moreLoops
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
        let credentials = try TLSClientCredentials(options.security, tickets: options.tickets ? .shared : nil)
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
        let accepted = Inbox<QUICSocket>()
        let loops = [loop] + (try moreLoops())
        let shards = loops.count == 1 ? nil : ListenerShards()
        var endpoints: [LoopBound<ListenerEndpoint>] = []
        var bound = address
        if shards != nil { bound.port = try await freePort(address) }
        for loop in loops {
            do throws(TransportError) {
                let made = try await makeEndpoint(
                    bound, options, credentials, secret, accepted: accepted, shards: shards, loop: loop)
                bound.port = await made.run { $0.socket.localAddress.port }
                endpoints.append(made)
            } catch {
                for endpoint in endpoints { await endpoint.run { $0.close(.goingAway, reason: "") } }
                throw error
            }
        }
        if loops.count > 1 { log.info("QUIC at \(bound) runs on \(loops.count) loops") }
        var open = endpoint
        open.port = bound.port
        return QUICListener(endpoints, endpoint: open, accepted: accepted)
    }

    /// The port of an address, or one that the system chooses, that nobody has.
    ///
    /// Sockets that share a port would share it with any program of this user, too, which takes half of the connections
    /// from either: whether there is one only a socket that shares nothing is told.
    private func freePort(_ address: SocketAddress) async throws(TransportError) -> UInt16 {
        try await loop.run { [loop] () throws(TransportError) in
            let socket = try UDPSocket.bind(address, loop: loop)
            defer { socket.close() }
            return socket.localAddress.port
        }
    }

    private func makeEndpoint(
        _ address: SocketAddress, _ options: ListenOptions, _ credentials: TLSServerCredentials, _ secret: ResetSecret,
        accepted: Inbox<QUICSocket>, shards: ListenerShards?, loop: EventLoop
    ) async throws(TransportError) -> LoopBound<ListenerEndpoint> {
        let made = await LoopBound((), on: loop).run {
            [log, metrics] _ -> Result<LoopBound<ListenerEndpoint>, TransportError> in
            do throws(TransportError) {
                let listener = try ListenerEndpoint(
                    address, options: options, credentials: credentials, resetSecret: secret, accepted: accepted,
                    shards: shards, loop: loop, log: log, metrics: metrics)
                return .success(LoopBound(listener, on: loop))
            } catch {
                return .failure(error)
            }
        }
        return try made.get()
    }

    private func report(_ progress: DialProgress, _ options: DialOptions) {
        guard let report = options.progress else { return }
        loop.execute { report(progress) }
    }
}

/// A bound UDP port.
final class QUICListener: Listener {
    let endpoint: Endpoint
    private let endpoints: [LoopBound<ListenerEndpoint>]
    private let accepted: Inbox<QUICSocket>

    init(_ endpoints: [LoopBound<ListenerEndpoint>], endpoint: Endpoint, accepted: Inbox<QUICSocket>) {
        self.endpoints = endpoints
        self.endpoint = endpoint
        self.accepted = accepted
    }

    deinit {
        accepted.end(Close(.goingAway, reason: "nobody holds the listener any more", origin: .local))
        for endpoint in endpoints { endpoint.post { $0.close(.goingAway, reason: "the listener closed") } }
    }

    func accept() async throws(Close) -> any Socket {
        let socket = try await accepted.takeFirst()
        socket.handOut()
        return socket
    }

    func close(_ code: CloseCode, reason: String) async {
        accepted.end(Close(code, reason: reason, origin: .local))
        for endpoint in endpoints { await endpoint.run { $0.close(code, reason: reason) } }
        // What nobody accepted is not handed out any more.
        while (try? await accepted.takeFirst()) != nil {}
    }
}
