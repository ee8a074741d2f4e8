internal import Synchronization
public import TransportKit

/// A socket whose messages only its peer can read: each is sealed on its own and numbered, and opened once.
///
/// It has no streams of its own, which would be in the clear; `MuxCarrier` gives it some. The keys are destroyed as soon as
/// nothing is left to be opened.
public final class NoiseSocket: Socket {
    private struct Sending: ~Copyable {
        var sealer: NoiseSealer
        var turns = SendTurns()
        var signals: [UInt64: Signal] = [:]
    }

    private struct Receiving: ~Copyable {
        var opener: NoiseOpener
        /// What has been opened and not been taken.
        var opened: [Message] = []
        var isTaken = false
        /// Why the session was ended from here.
        var broken: Close?
    }

    /// What the socket is.
    public let info: SocketInfo
    /// Who the other end is.
    public let peer: StaticPublicKey
    /// What travelled in the handshake message that the other end sent.
    public let payload: Bytes
    /// Differs for every session, and is the same at both ends of one.
    public let handshakeHash: Bytes

    private let inner: any Socket
    private let foreignMessages: NoiseSettings.ForeignMessages
    private let executor: any SerialExecutor & TaskExecutor
    private let metrics: any MetricsSink
    private let whenOver: @Sendable () -> Void
    private let isOver = Mutex(false)
    private let sending: Mutex<Sending>
    private let receiving: Mutex<Receiving>

    /// - Parameters:
    ///   - arrived: what came in one batch with the end of the handshake.
    ///   - whenOver: called once, when the session has ended or nobody holds it any more.
    init(
        _ session: consuming NoiseSession, over inner: any Socket, arrived: [Message], settings: NoiseSettings,
        executor: any SerialExecutor & TaskExecutor, metrics: any MetricsSink,
        whenOver: @escaping @Sendable () -> Void = {}
    ) {
        self.inner = inner
        self.executor = executor
        self.metrics = metrics
        self.whenOver = whenOver
        // Trial decryption belongs to a path that several sessions share, and what is sealed is nobody else's.
        foreignMessages = inner.info.isShared ? .areDropped : settings.foreignMessages
        info = Self.info(over: inner.info)
        peer = session.peer
        payload = session.payload
        handshakeHash = session.handshakeHash
        sending = Mutex(Sending(sealer: session.sealer))
        receiving = Mutex(Receiving(opener: session.opener))
        metrics.change("noise.sessions", by: 1)
        open(arrived)
    }

    deinit {
        over()
    }

    private static func info(over inner: SocketInfo) -> SocketInfo {
        var info = inner
        info.capabilities = capabilities(over: inner.capabilities)
        info.protection = .endToEnd
        info.isShared = false
        info.maxMessageBytes = max(0, inner.maxMessageBytes - NoiseSession.overhead)
        return info
    }

    /// Streams and text would be in the clear, and what is said early is message 1 alone.
    static func capabilities(over inner: Capabilities) -> Capabilities {
        inner.subtracting([.streams, .text, .earlyData])
    }

    // MARK: - Sending

    /// Seals messages and sends them in the order given.
    public func send(_ messages: [Message]) async throws(Close) {
        for message in messages {
            guard message.format == .binary else { throw .misuse("a sealed session has no text messages") }
            guard message.payload.count <= info.maxMessageBytes else {
                throw Close(
                    .tooBig,
                    reason: "a message has \(message.payload.count) bytes, \(info.maxMessageBytes) are allowed",
                    origin: .local)
            }
        }
        if let broken = receiving.withLock({ $0.broken }) { throw broken }
        guard !messages.isEmpty else { return try await inner.send([]) }
        let signal = Signal()
        let (id, isTurn) = sending.withLock { sending in
            let (batch, isTurn) = sending.turns.enter(lanes(of: messages), count: messages.count)
            if !isTurn { sending.signals[batch.id] = signal }
            return (batch.id, isTurn)
        }
        defer { leave(id) }
        if !isTurn {
            guard await signal.wait() else { throw .cancelled }
        }
        let sealed = try await seal(messages)
        do throws(Close) {
            try await inner.send(sealed)
        } catch {
            // A refused call ends nothing. What has arrived is still to be opened, so the other key stays.
            if error.endsTheSocket, error.code != .tooBig { sending.withLock { $0.sealer.close() } }
            throw error
        }
    }

    /// Seals the messages of a batch whose turn it is.
    private func seal(_ messages: [Message]) async throws(Close) -> [Message] {
        let result = sending.withLock { sending -> Result<[Message], NoiseError> in
            var sealed: [Message] = []
            sealed.reserveCapacity(messages.count)
            for message in messages {
                do throws(NoiseError) {
                    let payload = try sending.sealer.seal(message.payload)
                    sealed.append(Message(payload, delivery: message.delivery))
                } catch {
                    return .failure(error)
                }
            }
            return .success(sealed)
        }
        switch result {
        case .success(let sealed):
            return sealed
        case .failure(.closed):
            // The socket below has ended, and knows how.
            throw await close(.normal, reason: "")
        case .failure(let error):
            throw end(.internalError, because: error)
        }
    }

    private func lanes(of messages: [Message]) -> SendTurns.Lanes {
        messages.reduce(into: []) { lanes, message in
            switch message.delivery {
            case .control: lanes.insert(.control)
            case .bulk: lanes.insert(.bulk)
            case .unreliable: lanes.insert(info.capabilities.contains(.datagrams) ? .unreliable : .control)
            }
        }
    }

    private func leave(_ id: UInt64) {
        let next = sending.withLock { sending in
            sending.signals[id] = nil
            return sending.turns.leave(id).compactMap { sending.signals.removeValue(forKey: $0) }
        }
        for signal in next { signal.signal() }
    }

    // MARK: - Receiving

    /// Waits for messages of the peer's and opens them.
    public func receive() async throws(Close) -> [Message] {
        let mayTake = receiving.withLock { receiving in
            defer { receiving.isTaken = true }
            return !receiving.isTaken
        }
        guard mayTake else { throw .misuse("another task receives already") }
        defer { receiving.withLock { $0.isTaken = false } }
        while true {
            let (opened, broken) = receiving.withLock { receiving in
                defer { receiving.opened = [] }
                return (receiving.opened, receiving.broken)
            }
            if !opened.isEmpty { return opened }
            if let broken { throw broken }
            do throws(Close) {
                open(try await inner.receive())
            } catch {
                guard error.endsTheSocket else { throw error }
                destroyKeys()
                throw receiving.withLock { $0.broken } ?? error
            }
        }
    }

    /// Waits until a message of the peer's has been opened, and leaves it to ``receive()``: a handshake can be recorded and sent
    /// again, and this proves that the peer is there.
    package func waitForProof() async throws(Close) {
        let messages = try await receive()
        receiving.withLock { $0.opened = messages + $0.opened }
    }

    /// Opens what has arrived, up to the first message that ends the session.
    private func open(_ batch: consuming [Message]) {
        var batch = consume batch
        var dropped = 0
        let failure = receiving.withLock { receiving -> NoiseError? in
            guard receiving.broken == nil else { return nil }
            receiving.opened.reserveCapacity(batch.count)
            for index in batch.indices {
                let delivery = batch[index].delivery
                // Taken out, so that it can be opened in place where nobody else holds it.
                var payload = Bytes()
                swap(&payload, &batch[index].payload)
                do throws(NoiseError) {
                    receiving.opened.append(Message(try receiving.opener.open(consume payload), delivery: delivery))
                } catch .closed {
                    return nil
                } catch {
                    // R65: what came as a datagram is one that is lost.
                    guard delivery != .unreliable, foreignMessages == .endTheSession else {
                        dropped += 1
                        continue
                    }
                    return error
                }
            }
            return nil
        }
        if dropped > 0 { metrics.add(dropped, to: "noise.messages.dropped") }
        if let failure { end(.protocolError, because: failure) }
    }

    // MARK: - The end

    /// Always misuse: a stream would be in the clear.
    public func openStream() async throws(Close) -> any Stream {
        throw .misuse("a sealed session has no streams of its own")
    }

    /// Always misuse: a stream would be in the clear.
    public func acceptStream() async throws(Close) -> any Stream {
        throw .misuse("a sealed session has no streams of its own")
    }

    /// Ends the socket after what it has accepted, and destroys its keys.
    @discardableResult
    public func close(_ code: CloseCode, reason: String) async -> Close {
        let close = await inner.close(code, reason: reason)
        let mayTake = receiving.withLock { receiving in
            defer { receiving.isTaken = true }
            return !receiving.isTaken
        }
        // A task that receives opens what is left by itself.
        if mayTake {
            while let batch = try? await inner.receive() { open(batch) }
            receiving.withLock { $0.isTaken = false }
            destroyKeys()
        }
        return receiving.withLock { $0.broken } ?? close
    }

    /// Ends the session because of what the peer or this end did; only the first reason counts.
    @discardableResult
    private func end(_ code: CloseCode, because error: NoiseError) -> Close {
        let close = Close(code, reason: "\(error)", origin: .local)
        let (broken, isFirst) = receiving.withLock { receiving in
            defer { receiving.broken = receiving.broken ?? close }
            return (receiving.broken ?? close, receiving.broken == nil)
        }
        destroyKeys()
        if isFirst {
            // It ends by itself within the linger time, and a cancelled caller must not keep the peer from hearing of it.
            Task(executorPreference: executor) { [inner] in _ = await inner.close(code, reason: close.reason) }
        }
        return broken
    }

    private func destroyKeys() {
        sending.withLock { $0.sealer.close() }
        receiving.withLock { $0.opener.close() }
        over()
    }

    private func over() {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        guard isFirst else { return }
        metrics.change("noise.sessions", by: -1)
        whenOver()
    }
}

extension NoiseSocket: PathAwareSocket {
    private var pathAware: (any PathAwareSocket)? { inner as? any PathAwareSocket }

    /// Whether the socket below has left the path on which it was dialled.
    public var hasMigrated: Bool { pathAware?.hasMigrated ?? false }

    /// The address of this machine that the socket below stands on.
    public var localAddress: SocketAddress? { pathAware?.localAddress ?? info.localAddress }

    /// Asks the peer of the socket below for a sign of life.
    public func checkPath(within limit: Duration) async -> Bool {
        await pathAware?.checkPath(within: limit) ?? false
    }
}

extension Close {
    /// Whether a call that throws it has found the socket ended: a call that was cancelled or not allowed ends nothing.
    var endsTheSocket: Bool {
        switch origin {
        case .remote, .path: true
        case .local: cause == nil
        case .cancellation: false
        }
    }
}
