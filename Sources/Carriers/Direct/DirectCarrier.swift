public import TransportKit

/// Reaches a service by racing transports: whoever opens first carries, the network is remembered, and a transport that
/// breaks early stands back for a while (R34–R54).
///
/// What to dial when is the race policy's decision, what counts as broken the demotion policy's, and the path memory of
/// the context keeps what follows. Any number of sessions may be open at once.
///
/// `wake()` starts every establishment under way over, asks the sessions that stand for a sign of life, from the machine's
/// new address where they can move, and dials a new one beside that (R60, R61). Where they answer within a second, the new
/// one is let go; else it takes over: they end with 1001, and the next `open` gets it.
public actor DirectCarrier: Carrier {
    nonisolated let url: ServiceURL
    nonisolated let transports: [any Transport]
    nonisolated let options: DialOptions
    nonisolated let racePolicy: any RacePolicy
    nonisolated let ledger: PathLedger
    nonisolated let context: BuildContext
    nonisolated let state = DirectState()
    /// Tells its dials from those of any other carrier whose observations end up in the same file.
    nonisolated let mark = String(UInt64.random(in: .min ... .max), radix: 16)

    /// The dials under way.
    var establishments: [UInt64: Establishment] = [:]
    var nextID: UInt64 = 0
    private var failures = 0
    private(set) var closed: Close?
    /// What goes on after a wake.
    var recovery: Recovery?
    /// What goes on to find out whether something stands back no longer for a reason.
    var probe: Probe?

    /// Makes a carrier; nothing is opened.
    ///
    /// - Throws: where there is no transport, one stands twice, or they do not all protect alike: which of them carries
    ///   is a matter of luck, and who can read what travels must not be.
    public init(
        url: ServiceURL, transports: [any Transport], options: DialOptions = DialOptions(),
        race: any RacePolicy = HeadStartRacePolicy(), demotion: any DemotionPolicy = DayDemotionPolicy(),
        context: BuildContext
    ) throws(TransportError) {
        let names = transports.map(\.name)
        guard !names.isEmpty else { throw TransportError(.misuse, "a direct carrier needs a transport") }
        guard Set(names).count == names.count else {
            throw TransportError(.misuse, "a direct carrier races each transport once; there are \(names)")
        }
        let protections = transports.map { $0.protection(of: url.endpoint) }
        guard Set(protections).count == 1 else {
            let each = zip(names, protections).map { "\($0): \($1)" }.joined(separator: ", ")
            throw TransportError(.misuse, "the transports of \(url.endpoint) do not protect alike (\(each))")
        }
        self.url = url
        self.transports = transports
        self.options = options
        racePolicy = race
        self.context = context
        ledger = PathLedger(policy: demotion, context: context, destination: "\(url.endpoint)")
        protection = protections[0]
        capabilities = transports.map(\.capabilities).reduce(transports[0].capabilities) { $0.intersection($1) }
    }

    /// The executor of the context.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { context.executor.asUnownedSerialExecutor() }

    /// What every one of its transports can do: whichever wins, a session has it.
    public nonisolated let capabilities: Capabilities

    /// What every one of its transports gives.
    public nonisolated let protection: Protection

    /// Its state.
    public nonisolated var states: CarrierStates { state.states.states }

    /// The last establishments, oldest first; at most 16.
    public nonisolated var reports: [EstablishmentReport] { state.reports }

    /// Races the transports for a new session.
    public func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        state.beginOpening(attempt: failures + 1)
        defer { state.endOpening() }
        while true {
            if let closed { throw closed }
            let establishment = takeSpare() ?? begin(firstFlight: firstFlight, isSpare: false)
            let isCancelled = establishment.outcome == nil ? await !establishment.settled.wait() : false
            switch establishment.outcome {
            case .won(let socket):
                failures = 0
                state.show(socket)
                if establishment.isSpare {
                    settleRecovery()
                    try await send(firstFlight, on: socket)
                }
                return socket
            case .failed(let close):
                failures += 1
                throw close
            case .restart:
                continue
            case .abandoned:
                throw .cancelled
            case nil:
                precondition(isCancelled, "the signal is given with the outcome")
                establishment.outcome = .abandoned
                abandon(establishment)
                throw .cancelled
            }
        }
    }

    /// Says the first message on a wire that was open before anybody knew what to say on it. Nobody else has the session
    /// where that fails.
    private func send(_ firstFlight: Bytes?, on socket: DirectSocket) async throws(Close) {
        guard let firstFlight else { return }
        do throws(Close) {
            try await socket.send(Message(firstFlight))
        } catch {
            closeLater(socket, .normal, "its first message could not be sent")
            throw error
        }
    }

    /// Dials afresh, and keeps of what stands what still works. Returns before that is known.
    public func wake() async {
        guard closed == nil else { return }
        // One that nobody has taken is of the network that was, too.
        let unused = endRecovery()
        let standing = state.sockets.filter { !$0.watch.hasEnded && $0 !== unused }
        for establishment in establishments.values {
            // What goes on only to learn belongs to the network that was; whoever waits dials anew.
            let waits = establishment.outcome == nil
            abandon(establishment)
            if waits {
                // Neither has anything opened, so nothing is proven.
                if let key = establishment.key { ledger.nothingOpened(on: key) }
                establishment.outcome = .restart
                establishment.settled.signal()
            }
        }
        // A dial that is only to learn belongs to the network that was, too.
        stopProbing()
        recover(standing)
        planProbe()
    }

    /// Ends the carrier, its dials and its sessions.
    public func close(_ code: CloseCode, reason: String) async {
        let close = closed ?? Close(code, reason: reason, origin: .local)
        closed = close
        endRecovery()
        let dials = establishments.values.flatMap { $0.tasks.values } + [stopProbing()].compactMap(\.self)
        for establishment in establishments.values {
            let waits = establishment.outcome == nil
            abandon(establishment)
            if waits {
                establishment.outcome = .failed(close)
                establishment.settled.signal()
            }
        }
        await closeSockets(close.code, reason: close.reason)
        for dial in dials { await dial.value }
        state.states.set(.closed(close))
    }

    private func closeSockets(_ code: CloseCode, reason: String) async {
        let sockets = state.sockets
        await withDiscardingTaskGroup { group in
            for socket in sockets { group.addTask { _ = await socket.close(code, reason: reason) } }
        }
    }

    /// Closes a session without waiting for its peer; the close ends by itself, within the linger time.
    func closeLater(_ socket: DirectSocket, _ code: CloseCode, _ reason: String) {
        Task(executorPreference: context.executor) { _ = await socket.close(code, reason: reason) }
    }

    // MARK: - Sessions

    func carry(_ socket: any Socket, _ establishment: Establishment) -> DirectSocket {
        let transport = socket.info.transport
        let key = establishment.key
        if let key {
            ledger.opened(
                transport, roundTrip: EstablishmentReport.roundTrip(establishment.steps(of: transport).all), on: key)
        }
        let dial = context.observer == nil ? "" : establishment.name
        let watch = SessionWatch(
            time: context.time, executor: context.executor, lasting: key == nil ? nil : ledger.soundness
        ) {
            [
                ledger, state, network = context.network, observer = context.observer, time = context.time,
                memory = context.memory, executor = context.executor, dial, weak self,
                weak pathAware = socket as? any PathAwareSocket
            ] event in
            defer { Task(executorPreference: executor) { [weak self] in await self?.planProbe() } }
            switch event {
            case .lasted:
                if let key { ledger.lasted(transport, on: key) }
            case .ended(let close, let age):
                state.sessionEnded()
                guard let key else { return }
                // Where the machine has no network any more, that is why the path is lost.
                let hasLeft = pathAware?.hasMigrated ?? false || network() == nil
                let ending = SessionEnding(
                    transport: transport, close: close, sinceFirstMessage: age, migrated: hasLeft)
                ledger.ended(ending, on: key)
                observer?.observe(
                    PathObservation(
                        time: time.wallNow(), path: memory.kept(key) ?? key, dial: dial, event: .ended(ending)))
            }
        }
        let watched = DirectSocket(socket, watch: watch)
        state.add(watched)
        return watched
    }

    func report(_ establishment: Establishment) {
        var failure: Close?
        if case .failed(let close) = establishment.outcome { failure = close }
        let report = EstablishmentReport(
            establishment.race, url: url, network: establishment.key?.network, began: establishment.began,
            record: establishment.record, plan: establishment.plannedStarts, steps: establishment.allSteps,
            failure: failure)
        state.keep(report, id: establishment.id)
        guard establishment.outcome != nil, !establishment.isLogged else { return }
        establishment.isLogged = true
        switch establishment.outcome {
        case .won: context.log.info("\(url.endpoint): \(report.why)")
        // Whoever asked for the session gets the same words, and counts them where it asks again and again.
        case .failed: context.log.debug("\(url.endpoint): \(report.why)")
        case .restart, .abandoned, nil: break
        }
    }
}
