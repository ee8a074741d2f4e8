internal import CNgtcp2
internal import TransportIO
internal import TransportKit
internal import TransportTLS

/// The connections that share a listener's UDP socket, found by their connection ids.
///
/// Confined to its loop. The socket lives until the listener is closed and the last connection is gone. Where several loops
/// share the port, each has an endpoint, and hands over what belongs to a connection of another (R20).
final class ListenerEndpoint: TurnEndHandler {
    /// A connection with what this end keeps beside it.
    private final class Entry {
        let connection: QUICConnection
        let local: SocketAddress
        let remote: SocketAddress
        var timer: LoopTimer?
        /// By when the client must have named its target.
        var targetDeadline: Instant?
        /// One that came as early data, for which no socket is handed out before the handshake is done.
        var earlyTarget: Target?
        var ids: Set<ConnectionID> = []
        var isFlushDue = false
        var isSettleDue = false
        var streamCount = 0
        var hasCountedEnd = false
        /// Whether the client is known to be where it says it is.
        var isProven = true

        init(_ connection: QUICConnection, local: SocketAddress, remote: SocketAddress) {
            self.connection = connection
            self.local = local
            self.remote = remote
        }
    }

    let socket: UDPSocket
    private let loop: EventLoop
    private let log: Log
    private let metrics: any MetricsSink
    private let options: ListenOptions
    private let credentials: TLSServerCredentials
    private let resetSecret: ResetSecret
    private let room = PacketRoom()
    let accepted: Inbox<QUICSocket>
    /// The endpoints that share the port, this one included; nil where it is alone.
    private let shards: ListenerShards?
    private let shardNumber: UInt8
    private var strays: [UInt8: [ListenerShards.Stray]] = [:]

    private var entries: [ObjectIdentifier: Entry] = [:]
    private var byID: [ConnectionID: Entry] = [:]
    /// The connection of the packet before: packets come in runs.
    private var recent: (id: ConnectionID, entry: Entry)?
    /// Connections that have received something in this batch, and that have something to send.
    private var unsettled: [Entry] = []
    private var unflushed: [Entry] = []
    private var isFlushDue = false
    private var isClosed = false
    /// Connections of clients that may not be where they say they are.
    private var unproven = 0
    /// Above it clients are asked to prove that first, so that a flood with forged addresses costs no memory.
    static let unprovenLimit = 256
    private var batchNow: Instant?
    private var backlog: [(bytes: Bytes, batch: OutgoingBatch)] = []
    private var answers = AnswerBudget()
    private let refusals: LogLimiter
    private let failures: LogLimiter
    /// Keeps itself while the socket is open, since sockets outlive their listener.
    private var keepAlive: ListenerEndpoint?
    private var anchor: LoopTimer?

    init(
        _ local: SocketAddress, options: ListenOptions, credentials: TLSServerCredentials, resetSecret: ResetSecret,
        accepted: Inbox<QUICSocket>, shards: ListenerShards? = nil, loop: EventLoop, log: Log, metrics: any MetricsSink
    ) throws(TransportError) {
        self.accepted = accepted
        self.shards = shards
        self.loop = loop
        self.log = log
        self.metrics = metrics
        self.options = options
        self.credentials = credentials
        self.resetSecret = resetSecret
        refusals = LogLimiter(time: loop)
        failures = LogLimiter(time: loop)
        socket = try UDPSocket.bind(local, loop: loop, reusePort: shards != nil, log: log)
        shardNumber = shards?.nextNumber ?? 0
        socket.handler = self
        shards?.add(LoopBound(self, on: loop))
        keepAlive = self
        // Unowned is sound: the timer is armed only while the endpoint keeps itself.
        anchor = loop.makeTimer { [unowned self] in armAnchor() }
        anchor?.dropped = { [unowned self] in loopStopped() }
        armAnchor()
    }

    /// Refuses new connections, and those that nobody has accepted.
    func close(_ code: CloseCode, reason: String) {
        guard !isClosed else { return }
        isClosed = true
        let now = loop.now()
        for entry in entries.values where !entry.connection.isHandedOut {
            entry.connection.close(code, reason: reason, now)
        }
        closeIfDone()
    }

    /// A timer that is always armed, and so is told of the end of the loop.
    private func armAnchor() { anchor?.arm(at: loop.now() + .seconds(3600)) }

    private func loopStopped() {
        isClosed = true
        accepted.end(Close(.goingAway, reason: TransportError.loopStopped.message, origin: .local))
        for entry in entries.values {
            entry.connection.loopStopped()
            remove(entry)
        }
        closeIfDone()
    }

    private func closeIfDone() {
        guard isClosed, entries.isEmpty else { return }
        anchor?.disarm()
        anchor = nil
        socket.close()
        keepAlive = nil
    }

    // MARK: - Connections

    private func accept(_ datagram: UnsafeRawBufferPointer, _ remote: SocketAddress, _ local: SocketAddress) -> Entry? {
        guard unsafe QUICConnection.canBegin(with: datagram) else { return nil }
        guard !isClosed, entries.count < options.limits.maxConnections else {
            // A closed listener lives on for its sockets, and says at once that nobody answers here.
            if !isClosed {
                refusals.run { (more: String) in
                    let limit = options.limits.maxConnections
                    log.warning("QUIC from \(remote) is refused: limits.maxConnections is \(limit)\(more)")
                }
            }
            unsafe refuse(datagram, remote, local)
            return nil
        }
        let now = batchNow ?? loop.now()
        let isProven = unsafe unproven >= Self.unprovenLimit && resetSecret.isProven(datagram, from: remote, now: now)
        guard isProven || unproven < Self.unprovenLimit else {
            if let packet = unsafe resetSecret.retry(for: datagram, from: remote, now: now) {
                send(packet, remote, local)
            }
            return nil
        }
        do throws(TransportError) {
            let tls = try TLSSession.server(
                credentials, protocols: options.applicationProtocols, forQUIC: true, tickets: options.tickets,
                earlyData: options.earlyData)
            let connection = unsafe try QUICConnection(
                accepting: datagram, from: remote, to: local, tls: tls, resetSecret: resetSecret,
                idPrefix: shards == nil ? nil : shardNumber, limits: options.limits, keepalive: options.keepalive,
                now: now)
            let entry = Entry(connection, local: local, remote: remote)
            entry.targetDeadline = now + options.limits.handshakeTimeout
            // Unowned is sound: the timer is armed only while `entries` holds the entry, and the endpoint keeps itself.
            entry.timer = loop.makeTimer { [unowned self, unowned entry] in timerFired(entry) }
            entry.timer?.dropped = { [unowned self, unowned entry] in
                entry.connection.loopStopped()
                remove(entry)
            }
            connection.owner = self
            entries[ObjectIdentifier(connection)] = entry
            entry.isProven = isProven
            if !isProven { unproven += 1 }
            metrics.change("quic.connections", by: 1)
            return entry
        } catch {
            failures.run { (more: String) in log.warning("QUIC from \(remote) cannot be served: \(error)\(more)") }
            return nil
        }
    }

    private func entry(of connection: QUICConnection) -> Entry? { entries[ObjectIdentifier(connection)] }

    private func timerFired(_ entry: Entry) {
        let now = loop.now()
        if let deadline = entry.targetDeadline, now >= deadline {
            entry.targetDeadline = nil
            entry.connection.breakOff(.tooSlow, "no target was named in time", now)
        }
        entry.connection.timeout(now)
        settle(entry, now)
        schedule(entry)
    }

    private func settle(_ entry: Entry, _ now: Instant) {
        entry.isSettleDue = false
        entry.connection.settle(now)
        updateIDs(entry)
    }

    private func updateIDs(_ entry: Entry) {
        let sink = entry.connection.sink
        if !sink.issuedIDs.isEmpty {
            for id in sink.issuedIDs where byID[id] == nil {
                byID[id] = entry
                entry.ids.insert(id)
            }
            sink.issuedIDs = []
        }
        if !sink.retiredIDs.isEmpty {
            for id in sink.retiredIDs where entry.ids.remove(id) != nil { byID[id] = nil }
            sink.retiredIDs = []
            recent = nil
        }
    }

    private func prove(_ entry: Entry) {
        guard !entry.isProven else { return }
        entry.isProven = true
        unproven -= 1
    }

    private func remove(_ entry: Entry) {
        prove(entry)
        entry.timer?.disarm()
        entry.connection.owner = nil
        for id in entry.ids { byID[id] = nil }
        recent = nil
        guard entries.removeValue(forKey: ObjectIdentifier(entry.connection)) != nil else { return }
        metrics.change("quic.connections", by: -1)
        if entry.connection.droppedDatagrams > 0 {
            metrics.add(entry.connection.droppedDatagrams, to: "quic.datagrams.dropped")
        }
        closeIfDone()
    }

    // MARK: - Sending

    private func schedule(_ entry: Entry) {
        if !entry.isFlushDue {
            entry.isFlushDue = true
            unflushed.append(entry)
        }
        guard !isFlushDue else { return }
        isFlushDue = true
        loop.atEndOfTurn(self)
    }

    func turnEnds() { flush() }

    private func flush() {
        isFlushDue = false
        guard backlog.isEmpty else { return }
        let now = loop.now()
        while let entry = unflushed.popLast() {
            entry.isFlushDue = false
            flush(entry, now)
            if !backlog.isEmpty { break }
        }
    }

    private func flush(_ entry: Entry, _ now: Instant) {
        while backlog.isEmpty, let batch = unsafe entry.connection.nextBatch(into: room.bytes, now: now) {
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: room.bytes[batch.range])
            switch unsafe send(bytes, batch) {
            case .sent, .failed: break
            case .blocked(let sent):
                let rest = unsafe Bytes(copying: UnsafeRawBufferPointer(rebasing: bytes[sent...]))
                backlog.append((rest, batch))
                // The connection goes on once the kernel takes more.
                entry.isFlushDue = true
                unflushed.append(entry)
            }
            if batch.isLast { break }
        }
        updateIDs(entry)
        let count = entry.connection.isGone ? 0 : entry.connection.sink.streams.count
        if count != entry.streamCount {
            metrics.change("quic.streams", by: count - entry.streamCount)
            entry.streamCount = count
        }
        guard !entry.connection.isGone else {
            remove(entry)
            return
        }
        var deadline = entry.connection.deadline
        if let target = entry.targetDeadline, entry.connection.end == nil { deadline = min(target, deadline ?? target) }
        if let deadline { entry.timer?.arm(at: deadline) } else { entry.timer?.disarm() }
    }

    private func send(_ bytes: UnsafeRawBufferPointer, _ batch: OutgoingBatch) -> UDPSendResult {
        unsafe socket.send(
            bytes, segmentBytes: batch.segmentBytes, to: batch.remote, from: batch.local, ecn: batch.ecn)
    }

    // MARK: - Packets of no connection

    private func refuse(_ datagram: UnsafeRawBufferPointer, _ remote: SocketAddress, _ local: SocketAddress) {
        guard answers.take(loop.now()) else { return }
        let size = unsafe tk_quic_write_refusal(
            room.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), 1200,
            datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count)
        answer(size, remote, local)
    }

    private func answer(_ size: Int64, _ remote: SocketAddress, _ local: SocketAddress) {
        guard size > 0 else { return }
        _ = unsafe socket.send(
            UnsafeRawBufferPointer(rebasing: room.bytes[..<Int(size)]), segmentBytes: Int(size), to: remote, from: local
        )
    }

    private func answerUnknown(_ datagram: UnsafeRawBufferPointer, _ remote: SocketAddress, _ local: SocketAddress) {
        var destination = tk_quic_id()
        var source = tk_quic_id()
        var version: UInt32 = 0
        let status = unsafe tk_quic_inspect(
            datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count, ConnectionID.length,
            &destination,
            &source, &version)
        if status == 1 {
            // RFC 9000 §6.1: only datagrams large enough to begin a connection are answered.
            guard datagram.count >= 1200, answers.take(loop.now()) else { return }
            let size = unsafe tk_quic_write_version_negotiation(
                room.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), 1200, &destination, &source)
            answer(size, remote, local)
        } else if status == 0, version == 0, answers.take(loop.now()),
            let packet = resetSecret.reset(for: ConnectionID(destination), answering: datagram.count)
        {
            send(packet, remote, local)
        }
    }

    private func send(_ packet: Bytes, _ remote: SocketAddress, _ local: SocketAddress) {
        _ = unsafe packet.withUnsafeBytes {
            unsafe socket.send($0, segmentBytes: $0.count, to: remote, from: local)
        }
    }
}

extension ListenerEndpoint: UDPSocketHandler {
    func received(
        _ datagram: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8
    ) {
        guard unsafe !datagram.isEmpty, unsafe !handOver(datagram, remote, local, ecn) else { return }
        let now = batchNow ?? loop.now()
        batchNow = now
        guard let entry = unsafe find(datagram) ?? accept(datagram, remote, local) else {
            unsafe answerUnknown(datagram, remote, local)
            return
        }
        unsafe entry.connection.receive(datagram, from: remote, to: local, ecn: ecn, now: now)
        updateIDs(entry)
        if !entry.isSettleDue {
            entry.isSettleDue = true
            unsettled.append(entry)
        }
    }

    private func find(_ datagram: UnsafeRawBufferPointer) -> Entry? {
        let id: ConnectionID
        if unsafe datagram[0] & 0x80 == 0 {
            guard datagram.count > ConnectionID.length else { return nil }
            id = unsafe ConnectionID(UnsafeRawBufferPointer(rebasing: datagram[1...ConnectionID.length]))
        } else {
            // RFC 8999 §5.1: version, then the length of the destination's id and the id.
            guard datagram.count > 6 else { return nil }
            let length = unsafe Int(datagram[5])
            guard length <= 20, datagram.count >= 6 + length else { return nil }
            id = unsafe ConnectionID(UnsafeRawBufferPointer(rebasing: datagram[6..<6 + length]))
        }
        if let recent, recent.id == id { return recent.entry }
        guard let entry = byID[id] else { return nil }
        recent = (id, entry)
        return entry
    }

    /// A client that has moved comes from other addresses, by which the kernel may choose another loop's socket: the first
    /// byte of the connection's id says where it is at home.
    private func handOver(
        _ datagram: UnsafeRawBufferPointer, _ remote: SocketAddress, _ local: SocketAddress, _ ecn: UInt8
    ) -> Bool {
        guard let shards, datagram.count > ConnectionID.length, unsafe datagram[0] & 0x80 == 0 else { return false }
        let home = unsafe datagram[1]
        guard home != shardNumber, home < shards.count else { return false }
        let stray = unsafe ListenerShards.Stray(
            bytes: Bytes(copying: datagram), remote: remote, local: local, ecn: ecn)
        strays[home, default: []].append(stray)
        return true
    }

    /// Takes what came to the socket of another loop.
    func take(_ strays: [ListenerShards.Stray]) {
        for stray in strays {
            unsafe stray.bytes.withUnsafeBytes {
                unsafe received($0, from: stray.remote, to: stray.local, ecn: stray.ecn)
            }
        }
        receivedAll()
    }

    func receivedAll() {
        let now = batchNow ?? loop.now()
        batchNow = nil
        if let shards, !strays.isEmpty {
            for (home, strays) in strays {
                metrics.add(strays.count, to: "quic.datagrams.handedOver")
                shards.give(strays, to: home)
            }
            strays = [:]
        }
        let entries = unsettled
        unsettled.removeAll(keepingCapacity: true)
        for entry in entries {
            settle(entry, now)
            schedule(entry)
        }
    }

    func writable() {
        while let (bytes, batch) = backlog.first {
            switch unsafe bytes.withUnsafeBytes({ unsafe send($0, batch) }) {
            case .sent, .failed:
                backlog.removeFirst()
            case .blocked(let sent):
                backlog[0].bytes = bytes.dropFirst(sent)
                return
            }
        }
        flush()
    }

    func failed(_ error: TransportError) {
        // A shared socket is never failed by one peer.
    }
}

extension ListenerEndpoint: QUICConnectionOwner {
    func connectionWantsToSend(_ connection: QUICConnection) {
        if let entry = entry(of: connection) { schedule(entry) }
    }

    func connectionHandshakeDone(_ connection: QUICConnection) {
        guard let entry = entry(of: connection) else { return }
        prove(entry)
        connection.countHandshake(in: metrics)
        log.debug("QUIC from \(entry.remote) is open\(connection.handshakeInWords); live connections: \(entries.count)")
        if let target = entry.earlyTarget {
            entry.earlyTarget = nil
            if connection.verdict == nil { self.connection(connection, asksFor: target) }
        }
    }

    func connection(_ connection: QUICConnection, asksFor target: Target) {
        guard let entry = entry(of: connection) else { return }
        entry.targetDeadline = nil
        guard connection.isEstablished || options.answersEarly(target) else {
            entry.earlyTarget = target
            return
        }
        let now = loop.now()
        guard !isClosed else {
            connection.close(.goingAway, reason: "the listener closed", now)
            return
        }
        switch options.route(target) {
        case .accept:
            let socket = QUICSocket(
                connection, on: loop,
                info: connection.info(target: target, local: entry.local, remote: entry.remote))
            accepted.put(socket)
        case .refuse(let code):
            connection.close(code, reason: code.name ?? "", now)
        }
    }

    func connectionEnded(_ connection: QUICConnection, with close: Close) {
        guard let entry = entry(of: connection) else { return }
        log.debug("QUIC from \(entry.remote) ended: \(close); live connections: \(entries.count)")
        schedule(entry)
    }
}

/// How many answers a listener gives to packets of no connection, so that nobody can use it to flood others.
struct AnswerBudget {
    private static let perSecond = 200
    private var left = perSecond
    private var since: Instant?

    /// Takes one answer out of the budget; false where it is used up.
    mutating func take(_ now: Instant) -> Bool {
        if since.map({ now - $0 >= .seconds(1) }) ?? true {
            since = now
            left = Self.perSecond
        }
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
