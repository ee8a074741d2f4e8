internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// One connection of the dialling end on a UDP socket of its own, which is connected, so that refusals are heard (R35).
///
/// Confined to its loop. The pool keeps it until nothing can come of the connection any more.
final class ClientEndpoint: TurnEndHandler {
    let connection: QUICConnection
    private let socket: UDPSocket
    private let loop: EventLoop
    private let pool: ClientPool
    private var timer: LoopTimer?
    private var isFlushDue = false
    /// What the kernel would not take.
    private var backlog: (bytes: Bytes, segment: Int, ecn: UInt8)?
    /// The time of the datagrams that are being received.
    private var batchNow: Instant?
    private var streamCount = 0
    private var refusals = RefusalWatch()
    /// The path as it is known from outside; it does not change yet.
    var localAddress: SocketAddress { socket.localAddress }
    let remoteAddress: SocketAddress

    var now: Instant { loop.now() }

    init(
        to remote: SocketAddress, tls: TLSSession, limits: Limits, keepalive: Keepalive, pool: ClientPool
    ) throws(TransportError) {
        self.pool = pool
        loop = pool.loop
        remoteAddress = remote
        socket = try UDPSocket.connect(to: remote, loop: loop, log: pool.log)
        do throws(TransportError) {
            connection = try QUICConnection(
                dialling: remote, from: socket.localAddress, tls: tls, limits: limits, keepalive: keepalive,
                now: loop.now())
        } catch {
            socket.close()
            throw error
        }
        connection.owner = self
        socket.handler = self
        // Unowned is sound: the timer is armed only while the pool keeps the endpoint.
        timer = loop.makeTimer { [unowned self] in timerFired() }
        timer?.dropped = { [unowned self] in loopStopped() }
        pool.add(self)
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
            switch unsafe socket.send(bytes, segmentBytes: batch.segmentBytes, ecn: batch.ecn) {
            case .sent:
                break
            case .blocked(let sent):
                let rest = unsafe Bytes(copying: UnsafeRawBufferPointer(rebasing: bytes[sent...]))
                backlog = (rest, batch.segmentBytes, batch.ecn)
            case .failed(let error):
                failed(error)
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
            connection.owner = nil
            socket.close()
            pool.remove(self)
            return
        }
        if let deadline = connection.deadline { timer?.arm(at: deadline) } else { timer?.disarm() }
    }
}

extension ClientEndpoint: UDPSocketHandler {
    func received(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
    ) {
        let now = batchNow ?? loop.now()
        batchNow = now
        refusals.heard()
        unsafe connection.receive(datagram, from: remoteAddress, to: socket.localAddress, ecn: ecn, now: now)
    }

    func receivedAll() {
        connection.settle(batchNow ?? loop.now())
        batchNow = nil
        scheduleFlush()
    }

    func writable() {
        if let (bytes, segment, ecn) = backlog {
            backlog = nil
            switch unsafe bytes.withUnsafeBytes({ unsafe socket.send($0, segmentBytes: segment, ecn: ecn) }) {
            case .sent, .failed: break
            case .blocked(let sent):
                backlog = (bytes.dropFirst(sent), segment, ecn)
                return
            }
        }
        flush()
    }

    func failed(_ error: TransportError) {
        // One report during a live connection may be late or forged, and does not end it (B29).
        guard !connection.isEstablished || error.code == .refused && refusals.refused(loop.now()) else { return }
        connection.lost(error)
        scheduleFlush()
    }
}

extension ClientEndpoint: QUICConnectionOwner {
    func connectionWantsToSend(_ connection: QUICConnection) { scheduleFlush() }

    func connectionHandshakeDone(_ connection: QUICConnection) {
        pool.log.debug("QUIC to \(remoteAddress) is open; live connections: \(pool.count)")
    }

    func connection(_ connection: QUICConnection, asksFor target: Target) {
        // Only the end that dials names a target, and the client's control stream never reads one.
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
