internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// One connection of the dialling end on a UDP socket of its own, which is connected, so that refusals are heard (R35).
///
/// Where the machine's network changes, the connection moves to a new socket (R19, R211); the old one still receives for a
/// moment what was on its way. Confined to its loop. The pool keeps it until nothing can come of the connection any more.
final class ClientEndpoint: TurnEndHandler {
    let connection: QUICConnection
    /// The way that packets leave by.
    private var path: ClientPath
    /// Ways it has left, oldest first.
    private var formerPaths: [ClientPath] = []
    private var formerTimer: LoopTimer?
    private let loop: EventLoop
    private let pool: ClientPool
    private var timer: LoopTimer?
    private var isFlushDue = false
    /// What the kernel would not take.
    private var backlog: (bytes: Bytes, segment: Int, ecn: UInt8, path: ClientPath)?
    /// The time of the datagrams that are being received.
    private var batchNow: Instant?
    private var streamCount = 0
    private var refusals = RefusalWatch()
    /// When a send that failed last made it look for another way.
    private var lastSearch: Instant?
    private var lastMove: Instant?
    /// Looks again for a way that was found too soon after the last move.
    private var moveTimer: LoopTimer?
    /// Where packets leave from.
    var localAddress: SocketAddress { path.socket.localAddress }
    let remoteAddress: SocketAddress

    var now: Instant { loop.now() }

    /// - Parameter early: what may be said as early data: the target, and the first message where there is one.
    init(
        to remote: SocketAddress, tls: TLSSession, limits: Limits, keepalive: Keepalive,
        usualRoundTrip: Duration? = nil, early: (target: Target, firstFlight: Bytes?)? = nil, pool: ClientPool
    ) throws(TransportError) {
        self.pool = pool
        loop = pool.loop
        remoteAddress = remote
        let socket = try UDPSocket.connect(to: remote, loop: loop, log: pool.log)
        path = ClientPath(socket)
        do throws(TransportError) {
            connection = try QUICConnection(
                dialling: remote, from: socket.localAddress, tls: tls, limits: limits, keepalive: keepalive,
                usualRoundTrip: usualRoundTrip, now: loop.now())
        } catch {
            socket.close()
            throw error
        }
        connection.owner = self
        path.endpoint = self
        // Unowned is sound: the timer is armed only while the pool keeps the endpoint.
        timer = loop.makeTimer { [unowned self] in timerFired() }
        timer?.dropped = { [unowned self] in loopStopped() }
        pool.add(self)
        if let early { connection.sendEarly(early.target, firstFlight: early.firstFlight) }
        flush()
    }

    private func timerFired() {
        let now = loop.now()
        connection.timeout(now)
        connection.settle(now)
        flush()
    }

    private func loopStopped() {
        connection.loopStopped()
        finish()
    }

    private func scheduleFlush() {
        guard !isFlushDue else { return }
        isFlushDue = true
        loop.atEndOfTurn(self)
    }

    func turnEnds() { flush() }

    private func flush() {
        isFlushDue = false
        let now = loop.now()
        while backlog == nil, let batch = unsafe connection.nextBatch(into: pool.room.bytes, now: now) {
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: pool.room.bytes[batch.range])
            let path = batch.local == path.socket.localAddress ? path : path(from: batch.local)
            switch unsafe path.socket.send(bytes, segmentBytes: batch.segmentBytes, ecn: batch.ecn) {
            case .sent:
                break
            case .blocked(let sent):
                let rest = unsafe Bytes(copying: UnsafeRawBufferPointer(rebasing: bytes[sent...]))
                backlog = (rest, batch.segmentBytes, batch.ecn, path)
            case .failed(let error):
                failed(error, on: path)
            }
            if batch.isLast { break }
        }
        finish()
    }

    private func finish() {
        let count = connection.isGone ? 0 : connection.sink.streams.count
        if count != streamCount {
            pool.metrics.change("quic.streams", by: count - streamCount)
            streamCount = count
        }
        guard !connection.isGone else {
            timer?.disarm()
            moveTimer?.disarm()
            connection.owner = nil
            path.socket.close()
            closeFormerPaths()
            pool.remove(self)
            return
        }
        if let deadline = connection.deadline { timer?.arm(at: deadline) } else { timer?.disarm() }
    }
}

extension ClientEndpoint {
    // MARK: - What its sockets tell

    fileprivate func received(_ datagram: UnsafeRawBufferPointer, on path: ClientPath, ecn: UInt8) {
        let now = batchNow ?? loop.now()
        batchNow = now
        refusals.heard()
        unsafe connection.receive(datagram, from: remoteAddress, to: path.socket.localAddress, ecn: ecn, now: now)
    }

    fileprivate func receivedAll() {
        connection.settle(batchNow ?? loop.now())
        batchNow = nil
        scheduleFlush()
    }

    fileprivate func writable() {
        if let (bytes, segment, ecn, path) = backlog {
            backlog = nil
            switch unsafe bytes.withUnsafeBytes({ unsafe path.socket.send($0, segmentBytes: segment, ecn: ecn) }) {
            case .sent, .failed: break
            case .blocked(let sent):
                backlog = (bytes.dropFirst(sent), segment, ecn, path)
                return
            }
        }
        flush()
    }

    /// The network reports about the path in use.
    func failed(_ error: TransportError) { failed(error, on: path) }

    fileprivate func failed(_ error: TransportError, on path: ClientPath) {
        guard path === self.path else { return }
        if connection.isEstablished {
            guard error.code == .refused else { return searchPath() }
            // One report during a live connection may be late or forged, and does not end it (B29).
            guard refusals.refused(loop.now()) else { return }
        }
        connection.lost(error)
        scheduleFlush()
    }

    // MARK: - Paths

    /// Looks for another way, because the one in use takes nothing; not for every packet that fails.
    private func searchPath() {
        let now = loop.now()
        if let lastSearch, now - lastSearch < Self.searchInterval { return }
        lastSearch = now
        _ = connectionLooksForPath(connection)
    }

    private static let searchInterval = Duration.milliseconds(50)

    private static let moveInterval = Duration.milliseconds(100)

    /// Moves to a socket of its own making, as where the machine's address changes; for tests.
    func moveToFreshSocket() -> Bool {
        guard let socket = try? UDPSocket.connect(to: remoteAddress, loop: loop, log: pool.log) else { return false }
        return move(to: socket) == .moved
    }

    /// The system routes by where a packet goes: from the old address it would leave by the new way too, where that address
    /// is wrong. So the connection moves at once, and nothing more is sent from there.
    private func move(to socket: UDPSocket) -> PathStep {
        let now = loop.now()
        // Each move uses an id up, and a peer may end a connection that uses them up faster than they can be replaced.
        if let lastMove {
            let earliest = lastMove + max(Self.moveInterval, connection.library.probeTimeout)
            guard now >= earliest else {
                socket.close()
                lookAgain(at: earliest)
                return .later
            }
        }
        guard connection.move(to: socket.localAddress, remote: remoteAddress, now) else {
            socket.close()
            return .none
        }
        lastMove = now
        adopt(socket)
        scheduleFlush()
        return .moved
    }

    private func lookAgain(at instant: Instant) {
        if moveTimer == nil {
            moveTimer = loop.makeTimer { [weak self] in
                guard let self else { return }
                connection.lookForPath()
                scheduleFlush()
            }
        }
        moveTimer?.arm(at: instant)
    }

    private func path(from local: SocketAddress?) -> ClientPath {
        formerPaths.last { $0.socket.localAddress == local } ?? path
    }

    private func adopt(_ socket: UDPSocket) {
        let old = path
        path = ClientPath(socket)
        path.endpoint = self
        formerPaths.append(old)
        if backlog != nil { backlog = nil }
        // A path that never proves itself must not keep the sockets before it.
        if formerPaths.count > Self.formerLimit { formerPaths.removeFirst().socket.close() }
        pool.log.info("QUIC to \(remoteAddress) moves from \(old.socket.localAddress) to \(socket.localAddress)")
        pool.metrics.add(1, to: "quic.migrations")
    }

    private static let formerLimit = 2

    private func closeFormerPaths() {
        formerTimer?.disarm()
        for former in formerPaths { former.socket.close() }
        formerPaths = []
    }
}

/// One UDP socket of a connection.
private final class ClientPath: UDPSocketHandler {
    let socket: UDPSocket
    // Unowned is sound: the endpoint closes its sockets, which then call nobody, before it goes.
    unowned var endpoint: ClientEndpoint?

    init(_ socket: UDPSocket) {
        self.socket = socket
        socket.handler = self
    }

    func received(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
    ) {
        unsafe endpoint?.received(datagram, on: self, ecn: ecn)
    }

    func receivedAll() { endpoint?.receivedAll() }

    func writable() { endpoint?.writable() }

    func failed(_ error: TransportError) { endpoint?.failed(error, on: self) }
}

extension ClientEndpoint: QUICConnectionOwner {
    func connectionWantsToSend(_ connection: QUICConnection) { scheduleFlush() }

    func connectionHandshakeDone(_ connection: QUICConnection) {
        connection.countHandshake(in: pool.metrics)
        pool.log.debug(
            "QUIC to \(remoteAddress) is open\(connection.handshakeInWords); live connections: \(pool.count)")
    }

    func connection(_ connection: QUICConnection, asksFor target: Target) {
        // Only the end that dials names a target, and the client's control stream never reads one.
    }

    func connectionLooksForPath(_ connection: QUICConnection) -> PathStep {
        guard let socket = try? UDPSocket.connect(to: remoteAddress, loop: loop, log: pool.log) else { return .none }
        guard socket.localAddress.address != localAddress.address else {
            socket.close()
            return .same
        }
        return move(to: socket)
    }

    func connection(_ connection: QUICConnection, triedPathFrom local: SocketAddress, isSound: Bool) {
        guard isSound, local == localAddress, !formerPaths.isEmpty else { return }
        if formerTimer == nil { formerTimer = loop.makeTimer { [weak self] in self?.closeFormerPaths() } }
        formerTimer?.arm(at: loop.now() + connection.library.probeTimeout * 3)
    }

    func connectionEnded(_ connection: QUICConnection, with close: Close) {
        pool.log.debug("QUIC to \(remoteAddress) ended: \(close); live connections: \(pool.count)")
        scheduleFlush()
    }
}

/// The connections that one transport has dialled. Confined to its loop.
final class ClientPool {
    let loop: EventLoop
    let log: Log
    let metrics: any MetricsSink
    private(set) lazy var room = PacketRoom()
    private var endpoints: [ObjectIdentifier: ClientEndpoint] = [:]

    init(loop: EventLoop, log: Log, metrics: any MetricsSink) {
        self.loop = loop
        self.log = log
        self.metrics = metrics
    }

    var count: Int { endpoints.count }
    var all: [ClientEndpoint] { Array(endpoints.values) }

    func add(_ endpoint: ClientEndpoint) {
        endpoints[ObjectIdentifier(endpoint)] = endpoint
        metrics.change("quic.connections", by: 1)
    }

    func remove(_ endpoint: ClientEndpoint) {
        guard endpoints.removeValue(forKey: ObjectIdentifier(endpoint)) != nil else { return }
        metrics.change("quic.connections", by: -1)
        if endpoint.connection.droppedDatagrams > 0 {
            metrics.add(endpoint.connection.droppedDatagrams, to: "quic.datagrams.dropped")
        }
    }
}
