public import TransportKit

/// Seals everything to one peer, end to end, over any carrier: `Noise_IK_25519_ChaChaPoly_SHA256` (R62).
///
/// `open()` writes message 1, opens a session of the carrier below with it as first flight, reads message 2, and returns a
/// socket whose messages are sealed. Before that there is no socket, so nothing can be sent in the clear (R71). A peer that
/// does not answer in time is asked again on the same socket, with new keys and after a pause with full jitter; `open` goes on
/// meanwhile, and the state says what it waits for (R72). It throws when the socket below ends, and when its task is cancelled.
///
/// A session ends with the socket below it (R70). Any number of them may be open at once, as far as the carrier below allows.
public actor NoiseCarrier: Carrier {
    /// One call of `open`.
    private final class Opening {
        var attempts: HandshakeAttempts
        let changed = Signal()

        init(_ attempts: consuming HandshakeAttempts) {
            self.attempts = attempts
        }
    }

    private nonisolated let inner: any Carrier
    private nonisolated let key: StaticPrivateKey
    private nonisolated let peer: StaticPublicKey
    private nonisolated let settings: NoiseSettings
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let time: any TimeSource
    private nonisolated let log: Log
    private nonisolated let metrics: any MetricsSink
    private nonisolated let random: @Sendable () -> Double
    private nonisolated let state = NoiseState()

    private var openings: [ObjectIdentifier: Opening] = [:]
    private var isAfterWake = false
    private var closed: Close?

    /// Makes a carrier over another; nothing is opened.
    ///
    /// - Parameters:
    ///   - inner: what carries the sealed messages.
    ///   - key: who this end is.
    ///   - peer: who must answer.
    ///   - settings: what both ends agree on, and how long this one waits.
    ///   - executor: where its handshakes run, best the loop of the carrier below.
    ///   - time: the clock of its deadlines.
    ///   - log: hears of handshakes that nobody answered.
    ///   - metrics: hears how many sessions there are, and how many messages belonged to none.
    ///   - random: a number from 0 up to, but not including, 1; each pause asks for one.
    public init(
        over inner: any Carrier, key: StaticPrivateKey, peer: StaticPublicKey,
        settings: NoiseSettings = NoiseSettings(), executor: any SerialExecutor & TaskExecutor, time: any TimeSource,
        log: Log = Log(), metrics: any MetricsSink = NoMetrics(),
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.inner = inner
        self.key = key
        self.peer = peer
        self.settings = settings
        self.executor = executor
        self.time = time
        self.log = log
        self.metrics = metrics
        self.random = random
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// Those of the carrier below, without streams, text and early data.
    public nonisolated var capabilities: Capabilities { NoiseSocket.capabilities(over: inner.capabilities) }

    /// End to end.
    public nonisolated var protection: Protection { .endToEnd }

    /// Its state.
    public nonisolated var states: CarrierStates { state.source.states }

    /// Opens a session. The first flight is its first message and goes the moment the handshake is done (R83): what rides in
    /// message 1 can be sent again by whoever recorded it.
    public func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        if let closed { throw closed }
        let opening = Opening(
            try checked { () throws(NoiseError) in
                try HandshakeAttempts(key: key, peer: peer, settings: settings)
            })
        let id = ObjectIdentifier(opening)
        openings[id] = opening
        state.beginOpening()
        defer {
            openings[id] = nil
            state.endOpening()
        }
        let below = try await inner.open(firstFlight: opening.attempts.message1)
        do throws(Close) {
            let socket = try await shakeHands(opening, on: below)
            if let firstFlight { try await socket.send(Message(firstFlight)) }
            state.add(socket, path: path(of: below))
            return socket
        } catch {
            letGo(below, after: error)
            throw error
        }
    }

    /// Wakes the carrier below, and lets no handshake pause (R61, R72).
    public func wake() async {
        isAfterWake = true
        for opening in openings.values {
            // A key that was of use when the handshake began still is.
            try? opening.attempts.woken(now: time.now())
            opening.changed.signal()
        }
        await inner.wake()
    }

    /// Ends its handshakes, its sessions after what they have accepted, and the carrier below.
    public func close(_ code: CloseCode, reason: String) async {
        let close = closed ?? Close(code, reason: reason, origin: .local)
        closed = close
        for opening in openings.values { opening.changed.signal() }
        await withDiscardingTaskGroup { group in
            for socket in state.sockets { group.addTask { _ = await socket.close(close.code, reason: close.reason) } }
        }
        await inner.close(close.code, reason: close.reason)
        state.source.set(.closed(close))
    }

    // MARK: - The handshake

    private func shakeHands(_ opening: Opening, on socket: any Socket) async throws(Close) -> NoiseSocket {
        // The first message 1 went as the first flight.
        sent(opening)
        while true {
            if let closed { throw closed }
            try checked { () throws(NoiseError) in try opening.attempts.passed(now: time.now(), random: random) }
            if opening.attempts.mustSend {
                // R72: on the standing socket.
                try await socket.send(Message(opening.attempts.message1))
                sent(opening)
                state.source.set(.connecting(attempt: opening.attempts.count))
                continue
            }
            if let pause = opening.attempts.pause { show(pause) }
            guard let deadline = opening.attempts.deadline else {
                preconditionFailure("a handshake that is not done waits until then or sends")
            }
            switch await Arrival.next(
                on: socket, until: deadline, or: opening.changed, time: time, executor: executor)
            {
            case .messages(let batch):
                if let sealed = finish(opening, with: batch, on: socket) { return sealed }
            case .ended(let close):
                throw close
            case .nothing:
                break
            }
        }
    }

    private func finish(_ opening: Opening, with batch: [Message], on socket: any Socket) -> NoiseSocket? {
        for (index, message) in batch.enumerated() {
            if let session = opening.attempts.received(message.payload) {
                state.sessionBegan()
                return NoiseSocket(
                    session, over: socket, arrived: Array(batch[(index + 1)...]), settings: settings,
                    executor: executor, metrics: metrics, whenOver: { [state] in state.sessionEnded() })
            }
            metrics.add(1, to: "noise.messages.dropped")
        }
        return nil
    }

    private func sent(_ opening: Opening) {
        opening.attempts.sent(now: time.now(), isAfterWake: isAfterWake)
        isAfterWake = false
    }

    private func show(_ pause: Instant) {
        let close = Close(.tooSlow, reason: "the peer did not answer the handshake in time", origin: .local)
        if case .waiting(pause, _) = state.source.latest { return }
        metrics.add(1, to: "noise.handshakes.unanswered")
        log.debug("\(close.reason); the next one begins in \((pause - time.now()).inWords)")
        state.source.set(.waiting(until: pause, after: close))
    }

    private func path(of socket: any Socket) -> CarrierPath {
        let carried = if case .open(let path) = inner.states.latest { path.carrier } else { "" }
        return CarrierPath(
            carrier: carried, transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)
    }

    /// Closes the socket below a handshake that came to nothing, without waiting for its peer.
    private func letGo(_ socket: any Socket, after close: Close) {
        let (code, reason) =
            close.origin == .cancellation ? (.normal, "the handshake was given up") : (close.code, close.reason)
        Task(executorPreference: executor) { _ = await socket.close(code, reason: reason) }
    }

    private func checked<Value: ~Copyable>(_ body: () throws(NoiseError) -> Value) throws(Close) -> Value {
        do throws(NoiseError) {
            return try body()
        } catch {
            let reason = "no handshake with \(peer): \(error)"
            throw Close(.policy, reason: reason, origin: .local, cause: TransportError(.misuse, reason))
        }
    }
}
