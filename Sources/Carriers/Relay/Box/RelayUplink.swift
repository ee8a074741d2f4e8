public import NoiseCarrier
public import TransportKit

/// A box on the relay: keeps one uplink in its room, and hands out the sessions that its clients open there (R135, part 2.3).
///
/// ```swift
/// let uplink = try RelayUplink(
///     url: url, secret: secret, key: boxKey, transport: webSocket, executor: loop, time: loop
/// ) { peer, code in roster.admits(peer, code) }
/// await uplink.run { socket, peer in await serve(socket) }
/// ```
///
/// A stranger gets silence and ends nothing. Every session ends with the uplink, and when the last client has left the room.
public actor RelayUplink {
    /// Serves one session until it ends; its task is cancelled where the session has to go.
    public typealias Serve = @Sendable (any Socket, StaticPublicKey) async -> Void

    nonisolated let taskExecutor: any SerialExecutor & TaskExecutor
    private nonisolated let endpoint: Endpoint
    private nonisolated let secret: RelaySecret
    private nonisolated let transport: any Transport
    private nonisolated let options: DialOptions
    private nonisolated let settings: RelayUplinkSettings
    private nonisolated let time: any TimeSource
    private nonisolated let log: Log
    private nonisolated let metrics: any MetricsSink
    private nonisolated let random: @Sendable () -> Double
    private nonisolated let admits: NoiseAcceptor.Admission
    private nonisolated let source = CarrierStateSource()

    private var plan: JoinPlan
    private var room: BoxRoom
    private var sessions: [BoxRoom.ID: Inbox<Message>] = [:]
    /// What serves sessions, those that have ended included, until it has returned.
    private var serving: [BoxRoom.ID: Task<Void, Never>] = [:]
    private var dial: (task: Task<Result<any Socket, Close>, Never>, start: Instant)?
    private var wire: (socket: any Socket, start: Instant, outbox: Outbox<[Message]>)?
    /// Why the wire was dropped from here.
    private var dropped: Close?
    private var pause: Signal?
    private var wakes = 0
    private var isRunning = false
    private var lastLine = ""

    /// Makes an uplink; nothing is opened before ``run(_:)``.
    ///
    /// - Parameters:
    ///   - url: the relay: `wss://` or `ws://`, without path or query.
    ///   - secret: what the box shares with its clients.
    ///   - key: who the box is.
    ///   - transport: the WebSocket; the relay's words need a wire with text.
    ///   - options: how it dials.
    ///   - settings: the rules of the room, and the box's own.
    ///   - executor: where it works, best the loop of the transport.
    ///   - time: the clock of its waits, and of the epochs.
    ///   - log: hears of each change, never of a handle.
    ///   - metrics: hears how many frames were nobody's.
    ///   - random: a number from 0 up to, but not including, 1; each wait asks for one.
    ///   - admits: decides who is let in; called once for each message 1 that is one.
    /// - Throws: where the URL has a path, or the transport has no text.
    public init(
        url: ServiceURL, secret: RelaySecret, key: StaticPrivateKey, transport: any Transport,
        options: DialOptions = DialOptions(), settings: RelayUplinkSettings = RelayUplinkSettings(),
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log = Log(),
        metrics: any MetricsSink = NoMetrics(), random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        admits: @escaping NoiseAcceptor.Admission
    ) throws(TransportError) {
        try RelayDial.check(url, transport)
        endpoint = url.endpoint
        self.secret = secret
        self.transport = transport
        var options = RelayDial.options(options, maxFrameBytes: settings.room.maxFrameBytes)
        options.limits.handshakeTimeout = settings.dialTimeout
        // The relay pings; the box answers, and gives up after three that did not come (R33).
        options.keepalive.interval = nil
        options.keepalive.idleTimeout = settings.readTimeout
        self.options = options
        self.settings = settings
        taskExecutor = executor
        self.time = time
        self.log = log.named("relay")
        self.metrics = metrics
        self.random = random
        self.admits = admits
        plan = JoinPlan(.box, settings: settings.room)
        room = BoxRoom(key: key, prologue: settings.prologue, limit: settings.maxSessions)
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe taskExecutor.asUnownedSerialExecutor() }

    /// Its state: open while it is linked, whoever is in the room.
    public nonisolated var states: CarrierStates { source.states }

    /// How many sessions there are.
    public var sessionCount: Int { sessions.count }

    /// Keeps the uplink until the calling task is cancelled, and then ends every session. A second call while one runs
    /// returns at once.
    ///
    /// - Parameter serve: called once for each session, in a task of its own, any number at once.
    public func run(_ serve: @escaping Serve) async {
        guard !isRunning else { return }
        isRunning = true
        defer { isRunning = false }
        while !Task.isCancelled {
            let wakesBefore = wakes
            source.set(.connecting(attempt: plan.failures + 1))
            let (close, lifetime) = await connect(serve)
            endSessions(with: close)
            if Task.isCancelled { break }
            tell(close)
            let wait = plan.ended(close, after: lifetime, wall: time.wallNow(), random: random)
            guard await rest(wakes == wakesBefore ? wait : .zero, after: close) else { break }
        }
        source.set(.idle)
        for task in serving.values { task.cancel() }
        for task in serving.values { await task.value }
    }

    /// The network is back or has changed: dials afresh, except where a dial is younger than a second (R106).
    public func wake() async {
        plan.woken()
        let now = time.now()
        let start = wire?.start ?? dial?.start
        if let start, now - start < settings.room.youngDial { return }
        wakes += 1
        pause?.signal()
        dial?.task.cancel()
        drop(.pathLost(TransportError(.pathReset, "the network has changed, and the relay is dialled afresh")))
    }

    /// Ends the sessions of a device that is admitted no longer, with the message that was agreed on for it, and cancels
    /// what serves them (R135).
    ///
    /// - Parameter key: the device's.
    public func revoke(_ key: StaticPublicKey) async {
        for id in room.sessions(of: key) {
            if let farewell = settings.terminate { try? await send([Message(farewell)], for: id) }
            end(id, with: Close(.refused, reason: "the device is admitted no longer", origin: .local))
            serving[id]?.cancel()
        }
    }

    // MARK: - The uplink

    /// - Returns: how the uplink ended, and how long it stood.
    private func connect(_ serve: @escaping Serve) async -> (Close, Duration) {
        let epoch = plan.epoch(at: time.wallNow())
        let join = RelayJoin(epoch: epoch, handle: secret.handle(of: epoch, info: settings.room.info), role: .box)
        let (url, options, transport) = (RelayDial.url(endpoint, join), options, transport)
        let task = Task(executorPreference: taskExecutor) { () async -> Result<any Socket, Close> in
            do throws(TransportError) {
                return .success(try await transport.dial(url, options: options))
            } catch {
                return .failure(error.code == .cancelled ? .cancelled : .pathLost(error))
            }
        }
        let start = time.now()
        dial = (task, start)
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        dial = nil
        let socket: any Socket
        switch result {
        case .success(let opened):
            socket = RelayDial.shaped(
                opened, settings.room, secret: secret, limits: options.limits, executor: taskExecutor, time: time)
        case .failure(let close): return (close, .zero)
        }
        let opened = time.now()
        let outbox = Outbox<[Message]>(limit: settings.sendBufferBytes)
        wire = (socket, start, outbox)
        dropped = nil
        source.set(
            .open(
                CarrierPath(
                    carrier: "relay", transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)))
        log.debug("\(endpoint): linked")
        let writing = Task(executorPreference: taskExecutor) { await self.write(to: socket, from: outbox) }
        let end = await read(from: socket, serve)
        outbox.end(end)
        wire = nil
        writing.cancel()
        await writing.value
        if Task.isCancelled {
            // A close in a cancelled task would not wait for the last bytes.
            await Task(executorPreference: taskExecutor) { _ = await socket.close(.goingAway, reason: "the box stops") }
                .value
        }
        return (dropped ?? end, time.now() - opened)
    }

    /// The same again is nothing new.
    private func tell(_ close: Close) {
        let line = "\(endpoint): \("\(close)".printable())"
        if line == lastLine { log.debug(line) } else { log.info(line) }
        lastLine = line
    }

    private func rest(_ duration: Duration, after close: Close) async -> Bool {
        let deadline = time.now() + duration
        source.set(.waiting(until: deadline, after: close))
        let signal = Signal()
        pause = signal
        defer { pause = nil }
        let timer = Task(executorPreference: taskExecutor) { [time] in
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            signal.signal()
        }
        defer { timer.cancel() }
        return await signal.wait()
    }

    /// Lets go of the wire; whoever reads from it finds it ended.
    private func drop(_ close: Close) {
        guard let wire, dropped == nil else { return }
        dropped = close
        // It ends by itself within the linger time.
        Task(executorPreference: taskExecutor) { _ = await wire.socket.close(.normal, reason: "") }
    }

    /// One task writes, so that everything leaves in one order.
    private func write(to socket: any Socket, from outbox: Outbox<[Message]>) async {
        while let batch = await outbox.next() {
            let timer = Task(executorPreference: taskExecutor) { [time, limit = settings.writeTimeout] in
                guard (try? await time.sleep(for: limit)) != nil, !Task.isCancelled else { return }
                let what = "the relay took nothing for \(limit.inWords)"
                await self.drop(.pathLost(TransportError(.timedOut, what)))
            }
            defer { timer.cancel() }
            // How it failed is what whoever reads finds.
            do throws(Close) { try await socket.send(batch.flatMap(\.self)) } catch { return }
        }
    }

    private func read(from socket: any Socket, _ serve: @escaping Serve) async -> Close {
        while true {
            let batch: [Message]
            do throws(Close) { batch = try await socket.receive() } catch { return error }
            for message in batch {
                switch message.format {
                case .text: heard(String(validating: message.payload) ?? "")
                case .binary: await received(message.payload, serve)
                }
            }
        }
    }

    private func heard(_ text: String) {
        switch RelayWire.Word(rawValue: text) {
        case .ready: plan.joined()
        case .gone:
            plan.joined()
            endSessions(with: Close(.nobodyThere, reason: "the clients have left the room", origin: .remote))
        case nil: break
        }
    }

    // MARK: - Sessions

    private func received(_ frame: Bytes, _ serve: @escaping Serve) async {
        plan.delivered()
        if let (id, message) = room.open(frame) { return deliver(message, to: id) }
        guard let answer = room.answer(to: frame) else { return drop(frame) }
        // It is worked out before it is decided whether it is sent, so that a stranger learns nothing from the time it takes.
        guard await admits(answer.peer, answer.payload) else { return drop(frame) }
        guard let wire, dropped == nil else { return }
        let (message2, peer) = (answer.message2, answer.peer)
        let (id, evicted) = room.register(answer)
        for old in evicted {
            end(old, with: Close(.displaced, reason: "a newer session took its place", origin: .local))
            serving[old]?.cancel()
        }
        start(id, peer, over: wire.socket.info, serve)
        try? await wire.outbox.put([Message(message2)], weight: message2.count)
    }

    private func drop(_ frame: Bytes) {
        metrics.add(1, to: "relay.frames.foreign")
        log.debug("\(endpoint): dropped a frame of \(frame.count) bytes that is nobody's")
    }

    private func start(
        _ id: BoxRoom.ID, _ peer: StaticPublicKey, over below: SocketInfo, _ serve: @escaping Serve
    ) {
        var info = below
        info.capabilities = []
        info.protection = .endToEnd
        info.target = .root
        info.maxMessageBytes = min(below.maxMessageBytes, settings.room.maxFrameBytes) - NoiseSession.overhead
        let inbox = Inbox<Message>(limit: settings.receiveBufferBytes)
        sessions[id] = inbox
        metrics.change("relay.sessions", by: 1)
        let socket = BoxSocket(id, info: info, inbox: inbox, uplink: self)
        serving[id] = Task(executorPreference: taskExecutor) {
            await serve(socket, peer)
            _ = await socket.close(.normal, reason: "")
            await self.served(id)
        }
    }

    private func served(_ id: BoxRoom.ID) {
        serving[id] = nil
    }

    private func deliver(_ message: Bytes, to id: BoxRoom.ID) {
        guard let inbox = sessions[id] else { return }
        guard !inbox.isFull else {
            // One that does not read must not hold up the others.
            return end(id, with: Close(.tooSlow, reason: "the session's messages were not taken", origin: .local))
        }
        inbox.put(Message(message), weight: message.count + 64)
    }

    /// Seals messages of a session's and hands them to the one task that writes.
    func send(_ messages: [Message], for id: BoxRoom.ID) async throws(Close) {
        guard let wire else { throw Self.isDown }
        var sealed: [Message] = []
        for message in messages {
            do throws(NoiseError) {
                guard let frame = try room.seal(message.payload, for: id) else { throw NoiseError.closed }
                sealed.append(Message(frame))
            } catch .closed {
                throw Self.isDown
            } catch {
                let close = Close(.internalError, reason: "\(error)", origin: .local)
                end(id, with: close)
                throw close
            }
        }
        try await wire.outbox.put(sealed, weight: sealed.reduce(0) { $0 + $1.payload.count + 64 })
    }

    /// What a session says that has ended is refused with its own end; this stands in where it has none yet.
    private static let isDown = Close.pathLost(TransportError(.pathReset, "the uplink to the relay is down"))

    /// Takes a session out of the room. Its client hears nothing of it: the wire has no word for that.
    func end(_ id: BoxRoom.ID, with close: Close) {
        room.end(id)
        guard let inbox = sessions.removeValue(forKey: id) else { return }
        inbox.end(close)
        metrics.change("relay.sessions", by: -1)
    }

    private func endSessions(with close: Close) {
        for id in room.ids { end(id, with: close) }
    }
}
