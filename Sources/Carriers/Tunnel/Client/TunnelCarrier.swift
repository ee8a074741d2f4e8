internal import NoiseCarrier
public import TransportKit

/// Reaches a box through a door that reads none of it: the sessions travel inside of one link to the door.
///
/// It belongs under a `NoiseCarrier`: the first message of a session is message 1 of a handshake with the box, and rides in
/// the first message to the door where the link is not up yet (R77). Until the box has answered, each message that is sent
/// begins the session anew under a number of its own, so that a handshake may be repeated on the standing socket.
///
/// A device has one session with its box: a second `open` ends the first with 4409. Where the door says that the box is not
/// linked or takes no such sessions, `open`, or the socket that waits for an answer, throws 4404 with the cause
/// `TransportError.Code.unsupported`: another carrier is to be tried at once (R91). After a session that the box has ended
/// `open` waits by itself (R81). The link stays up between sessions; closing a session leaves it (R86).
public actor TunnelCarrier: Carrier {
    private struct WeakSocket {
        weak var socket: TunnelSocket?
    }

    private nonisolated let inner: any Carrier
    private nonisolated let settings: TunnelSettings
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let time: any TimeSource
    private nonisolated let log: Log
    private nonisolated let metrics: any MetricsSink
    private nonisolated let random: @Sendable () -> Double
    private nonisolated let source = CarrierStateSource()

    private var pace: TunnelPace
    private var connection: DoorConnection?
    private var live: [WeakSocket] = []
    private var keyIndex = 0
    private var opens: UInt64 = 0
    private var waiting: [Signal] = []
    private var closed: Close?

    /// Makes a carrier; nothing is dialled.
    ///
    /// - Parameters:
    ///   - inner: what reaches the door, at its target for clients.
    ///   - settings: who the client is, and how it behaves.
    ///   - executor: where it works, best the loop of the carrier below.
    ///   - time: the clock of its waits.
    ///   - log: hears of the door and the box.
    ///   - metrics: hears how many messages were dropped.
    ///   - random: a number from 0 up to, but not including, 1; each wait asks for one.
    public init(
        through inner: any Carrier, settings: TunnelSettings, executor: any SerialExecutor & TaskExecutor,
        time: any TimeSource, log: Log = Log(), metrics: any MetricsSink = NoMetrics(),
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        precondition(!settings.doorKeys.isEmpty, "a door has a key")
        self.inner = inner
        self.settings = settings
        self.executor = executor
        self.time = time
        self.log = log
        self.metrics = metrics
        self.random = random
        pace = TunnelPace(settings.backoff)
    }

    deinit {
        guard let connection else { return }
        Task(executorPreference: executor) { await connection.endOnceUnused() }
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// Datagrams where the carrier below has them.
    public nonisolated var capabilities: Capabilities { inner.capabilities.intersection(.datagrams) }

    /// That of the carrier below, which ends at the door.
    public nonisolated var protection: Protection { inner.protection }

    /// Its state.
    public nonisolated var states: CarrierStates { source.states }

    /// Opens a session, and returns as soon as its first message is on its way.
    public func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        if let closed { throw closed }
        if let first = firstFlight, !(1...DoorLimits.firstPayload).contains(first.count) {
            let reason = "the first message of a session has 1 to \(DoorLimits.firstPayload) bytes"
            throw Close(.tooBig, reason: reason, origin: .local)
        }
        opens += 1
        let order = opens
        for held in live { await held.socket?.displace() }
        live = []
        try await waitForPace()
        if let closed { throw closed }
        guard order == opens else { throw TunnelSocket.displaced }
        source.set(.connecting(attempt: pace.attempts + 1))
        do throws(Close) {
            let socket = try await begin(firstFlight)
            if let closed { throw closed }
            // A later call may have come while this one waited for the link.
            guard order == opens else {
                await socket.displace()
                throw TunnelSocket.displaced
            }
            live = [WeakSocket(socket: socket)]
            source.set(
                .open(
                    CarrierPath(
                        carrier: "tunnel", transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)))
            return socket
        } catch {
            if order == opens { source.set(closed.map { .closed($0) } ?? .idle) }
            throw error
        }
    }

    /// Ends the link to the door, which is dialled afresh by the next `open`, and lets nobody wait (R85).
    public func wake() async {
        pace.woken()
        for signal in waiting { signal.signal() }
        await inner.wake()
        let old = connection
        connection = nil
        settle()
        await old?.stop(.pathLost(TransportError(.pathReset, "the network is back or has changed")))
    }

    /// Ends its sessions at the box and the link to the door, and the carrier below.
    public func close(_ code: CloseCode, reason: String) async {
        let close = closed ?? Close(code, reason: reason, origin: .local)
        closed = close
        for signal in waiting { signal.signal() }
        for held in live { await held.socket?.close(close.code, reason: close.reason) }
        await connection?.stop(close)
        await inner.close(close.code, reason: close.reason)
        source.set(.closed(close))
    }

    // MARK: - Opening

    /// R81: a session that the other end has ended early is not followed by another at once.
    private func waitForPace() async throws(Close) {
        let signal = Signal()
        waiting.append(signal)
        defer { waiting.removeAll { $0 === signal } }
        while let until = pace.until, let reason = pace.reason, time.now() < until, closed == nil {
            source.set(.waiting(until: until, after: reason))
            let timer = Task(executorPreference: executor) { [time] in
                try? await time.sleep(until: until)
                signal.signal()
            }
            defer { timer.cancel() }
            guard await signal.wait() else {
                source.set(.idle)
                throw .cancelled
            }
        }
    }

    private func begin(_ first: Bytes?) async throws(Close) -> TunnelSocket {
        let session = TunnelSessionID.random()
        if let connection {
            return try await connection.open(session, first: first, isAboard: false)
        }
        let connection = try makeConnection(session, first)
        self.connection = connection
        await connection.start()
        return try await connection.open(session, first: first, isAboard: first != nil)
    }

    private func makeConnection(_ session: TunnelSessionID, _ first: Bytes?) throws(Close) -> DoorConnection {
        let hello = ClientHello(
            home: settings.home,
            pair: settings.pairingCode().flatMap { PairingHash(home: settings.home, code: $0) },
            tun: first.map { TunnelFrame(.begin, session: session, payload: $0) }, window: settings.window)
        do throws(NoiseError) {
            let machine = try DoorSession(
                .client(hello), key: settings.key, doorKeys: settings.doorKeys, preferred: keyIndex)
            return DoorConnection(
                machine, through: inner, executor: executor, time: time, metrics: metrics
            ) { [weak self] connection, event in await self?.happened(event, on: connection) }
        } catch {
            let reason = "no handshake with the door: \(error)"
            throw Close(.policy, reason: reason, origin: .local, cause: TransportError(.misuse, reason))
        }
    }

    // MARK: - What happens on the link

    private func happened(_ event: DoorConnection.Event, on connection: DoorConnection) async {
        switch event {
        case .greeted:
            keyIndex = await connection.keyInUse
        case .sessionEnded(_, let close, let carried):
            pace.ended(close, afterCarrying: carried, now: time.now(), random: random)
            settle()
        case .over(let close, let carried):
            guard connection === self.connection else { return }
            self.connection = nil
            log.debug("the link to the door has ended: \(close)")
            if close.origin == .remote { pace.ended(close, afterCarrying: carried, now: time.now(), random: random) }
            settle()
        case .stands, .begun:
            break
        }
    }

    /// Shows that nothing is open any more.
    private func settle() {
        if case .open = source.latest { source.set(.idle) }
    }
}

extension TunnelSocket {
    static let displaced = Close(.displaced, reason: "another session of the device was opened", origin: .local)

    /// Another session takes the place of this one.
    fileprivate func displace() async {
        await connection.abandon(id, Self.displaced)
    }
}
