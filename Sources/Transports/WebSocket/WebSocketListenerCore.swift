internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// What a listener does on its loop: it accepts connections, sees them through their handshake, and keeps those that are
/// open until somebody takes them.
///
/// Sendable is sound: it is confined to its loop, on which the actor in front of it and the acceptor under it run.
final class WebSocketListenerCore: @unchecked Sendable {
    private let transport: WebSocketTransport
    private let options: ListenOptions
    private let credentials: TLSServerCredentials?

    private var acceptor: TCPAcceptor?
    private var handshakes: [ObjectIdentifier: ServerHandshake] = [:]
    private var connections = 0
    private var waiting: [(socket: WebSocketSocket, session: WebSocketSession)] = []
    private let arrived = Signal()
    private var isAccepting = false
    private var end: Close?
    private let refusals: LogLimiter
    private let failures: LogLimiter

    init(
        _ transport: WebSocketTransport, scheme: Endpoint.Scheme, options: ListenOptions
    ) throws(TransportError) {
        self.transport = transport
        self.options = options
        refusals = LogLimiter(time: transport.loop)
        failures = LogLimiter(time: transport.loop)
        switch scheme {
        case .ws: credentials = nil
        case .wss:
            guard let security = options.security else {
                throw TransportError(.misuse, "a listener for wss:// needs a certificate")
            }
            credentials = try TLSServerCredentials(security)
        }
    }

    deinit {
        guard let acceptor else { return }
        transport.loop.execute { acceptor.close() }
    }

    /// Binds.
    ///
    /// - Returns: the port that was bound, or why there is none.
    func start(at address: SocketAddress) -> Result<UInt16, TransportError> {
        do throws(TransportError) {
            let acceptor = try TCPAcceptor.bind(address, loop: transport.loop, log: transport.log)
            acceptor.handler = self
            self.acceptor = acceptor
            return .success(acceptor.localAddress.port)
        } catch {
            return .failure(error)
        }
    }

    /// Waits for a socket and takes the oldest.
    func accept() async throws(Close) -> WebSocketSocket {
        guard !isAccepting else { throw .misuse("another task accepts already") }
        isAccepting = true
        defer { isAccepting = false }
        while true {
            if let socket = takeWaiting() { return socket }
            if let end { throw end }
            guard await arrived.wait() else { throw .cancelled }
        }
    }

    private func takeWaiting() -> WebSocketSocket? {
        while !waiting.isEmpty {
            let (socket, session) = waiting.removeFirst()
            if session.isGone { connections -= 1 }
            // A dial that came too late for its claim says nothing: nobody needs to hear of it.
            if !session.endedInSilence { return socket }
        }
        return nil
    }

    /// A socket that nobody has accepted counts on if it has something to tell.
    private func gone(_ session: WebSocketSession) {
        guard let index = waiting.firstIndex(where: { $0.session === session }) else { return connections -= 1 }
        guard session.endedInSilence else { return }
        waiting.remove(at: index)
        connections -= 1
    }

    /// Frees the port and ends what has not been accepted; sockets that were live on.
    func close(_ close: Close) {
        guard end == nil else { return }
        end = close
        acceptor?.close()
        acceptor = nil
        for handshake in handshakes.values { handshake.abandon() }
        let refused = waiting
        waiting = []
        for (_, session) in refused {
            if session.isGone { connections -= 1 } else { _ = session.beginClose(close) }
        }
        arrived.signal()
    }

    private func opened(_ outcome: ServerHandshake.Outcome, _ pipe: Pipe) {
        let hasStreams = outcome.subprotocol != nil
        var info = SocketInfo(
            transport: transport.name, pipe: pipe, hasStreams: hasStreams, target: outcome.request.target,
            limits: options.limits)
        info.forwardedFor = outcome.request.forwardedFor
        let session = transport.makeSession(
            pipe, role: .server, hasStreams: hasStreams, limits: options.limits, keepalive: options.keepalive
        ) { [weak self] session in self?.gone(session) }
        session.start(with: outcome.rest)
        waiting.append((WebSocketSocket(session, info: info, loop: transport.loop), session))
        arrived.signal()
    }
}

extension WebSocketListenerCore: TCPAcceptorHandler {
    func accepted(_ socket: TCPSocket) {
        let pipe = Pipe(accepted: socket, room: transport.room)
        let rules = ServerHandshake.Rules(
            route: options.route, subprotocol: transport.multiplexer?.subprotocol,
            timeout: options.limits.handshakeTimeout, log: transport.log)
        connections += 1
        let handshake = ServerHandshake(pipe, isSecured: credentials != nil, rules: rules) { [weak self] outcome in
            self?.ended(ObjectIdentifier(pipe), outcome, pipe)
        }
        handshakes[ObjectIdentifier(pipe)] = handshake
        guard connections <= options.limits.maxConnections else {
            refusals.run { (more: String) in
                transport.log.warning(
                    "refused a connection from \(socket.remoteAddress): all \(options.limits.maxConnections) are taken; "
                        + "raise limits.maxConnections\(more)")
            }
            return credentials == nil ? handshake.refuseForLackOfRoom() : handshake.abandon()
        }
        guard let credentials else { return }
        do throws(TransportError) {
            pipe.startTLS(
                try TLSSession.server(
                    credentials, protocols: [WireNames.alpnHTTP], forQUIC: false, tickets: options.tickets))
        } catch {
            failures.run { (more: String) in
                transport.log.error("TLS for \(socket.remoteAddress) failed: \(error)\(more)")
            }
            handshake.abandon()
        }
    }

    func acceptorStopped() {
        close(Close(.goingAway, reason: TransportError.loopStopped.message, origin: .local))
    }

    private func ended(_ id: ObjectIdentifier, _ outcome: ServerHandshake.Outcome?, _ pipe: Pipe) {
        handshakes[id] = nil
        if let outcome, end == nil {
            opened(outcome, pipe)
        } else {
            connections -= 1
            pipe.close()
        }
    }
}
