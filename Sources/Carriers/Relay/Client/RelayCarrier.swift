internal import Synchronization
public import TransportKit

/// Reaches a box through a blind relay: both join a room whose name changes by the hour and follows from a secret that the
/// relay does not know (R96).
///
/// A session begins when the box is in the room and not before (R101); until then `open` waits. It ends when the box leaves
/// the room, and the socket to the relay stays for the next one. Frames reach every client in the room, so `NoiseCarrier`
/// belongs on top, which drops what is not its own. A failed attempt throws, and the next `open` waits until the backoff
/// lets it dial; a busy relay is the code 4429 (R98). One session may be open at a time.
public actor RelayCarrier: Carrier {
    /// One call of `open`.
    private final class Opening {
        var outcome: Result<RelaySocket, Close>?
        let settled = Signal()

        func settle(_ result: Result<RelaySocket, Close>) {
            guard outcome == nil else { return }
            outcome = result
            settled.signal()
        }
    }

    private nonisolated let endpoint: Endpoint
    private nonisolated let secret: RelaySecret
    private nonisolated let transport: any Transport
    private nonisolated let options: DialOptions
    private nonisolated let settings: RelaySettings
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let time: any TimeSource
    private nonisolated let log: Log
    private nonisolated let random: @Sendable () -> Double
    private nonisolated let source = CarrierStateSource()
    private nonisolated let measured = Mutex<Duration?>(nil)

    private var machine: RelayClient
    /// Tells the dial and the socket that count from older ones.
    private var generation: UInt64 = 0
    private var dialing: Task<Void, Never>?
    private var reading: Task<Void, Never>?
    private var wire: (any Socket)?
    private var line: RelayLine?
    private var opening: Opening?
    private var timer: (task: Task<Void, Never>, deadline: Instant)?
    private var closed: Close?

    /// Makes a carrier; nothing is opened.
    ///
    /// - Parameters:
    ///   - url: the relay: `wss://` or `ws://`, without path or query.
    ///   - secret: what this end shares with the box.
    ///   - transport: the WebSocket; the relay's words need a wire with text.
    ///   - options: how it dials.
    ///   - settings: the rules of the room.
    ///   - executor: where it works, best the loop of the transport.
    ///   - time: the clock of its waits, and of the epochs.
    ///   - log: hears of each change, never of a handle.
    ///   - random: a number from 0 up to, but not including, 1; each wait asks for one.
    /// - Throws: where the URL has a path, or the transport has no text.
    public init(
        url: ServiceURL, secret: RelaySecret, transport: any Transport, options: DialOptions = DialOptions(),
        settings: RelaySettings = RelaySettings(), executor: any SerialExecutor & TaskExecutor,
        time: any TimeSource, log: Log = Log(), random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) throws(TransportError) {
        try RelayDial.check(url, transport)
        endpoint = url.endpoint
        self.secret = secret
        self.transport = transport
        self.options = RelayDial.options(options, maxFrameBytes: settings.maxFrameBytes)
        self.settings = settings
        self.executor = executor
        self.time = time
        self.log = log.named("relay")
        self.random = random
        machine = RelayClient(settings)
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// Messages and nothing else.
    public nonisolated var capabilities: Capabilities { [] }

    /// That of the way to the relay, which sees every frame.
    public nonisolated var protection: Protection { transport.protection(of: endpoint) }

    /// Its state.
    public nonisolated var states: CarrierStates { source.states }

    /// How long the way to the relay and back took on the last dial. It says nothing about the box, nor how fresh a frame
    /// is (R107).
    public nonisolated var roundTrip: Duration? { measured.withLock { $0 } }

    /// Waits until the peer is in the room.
    public func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        if let closed { throw closed }
        displace()
        let opening = Opening()
        self.opening = opening
        perform(machine.wanted(now: time.now(), wall: time.wallNow()))
        let isSettled = opening.outcome == nil ? await opening.settled.wait() : true
        if self.opening === opening { self.opening = nil }
        guard isSettled else {
            if case .success(let socket) = opening.outcome {
                await ended(socket.line, with: .cancelled, Close(.normal, origin: .local))
            } else if self.opening == nil, line == nil, opening.outcome == nil {
                perform(machine.unwanted())
            }
            throw .cancelled
        }
        guard let outcome = opening.outcome else { preconditionFailure("the signal is given with the outcome") }
        let socket = try outcome.get()
        if let firstFlight { try await socket.send(Message(firstFlight)) }
        return socket
    }

    /// Drops what looks open and dials afresh, except where a dial is younger than a second (R106).
    public func wake() async {
        guard closed == nil else { return }
        perform(machine.woken(now: time.now(), wall: time.wallNow()))
    }

    /// Ends the carrier, its session and its socket.
    public func close(_ code: CloseCode, reason: String) async {
        let close = closed ?? Close(code, reason: reason, origin: .local)
        closed = close
        perform([.end(close), .fail(close)])
        let (wire, dialing, reading) = (wire, dialing, reading)
        self.wire = nil
        perform(machine.unwanted())
        await wire?.close(close.code, reason: close.reason)
        await dialing?.value
        await reading?.value
        source.set(.closed(close))
    }

    /// Ends what another call of `open` has, or waits for.
    private func displace() {
        let close = Close(.displaced, reason: "another session was opened on the carrier", origin: .local)
        if line != nil { perform([.end(close)]) }
        opening?.settle(.failure(close))
    }

    // MARK: - What the machine says

    private func perform(_ actions: [RelayClient.Action]) {
        for action in actions {
            switch action {
            case .dial(let epoch): dial(epoch)
            case .hangUp: hangUp()
            case .ready: begin()
            case .end(let close):
                line?.inbox.end(close)
                line = nil
            case .fail(let close):
                log.debug("\(endpoint): \("\(close)".printable())")
                opening?.settle(.failure(close))
            }
        }
        show()
        arm()
    }

    private func dial(_ epoch: Int64) {
        generation += 1
        let join = RelayJoin(epoch: epoch, handle: secret.handle(of: epoch, info: settings.info), role: .app)
        let url = RelayDial.url(endpoint, join)
        var options = options
        let (told, time, start) = (options.progress, time, time.now())
        options.progress = { [weak self] progress in
            // One round trip after the packet that opens the connection.
            if case .connected = progress { self?.measured.withLock { $0 = time.now() - start } }
            told?(progress)
        }
        let (generation, chosen, transport) = (generation, options, transport)
        dialing = Task(executorPreference: executor) {
            do throws(TransportError) {
                let socket = try await transport.dial(url, options: chosen)
                await self.opened(socket, generation)
            } catch {
                await self.ended(error.code == .cancelled ? .cancelled : .pathLost(error), generation)
            }
        }
    }

    private func hangUp() {
        generation += 1
        dialing?.cancel()
        dialing = nil
        if let wire { closeLater(wire) }
        wire = nil
        reading = nil
    }

    private func begin() {
        guard let wire, let opening else { return }
        let line = RelayLine(over: wire, limits: options.limits, maxFrameBytes: settings.maxFrameBytes)
        self.line = line
        opening.settle(
            .success(
                RelaySocket(line, executor: executor) { [weak self] line, close in
                    await self?.ended(line, with: close, close)
                }))
    }

    private func show() {
        if closed != nil { return }
        if let line {
            source.set(
                .open(
                    CarrierPath(
                        carrier: "relay", transport: line.info.transport, remoteAddress: line.info.remoteAddress)))
        } else if let pause = machine.pause {
            source.set(.waiting(until: pause.until, after: pause.after))
        } else {
            source.set(opening == nil ? .idle : .connecting(attempt: machine.failures + 1))
        }
    }

    private func arm() {
        let deadline = closed == nil ? machine.deadline : nil
        guard deadline != timer?.deadline else { return }
        timer?.task.cancel()
        timer = nil
        guard let deadline else { return }
        let task = Task(executorPreference: executor) { [weak self, time] in
            guard (try? await time.sleep(until: deadline)) != nil, !Task.isCancelled else { return }
            await self?.timeUp()
        }
        timer = (task, deadline)
    }

    private func timeUp() {
        timer = nil
        perform(machine.passed(now: time.now(), wall: time.wallNow()))
    }

    // MARK: - What the wire says

    private func opened(_ socket: any Socket, _ generation: UInt64) {
        guard generation == self.generation, closed == nil else { return closeLater(socket) }
        dialing = nil
        let socket = RelayDial.shaped(
            socket, settings, secret: secret, limits: options.limits, executor: executor, time: time)
        wire = socket
        machine.opened()
        reading = Task(executorPreference: executor) { await self.read(socket, generation) }
    }

    private func read(_ socket: any Socket, _ generation: UInt64) async {
        while true {
            let batch: [Message]
            do throws(Close) { batch = try await socket.receive() } catch { return ended(error, generation) }
            guard generation == self.generation else { return }
            for message in batch { received(message) }
            // Who does not read slows the relay down, which ends the socket where that goes too far.
            _ = await line?.inbox.waitForRoom()
        }
    }

    private func received(_ message: Message) {
        switch message.format {
        case .text:
            perform(machine.heard(String(validating: message.payload) ?? ""))
        case .binary:
            // What the box says to others before a session has begun here is nobody's (R74).
            guard let line else { return }
            line.received(message)
            machine.delivered()
        }
    }

    /// The dial has failed, or the socket has ended.
    private func ended(_ close: Close, _ generation: UInt64) {
        guard generation == self.generation else { return }
        dialing = nil
        reading = nil
        wire = nil
        let random = random
        perform(machine.ended(close, now: time.now(), wall: time.wallNow(), random: random))
    }

    /// A session was closed from above, and with it the way to the relay.
    private func ended(_ line: RelayLine, with end: Close, _ close: Close) async {
        line.inbox.end(end)
        guard self.line === line else { return }
        self.line = nil
        let wire = wire
        self.wire = nil
        perform(machine.unwanted())
        _ = await wire?.close(close.code, reason: close.reason)
    }

    /// Closes a socket without waiting for its peer; the close ends by itself, within the linger time.
    private func closeLater(_ socket: any Socket) {
        Task(executorPreference: executor) { _ = await socket.close(.normal, reason: "") }
    }
}
