internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// One dial, on the transport's loop.
actor WebSocketDial {
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe transport.loop.asUnownedSerialExecutor() }

    private nonisolated let transport: WebSocketTransport
    private let url: ServiceURL
    private let options: DialOptions

    init(_ transport: WebSocketTransport, url: ServiceURL, options: DialOptions) {
        self.transport = transport
        self.url = url
        self.options = options
    }

    /// Opens a socket, within the limit for handshakes.
    nonisolated func run() async throws(TransportError) -> any Socket {
        try await withTimeout(
            options.limits.handshakeTimeout, time: transport.loop, doing: "opening a WebSocket to \(url.endpoint)"
        ) { () async throws(TransportError) in
            try await self.open()
        } discard: { socket in
            await socket.close(.normal, reason: "it opened too late")
        }
    }

    private func open() async throws(TransportError) -> any Socket {
        let credentials = try makeCredentials()
        let addresses = try await Resolver.addresses(of: url.endpoint.host, port: url.endpoint.port)
        report(.resolved(addresses))
        // One packet in twenty may be lost, and the kernel would send the first one again only after a second.
        let handshake = try await dialStaggered(addresses, time: transport.loop, rounds: 2) {
            address throws(TransportError) in
            try await self.connect(address)
        } discard: { handshake in
            await self.discard(handshake)
        }
        let outcome: ClientHandshake.Outcome
        do throws(TransportError) {
            if let credentials { try await secure(handshake, credentials) }
            outcome = try await handshake.upgrade(UpgradeClient(url, subprotocol: transport.multiplexer?.subprotocol))
        } catch {
            handshake.abandon()
            throw error
        }
        return try await open(handshake.pipe, outcome)
    }

    private func makeCredentials() throws(TransportError) -> TLSClientCredentials? {
        switch url.endpoint.scheme {
        case .ws: nil
        case .wss: try TLSClientCredentials(options.security, tickets: options.tickets ? .shared : nil)
        }
    }

    private func connect(_ address: SocketAddress) async throws(TransportError) -> ClientHandshake {
        report(.attempt(address))
        do throws(TransportError) {
            let handshake = try ClientHandshake(address, loop: transport.loop, room: transport.room)
            try await handshake.connect()
            report(.connected(address))
            return handshake
        } catch {
            report(.attemptFailed(address, error))
            throw error
        }
    }

    private func discard(_ handshake: ClientHandshake) {
        handshake.abandon()
    }

    private func secure(
        _ handshake: ClientHandshake, _ credentials: TLSClientCredentials
    ) async throws(TransportError) {
        let endpoint = url.endpoint
        try await handshake.secure(
            TLSSession.client(
                credentials, host: endpoint.host, port: endpoint.port, protocols: [WireNames.alpnHTTP], forQUIC: false))
        report(.secured)
    }

    private func open(
        _ pipe: Pipe, _ outcome: ClientHandshake.Outcome
    ) async throws(TransportError) -> any Socket {
        let hasStreams = outcome.subprotocol != nil
        let info = SocketInfo(
            transport: transport.name, pipe: pipe, hasStreams: hasStreams, target: url.target, limits: options.limits)
        let session = transport.makeSession(
            pipe, role: .client, hasStreams: hasStreams, limits: options.limits, keepalive: options.keepalive)
        session.start(with: outcome.rest)
        let socket = WebSocketSocket(session, info: info, loop: transport.loop)
        if let claim = options.claim, !claim.take() {
            _ = session.beginClose(Close(.normal, reason: "another dial was faster", origin: .local))
            throw TransportError(.superseded, "\(url.endpoint) opened a WebSocket after another dial had won")
        }
        report(.opened)
        return await transport.wrap(socket, isDialer: true, limits: options.limits)
    }

    private func report(_ progress: DialProgress) {
        options.progress?(progress)
    }
}

extension SocketInfo {
    /// What is known of a WebSocket once it is open.
    init(transport: TransportName, pipe: Pipe, hasStreams: Bool, target: Target, limits: Limits) {
        let tls = pipe.tls
        self.init(
            transport: transport, capabilities: hasStreams ? .streams : .text,
            protection: tls == nil ? .none : .transport, target: target, localAddress: pipe.localAddress,
            remoteAddress: pipe.remoteAddress, maxMessageBytes: limits.maxMessageBytes, peerKey: tls?.peerKey,
            resumed: tls?.resumed ?? false)
    }
}

extension WebSocketTransport {
    /// Makes a session that counts as open until its pipe is closed (R198). On the loop only.
    func makeSession(
        _ pipe: Pipe, role: WebSocketWire.Role, hasStreams: Bool, limits: Limits, keepalive: Keepalive,
        whenGone: @escaping (WebSocketSession) -> Void = { _ in }
    ) -> WebSocketSession {
        metrics.change("websocket.sockets", by: 1)
        let peer = pipe.remoteAddress
        log.debug("opened a socket with \(peer.map { "\($0)" } ?? "nobody")")
        return WebSocketSession(
            pipe, role: role, allowsText: !hasStreams, limits: limits, keepalive: keepalive
        ) { [metrics, log] session in
            metrics.change("websocket.sockets", by: -1)
            log.debug("let go of the socket with \(peer.map { "\($0)" } ?? "nobody")")
            whenGone(session)
        }
    }
}
