internal import CNgtcp2
internal import TransportKit
internal import TransportTLS

/// Whoever carries a connection's packets. Called on the connection's loop, never inside the library.
protocol QUICConnectionOwner: AnyObject {
    /// There may be something to send: ask for it before the turn ends.
    func connectionWantsToSend(_ connection: QUICConnection)

    /// The handshake is done.
    func connectionHandshakeDone(_ connection: QUICConnection)

    /// The peer, which dialled, named its target.
    func connection(_ connection: QUICConnection, asksFor target: Target)

    /// The conversation has ended; packets may still have to be answered for a while.
    func connectionEnded(_ connection: QUICConnection, with close: Close)

    /// The path is in doubt: move the connection if it would be dialled from another address now.
    func connectionLooksForPath(_ connection: QUICConnection) -> PathStep

    /// The path that leaves from `local` was tried, and an answer came, or none.
    func connection(_ connection: QUICConnection, triedPathFrom local: SocketAddress, isSound: Bool)
}

extension QUICConnectionOwner {
    func connectionLooksForPath(_ connection: QUICConnection) -> PathStep { .same }
    func connection(_ connection: QUICConnection, triedPathFrom local: SocketAddress, isSound: Bool) {}
}

/// One QUIC connection as a state machine without a socket: datagrams and instants go in, datagrams and a deadline come
/// out. Plain class, confined to one loop; every call says what time it is.
///
/// After `receive` and `timeout` the owner calls ``settle(_:)``, in which the application's side is served, and then asks
/// for what is to be sent.
final class QUICConnection {
    enum Phase {
        case handshaking
        case open
        /// This end closes, and waits until the peer has everything.
        case lingering(until: Instant)
        /// CONNECTION_CLOSE is sent, and again for packets that come until then.
        case closing(until: Instant)
        /// The peer has closed: nothing is sent any more (RFC 9000 §10.2.2).
        case draining(until: Instant)
        case gone
    }

    /// A message with what it gives back to its stream once it is taken.
    struct Arrived: Sendable {
        let message: Message
        let stream: Int64
        let credit: Int
    }

    let library: NgtcpConnection
    let sink: ConnectionSink
    let role: TLSRole
    let limits: Limits
    let keepalive: Keepalive
    /// Keeps it until the owner lets go of the connection, which it does once that is gone.
    var owner: (any QUICConnectionOwner)?

    var phase = Phase.handshaking
    /// How the conversation ended.
    var end: Close?
    /// The close this end has begun.
    var closing: Close?
    var closeFrame: NgtcpConnection.CloseFrame?
    var isCloseDue = false
    var packetsSinceClose = 0
    /// Whether either direction of the control stream has ended.
    var isControlOver = false

    /// What the application has not taken yet.
    let inbox = Inbox<Arrived>()
    let acceptable = Inbox<StreamState>()

    var control: StreamState?
    /// Whether the peer has been told that the control stream takes whole messages.
    private var hasWidenedControl = false
    var bulk: StreamState?
    var datagrams: [Bytes] = []
    var datagramBytes = 0
    /// Streams with something to send, in turns.
    var sendable = StreamTurns()
    var blocked: [StreamState] = []
    var isConnectionBlocked = false
    /// Whether something came since the blocked streams were tried.
    var hasReceived = false
    var carried: OutgoingBatch?
    /// When the owner last asked for something to send.
    var lastSent = Instant.zero

    /// Tasks that wait for room to send, oldest first, for a stream to open, and for the end.
    var sendWaiters: [Signal] = []
    var streamWaiters: [Signal] = []
    var endWaiters: [Signal] = []
    let handshake = Signal()
    /// Tasks at the listening end that wait for the handshake's end.
    var handshakeWaiters: [Signal] = []

    /// What waits for an answer; only the dialling end gives a path up by it.
    var answers: AnswerWatch?
    /// Questions to the path that nothing has answered yet.
    var questions: [PathQuestion] = []
    var isPingDue = false
    /// Where the path in use leaves from, once the connection has moved.
    var pathLocal: SocketAddress?
    let migration = Migration()
    /// Where the client is; nil at the end that dialled.
    var peerAddress: PeerAddress?

    /// Whether the owner knows that there may be something to send.
    var isSendDue = false
    /// What TLS has found out.
    private var peerKey: PublicKeyHash?
    private(set) var isResumed = false
    /// What became of early data.
    private(set) var earlyData = SocketInfo.EarlyData.none
    /// Whether the target is on its way, or there.
    var isTargetSent = false
    /// Whether the conversation ends without a word more once the handshake is done.
    var isTerminationDue = false
    /// Whether an application has the socket.
    var isHandedOut = false
    /// Numbers for the owner's metrics.
    var droppedDatagrams = 0

    /// Makes the dialling end.
    init(
        dialling remote: SocketAddress, from local: SocketAddress, tls: TLSSession, limits: Limits,
        keepalive: Keepalive, usualRoundTrip: Duration? = nil, now: Instant
    ) throws(TransportError) {
        role = .client
        self.limits = limits
        self.keepalive = keepalive
        sink = ConnectionSink(isServer: false, limits: limits)
        var settings = Self.settings(limits, keepalive, now: now)
        settings.initial_round_trip = UInt64(Self.initialRoundTrip(usual: usualRoundTrip).clampedNanoseconds)
        if tls.earlyParameters != nil { sink.refuseRetry() }
        library = try NgtcpConnection.client(
            settings, sink: sink, tls: tls, local: local, remote: remote)
    }

    /// Makes the listening end for a client's first packet, which is still to be handed to ``receive(_:from:to:ecn:now:)``.
    init(
        accepting firstPacket: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress,
        tls: TLSSession, resetSecret: ResetSecret?, idPrefix: UInt8? = nil, limits: Limits, keepalive: Keepalive,
        now: Instant
    ) throws(TransportError) {
        role = .server
        self.limits = limits
        self.keepalive = keepalive
        sink = ConnectionSink(isServer: true, limits: limits)
        var settings = Self.settings(limits, keepalive, now: now)
        resetSecret?.apply(to: &settings)
        if let idPrefix {
            settings.id_prefix = idPrefix
            settings.has_id_prefix = 1
        }
        library = unsafe try NgtcpConnection.server(
            settings, sink: sink, tls: tls, local: local, remote: remote, firstPacket: firstPacket)
        peerAddress = PeerAddress(remote, to: local)
    }

    /// Whether a datagram begins a connection.
    static func canBegin(with datagram: UnsafeRawBufferPointer) -> Bool {
        unsafe tk_quic_is_first_packet(datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count) != 0
    }

    /// What a round trip is taken for until one is measured: a packet is sent again after three of them.
    ///
    /// RFC 9002 §6.2.2 has a third of a second for a path that is not known, which would only delay the first packet that
    /// is sent again: a tenth costs a packet too many where round trips take more than 300 ms. What is known makes it
    /// shorter and never longer, since an earlier dial that lost packets tells of a longer one than there is; not too
    /// short, because the peer has to compute before it answers.
    static func initialRoundTrip(usual: Duration?) -> Duration {
        let unknown = Duration.milliseconds(100)
        return min(max(usual ?? unknown, .milliseconds(25)), unknown)
    }

    private static func settings(_ limits: Limits, _ keepalive: Keepalive, now: Instant) -> tk_quic_settings {
        var settings = tk_quic_settings()
        settings.now = now.nanoseconds
        settings.initial_round_trip = UInt64(initialRoundTrip(usual: nil).clampedNanoseconds)
        settings.handshake_timeout = UInt64(max(limits.handshakeTimeout.clampedNanoseconds, 1_000_000))
        settings.idle_timeout = UInt64(max(keepalive.idleTimeout.clampedNanoseconds, 1_000_000))
        settings.bidirectional_window = UInt64(max(limits.streamWindowBytes, 1))
        settings.unidirectional_window = UInt64(messageWindow(limits))
        // Room for messages on both paths and for eight streams that nobody reads, before they hold up the others (B44).
        settings.connection_window = UInt64(2 * messageWindow(limits) + 8 * limits.streamWindowBytes)
        // The control stream is one more.
        settings.bidirectional_streams = UInt64(max(limits.maxStreams, 0) + 1)
        settings.unidirectional_streams = 4
        settings.datagram_limit = 65_535
        return settings
    }

    /// The window of a stream with messages. A message gives its credit back once it is taken, and the peer learns that
    /// once half the window is back: with two messages' room the next one always comes through whole.
    static func messageWindow(_ limits: Limits) -> Int {
        max(limits.receiveBufferBytes, 2 * (limits.maxMessageBytes + 8))
    }

    // MARK: - What the owner calls

    /// Takes a datagram.
    func receive(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8,
        now: Instant
    ) {
        switch phase {
        case .gone, .draining: return
        case .handshaking, .open, .lingering, .closing: break
        }
        // The library takes an empty datagram, which anybody can send, for a mistake of this end's.
        guard unsafe !datagram.isEmpty else { return }
        let name = peerAddress?.name(of: remote, to: local) ?? local
        hasReceived = true
        let isAsked = answers?.isWaiting == true || !questions.isEmpty
        let inFlight = isAsked ? library.bytesInFlight : 0
        let status = unsafe library.receive(datagram, from: remote, to: name, ecn: ecn, now: now)
        if status == 0 {
            // What the peer has not sealed, the library drops without a word: the reset of a service that started anew with
            // another key, for one. So only what a packet does is a sign of life.
            if isAsked, sink.arrivedBytes > 0 || library.bytesInFlight < inFlight { heard(on: local) }
            if peerAddress?.isNew(name) == true, library.local == name { peerAddress?.moved(from: remote, to: name) }
        } else {
            settle(now)
            handle(status, now)
        }
    }

    /// Does what is due by now.
    func timeout(_ now: Instant) {
        switch phase {
        case .gone: return
        case .closing(let until), .draining(let until):
            if now >= until { phase = .gone }
            return
        case .lingering(let until) where now >= until:
            terminate(now)
            return
        case .handshaking, .open, .lingering: break
        }
        checkAnswers(now)
        guard let expiry = library.expiry, expiry <= now else { return }
        let status = library.handleExpiry(now)
        settle(now)
        if status != 0 { handle(status, now) }
    }

    /// When ``timeout(_:)`` wants to be called next.
    var deadline: Instant? {
        switch phase {
        case .gone: nil
        case .closing(let until), .draining(let until): until
        case .lingering(let until): min(until, library.expiry ?? until)
        case .handshaking:
            // Early data and what answers it wait for the handshake where they do not fit.
            library.expiry.map { max($0, lastSent + Self.granularity) }
        case .open:
            // The library asks to be called when its pacing lets the next packet out, even if there is none.
            earlier(
                hasWork ? library.expiry : library.expiry.map { max($0, lastSent + Self.granularity) },
                answers?.deadline)
        }
    }

    private func earlier(_ left: Instant?, _ right: Instant?) -> Instant? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }

    /// No timer of QUIC is finer (RFC 9002 §6.1.2).
    private static let granularity = Duration.milliseconds(1)

    /// Whether the application's bytes wait for the path.
    var hasWork: Bool {
        control?.outbound.hasWork == true || !sendable.isEmpty || !datagrams.isEmpty
    }

    /// Whether nothing will come of the connection any more.
    var isGone: Bool {
        if case .gone = phase { true } else { false }
    }

    /// Whether the handshake is done.
    var isEstablished: Bool { sink.isHandshakeCompleted }

    /// The shortest round trip to the peer so far, of packets that were sent once; nil before the first answer.
    var roundTrip: Duration? { library.roundTrip }

    /// Whether the handshake is done, or why it failed.
    var handshakeResult: Result<Bool, TransportError> {
        if let verdict {
            let words = "the connection ended during the handshake: \(verdict)"
            return .failure(
                verdict.cause
                    ?? TransportError(
                        verdict.origin == .local ? .protocolViolation : .refused, words, number: verdict.code.rawValue))
        }
        return .success(isEstablished)
    }

    /// What is known of the socket once it is open.
    func info(target: Target, local: SocketAddress, remote: SocketAddress) -> SocketInfo {
        if !isEstablished { noteTLS() }
        return SocketInfo(
            transport: .quic, capabilities: library.datagramRoom > 0 ? [.streams, .datagrams] : .streams,
            protection: .transport, target: target, localAddress: local, remoteAddress: remote,
            maxMessageBytes: limits.maxMessageBytes, peerKey: peerKey, resumed: isResumed, earlyData: earlyData)
    }

    private func noteTLS() {
        peerKey = library.peerKey
        isResumed = library.isResumed
        earlyData = library.earlyData
    }

    /// The end as calls of the application see it, this end's own close included.
    var verdict: Close? { end ?? closing }

    // MARK: - What has happened

    /// Serves the application with what the library has reported.
    func settle(_ now: Instant) {
        if case .handshaking = phase, sink.isHandshakeCompleted { handshakeDone(now) }
        if role == .client { library.keepTickets(forEarlyData: !sink.hasRetried) }
        if role == .client, sink.isHandshakeConfirmed, let control, !hasWidenedControl { widen(control) }
        settlePaths()
        if sink.arrivedBytes > 0 {
            answers?.used(sink.arrivedBytes, now: now)
            sink.arrivedBytes = 0
        }
        settleStreams()
        settleMessages(now)
        if isControlOver { breakOff(.protocolError, "the control stream ended", now) }
        if sink.mayOpenStreams {
            sink.mayOpenStreams = false
            for waiter in streamWaiters + sendWaiters.prefix(1) { waiter.signal() }
        }
        if case .lingering = phase { wantToSend() }
    }

    /// Asks the owner, once, to fetch what is to be sent.
    func wantToSend() {
        guard !isSendDue else { return }
        isSendDue = true
        owner?.connectionWantsToSend(self)
    }

    private func handshakeDone(_ now: Instant) {
        phase = .open
        noteTLS()
        if role == .client, library.negotiatedProtocol == nil {
            // RFC 9001 §8.1: a client must not go on without a protocol.
            fail(.raised(120, role: role, established: false), with: .alert(120), now)
            return
        }
        // A server takes no TLS message any more (``HandshakeGuard``), and most of what an idle connection holds beside
        // the library's own is the session.
        if role == .server { library.releaseTLS() }
        if let interval = keepalive.interval { library.setKeepalive(interval) }
        if role == .client { answers = AnswerWatch(keepalive) }
        if role == .client {
            if earlyData == .rejected { forgetEarlyWords() }
            if control == nil { openControl() }
        }
        handshake.signal()
        for waiter in handshakeWaiters { waiter.signal() }
        owner?.connectionHandshakeDone(self)
        if role == .server { endIfDue(now) }
    }

    /// Opens the dialling end's control stream; false where the service allows none.
    @discardableResult
    func openControl() -> Bool {
        guard let id = library.openStream(bidirectional: true) else { return false }
        adoptControl(
            StreamState(
                id: id, isLocal: true, content: .framed(.messages(upTo: limits.maxMessageBytes), .control)))
        return true
    }

    func adoptControl(_ stream: StreamState) {
        control = stream
        sink.streams[stream.id] = stream
        if role == .server { widen(stream) }
    }

    /// Gives the control stream the window of one with messages. A client waits until the handshake is confirmed: before
    /// that ngtcp2 0.12 takes the wider window and never tells the peer.
    private func widen(_ control: StreamState) {
        hasWidenedControl = true
        let more = Self.messageWindow(limits) - limits.streamWindowBytes
        guard more > 0 else { return }
        library.extend(stream: control.id, by: more)
        wantToSend()
    }
}
