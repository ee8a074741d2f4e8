public import NoiseCarrier
public import TransportKit

/// Keeps a box linked to a door, and answers the devices that come through it.
///
/// A device gets an answer only if the admission lets it in; anybody else hears nothing (R133). A device has one session: it
/// takes its place with the first message that only its owner can have made, and the session that was there ends (R134).
/// Use one uplink for one box; a second one with the same key displaces it at the door.
public actor BoxUplink {
    enum Phase {
        /// There is no link. The roster of the next will say everything.
        case apart
        case linking
        /// The door has answered.
        case greeted
        /// The home is served.
        case standing
    }

    private nonisolated let carrier: any Carrier
    private nonisolated let key: StaticPrivateKey
    private nonisolated let doorKeys: [StaticPublicKey]
    private nonisolated let settings: BoxSettings
    private nonisolated let admission: any BoxAdmission
    private nonisolated let executor: any SerialExecutor & TaskExecutor
    private nonisolated let time: any TimeSource
    private nonisolated let log: Log
    private nonisolated let metrics: any MetricsSink
    private nonisolated let random: @Sendable () -> Double
    private nonisolated let source = CarrierStateSource()

    /// Ends the pause before the next dial.
    private var pausing: Signal?
    private var backoff: Backoff
    private var keyIndex = 0
    private var connection: DoorConnection?
    private var phase = Phase.apart
    /// What is to be said once the home is served: the roster of the link was asked for before it happened.
    private var unsaid: [DoorControl] = []
    private var expected: [PairingHash: Instant] = [:]
    private var slots = SlotTable()
    private var timer: (deadline: Instant, task: Task<Void, Never>)?

    /// Makes an uplink; nothing is dialled before ``run(_:)``.
    ///
    /// - Parameters:
    ///   - carrier: what reaches the door, at its target for boxes.
    ///   - key: who the box is.
    ///   - doorKeys: the door's static public keys: one, or two while they change.
    ///   - settings: how the box behaves.
    ///   - admission: decides who is let in.
    ///   - executor: where it works, best the loop of the carrier.
    ///   - time: the clock of its waits.
    ///   - log: hears of each link and each session.
    ///   - metrics: hears how many sessions there are, and how many messages were dropped.
    ///   - random: a number from 0 up to, but not including, 1; each wait asks for one.
    public init(
        through carrier: any Carrier, key: StaticPrivateKey, doorKeys: [StaticPublicKey],
        settings: BoxSettings = BoxSettings(), admission: any BoxAdmission,
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log = Log(),
        metrics: any MetricsSink = NoMetrics(), random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        precondition(!doorKeys.isEmpty, "a door has a key")
        self.carrier = carrier
        self.key = key
        self.doorKeys = doorKeys
        self.settings = settings
        self.admission = admission
        self.executor = executor
        self.time = time
        self.log = log
        self.metrics = metrics
        self.random = random
        backoff = settings.backoff
    }

    /// The executor it was given.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// Its state: open while the home is served.
    public nonisolated var states: CarrierStates { source.states }

    /// The home that the box serves.
    public nonisolated var home: HomeID { HomeID(of: key.publicKey) }

    /// Stays linked to the door until the calling task is cancelled, and hands over every session that has its place.
    ///
    /// - Parameter serve: talks to one device until either end closes; the session is closed when it returns. It is cancelled
    ///   with the link. Who the device is says `NoiseSocket.peer`.
    public func run(_ serve: @escaping @Sendable (NoiseSocket) async -> Void) async {
        while !Task.isCancelled {
            source.set(.connecting(attempt: backoff.attempts + 1))
            let began = time.now()
            let close = await link(serve)
            guard !Task.isCancelled else { break }
            let wait = backoff.ended(
                after: time.now() - began, isShared: close.meansThatTheDoorStops, fraction: random())
            log.info("the box has lost its door: \(close); it dials again in \(wait.inWords)")
            let until = time.now() + wait
            source.set(.waiting(until: until, after: close))
            guard await pause(until: until) else { break }
        }
        source.set(.idle)
    }

    /// The network is back or has changed: a link that stands is asked about, and the next dial does not wait (R61).
    public func wake() async {
        backoff.reset()
        pausing?.signal()
        await carrier.wake()
    }

    /// - Returns: false where the task was cancelled.
    private func pause(until deadline: Instant) async -> Bool {
        let signal = Signal()
        pausing = signal
        let timer = Task(executorPreference: executor) { [time] in
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            signal.signal()
        }
        defer {
            timer.cancel()
            pausing = nil
        }
        return await signal.wait()
    }

    // MARK: - Devices and pairing

    /// A device has come to the home: the admission lets it in already.
    ///
    /// - Parameter key: who the device is.
    public func admit(_ key: StaticPublicKey) async {
        await tell(.admit(DeviceKeys([key])))
    }

    /// A device has left the home: the admission lets it in no more. Its session ends.
    ///
    /// - Parameter key: who the device was.
    public func revoke(_ key: StaticPublicKey) async {
        for address in slots.sessions(of: DeviceID(of: key)) {
            await connection?.end(address, Close(.refused, reason: "the device was removed", origin: .local))
        }
        await tell(.revoke(DeviceKeys([key])))
    }

    /// Somebody will come with a pairing code: the door lets in whoever shows its hash.
    ///
    /// - Parameters:
    ///   - code: the code, 16 bytes; any other count is ignored.
    ///   - duration: for how long, at most 600 s.
    public func expect(_ code: Bytes, for duration: Duration) async {
        guard let hash = PairingHash(home: home, code: code) else { return }
        let limit = min(duration, .seconds(Int64(DoorLimits.pairingSeconds.upperBound)))
        expected[hash] = time.now() + limit
        switch phase {
        case .greeted, .standing: await connection?.say(.expect(hash, seconds: Self.seconds(limit)))
        case .linking: unsaid.append(.expect(hash, seconds: Self.seconds(limit)))
        case .apart: break
        }
    }

    /// A pairing code is used, or taken back.
    ///
    /// - Parameter code: the code.
    public func forget(_ code: Bytes) async {
        guard let hash = PairingHash(home: home, code: code) else { return }
        expected[hash] = nil
        switch phase {
        case .greeted, .standing: await connection?.say(.forget(hash))
        case .linking: unsaid.append(.forget(hash))
        case .apart: break
        }
    }

    private func tell(_ control: DoorControl) async {
        switch phase {
        case .apart: break
        case .linking, .greeted: unsaid.append(control)
        case .standing: await connection?.say(control)
        }
    }

    /// Rounded up to what the wire takes.
    private static func seconds(_ duration: Duration) -> UInt32 {
        let (least, most) = (DoorLimits.pairingSeconds.lowerBound, DoorLimits.pairingSeconds.upperBound)
        return min(max(UInt32(clamping: duration.components.seconds), least), most)
    }

    // MARK: - The link

    private func link(_ serve: @escaping @Sendable (NoiseSocket) async -> Void) async -> Close {
        phase = .linking
        unsaid = []
        slots = SlotTable()
        let news = Inbox<DoorConnection.Event>()
        let connection: DoorConnection
        do throws(NoiseError) {
            let hello = BoxHello(window: settings.window, capabilities: settings.capabilities)
            let now = time.now()
            expected = expected.filter { $0.value > now }
            let expects = expected.map { DoorControl.expect($0.key, seconds: Self.seconds($0.value - now)) }
            let machine = try DoorSession(
                .box(hello, roster: await admission.roster(), expects: expects), key: key, doorKeys: doorKeys,
                preferred: keyIndex)
            connection = DoorConnection(
                machine, through: carrier, executor: executor, time: time, metrics: metrics
            ) { _, event in news.put(event) }
        } catch {
            phase = .apart
            return Close(.policy, reason: "no handshake with the door: \(error)", origin: .local)
        }
        self.connection = connection
        await connection.start()
        let close = await withDiscardingTaskGroup(returning: Close.self) { group in
            defer { group.cancelAll() }
            while true {
                guard let event = try? await news.takeFirst() else { break }
                switch event {
                case .greeted:
                    await greeted(connection)
                case .stands:
                    await served(connection)
                case .begun(let address, let socket):
                    guard slots.began(address, now: time.now()) else {
                        await connection.end(address, Close(.busy, reason: "too many handshakes", origin: .local))
                        continue
                    }
                    arm()
                    group.addTask { await self.answer(socket, at: address, on: connection, serve) }
                case .sessionEnded(let address, _, _):
                    slots.ended(address)
                case .over(let close, _):
                    return close
                }
            }
            // Cancelled; a close in this task would not wait for the last bytes.
            let leaving = Close(.normal, reason: "the box leaves", origin: .local)
            await Task(executorPreference: executor) { await connection.stop(leaving) }.value
            return leaving
        }
        phase = .apart
        self.connection = nil
        timer?.task.cancel()
        timer = nil
        return close
    }

    private func greeted(_ connection: DoorConnection) async {
        phase = .greeted
        keyIndex = await connection.keyInUse
    }

    private func served(_ connection: DoorConnection) async {
        phase = .standing
        defer { unsaid = [] }
        for control in unsaid { await connection.say(control) }
        guard let socket = try? await connection.waitUntilDialled() else { return }
        log.info("the box is linked to its door over \(socket.info.transport.displayName)")
        source.set(
            .open(
                CarrierPath(
                    carrier: "door", transport: socket.info.transport, remoteAddress: socket.info.remoteAddress)))
    }

    // MARK: - Sessions

    private func answer(
        _ socket: TunnelSocket, at address: TunnelAddress, on connection: DoorConnection,
        _ serve: @Sendable (NoiseSocket) async -> Void
    ) async {
        defer { slots.ended(address) }
        let acceptor = NoiseAcceptor(
            key: key, settings: settings.noise, executor: executor, time: time, metrics: metrics
        ) { [weak self] peer, code in await self?.lets(peer, in: address, code: code) ?? false }
        do throws(Close) {
            let sealed = try await acceptor.accept(socket)
            try await sealed.waitForProof()
            guard let earlier = slots.proved(address) else { return }
            if let earlier {
                await connection.end(earlier, Close(.displaced, reason: "a newer session", origin: .local))
            }
            metrics.change("box.sessions", by: 1)
            await serve(sealed)
            metrics.change("box.sessions", by: -1)
            await sealed.close(.normal, reason: "")
        } catch {
            log.debug("a session came to nothing: \(error)")
        }
    }

    /// R133: only the device that the door has named, and only one that the admission lets in.
    private func lets(_ peer: StaticPublicKey, in address: TunnelAddress, code: Bytes) async -> Bool {
        guard DeviceID(of: peer) == address.device, code.isEmpty || code.count == PairingHash.codeLength,
            await admission.admits(peer, code: code)
        else { return false }
        slots.answered(address)
        if !code.isEmpty {
            await tell(.admit(DeviceKeys([peer])))
            await forget(code)
        }
        return true
    }

    private func arm() {
        let deadline = slots.deadline
        guard deadline != timer?.deadline else { return }
        timer?.task.cancel()
        timer = deadline.map { deadline in
            let task = Task(executorPreference: executor) { [time] in
                guard (try? await time.sleep(until: deadline)) != nil, !Task.isCancelled else { return }
                await self.timeUp()
            }
            return (deadline, task)
        }
    }

    private func timeUp() async {
        timer = nil
        for expired in slots.passed(now: time.now()) {
            let close = Close(.tooSlow, reason: "the session was not begun in time", origin: .local)
            if expired.wasAnswered {
                await connection?.end(expired.address, close)
            } else {
                await connection?.letGo(expired.address, close)
            }
        }
        arm()
    }
}

extension Close {
    /// Whether everybody else on the door has lost it too (R127).
    var meansThatTheDoorStops: Bool {
        origin == .remote && (code == .goingAway || code == .restarting || code == .tryAgainLater)
    }
}
