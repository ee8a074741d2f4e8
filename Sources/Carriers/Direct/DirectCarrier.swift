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
    private nonisolated let mark = String(UInt64.random(in: .min ... .max), radix: 16)

    /// How long a dial may go on beside an answer of somebody else's.
    private static let patienceBesideStranger = Duration.seconds(4)

    private var establishments: [UInt64: Establishment] = [:]
    private var nextID: UInt64 = 0
    private var learning: Set<PathKey> = []
    private var failures = 0
    private var closed: Close?
    /// What goes on after a wake.
    var recovery: Recovery?

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
                    // The wire was open before anybody knew what to say on it.
                    if let firstFlight { try await socket.send(Message(firstFlight)) }
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
        recover(standing)
    }

    /// Ends the carrier, its dials and its sessions.
    public func close(_ code: CloseCode, reason: String) async {
        let close = closed ?? Close(code, reason: reason, origin: .local)
        closed = close
        endRecovery()
        let dials = establishments.values.flatMap { $0.tasks.values }
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

    // MARK: - The race

    func begin(firstFlight: Bytes?, isSpare: Bool) -> Establishment {
        nextID += 1
        let network = context.network()
        let key = network.map { PathKey(network: $0, destination: "\(url.endpoint.host):\(url.endpoint.port)") }
        let names = transports.map(\.name)
        let record = ledger.record(of: key)
        let plan = racePolicy.plan(names, record: record)
        let establishment = Establishment(
            id: nextID, carrier: mark, race: Race(names, plan: plan, now: context.time.now()), plan: plan, key: key,
            began: context.time.wallNow(), record: record, firstFlight: firstFlight, isSpare: isSpare)
        establishments[nextID] = establishment
        step(establishment) { race, now in race.passed(now: now) }
        return establishment
    }

    func abandon(_ establishment: Establishment) {
        step(establishment) { race, now in race.abandon(now: now) }
    }

    /// Tells the race something, does what it says, and keeps the report.
    private func step(
        _ establishment: Establishment, winner: (any Socket)? = nil,
        _ tell: (inout Race, Instant) -> [Race.Action]
    ) {
        for action in tell(&establishment.race, context.time.now()) {
            switch action {
            case .dial(let transport, let generation):
                dial(transport, establishment, claim: establishment.claim(of: generation), isProbe: false)
            case .probe(let transport):
                if let key = establishment.key { ledger.probing(transport, on: key) }
                dial(transport, establishment, claim: .gone, isProbe: true)
            case .cancel(let transport):
                establishment.tasks[transport]?.cancel()
            case .win:
                if let winner { establishment.outcome = .won(carry(winner, establishment)) }
            case .discard:
                // The dial's own task closes what nobody took.
                break
            case .fail:
                let failures = establishment.race.entries.compactMap { entry in
                    if case .failed(let error) = entry.state { (entry.transport, error) } else { nil }
                }
                establishment.outcome = .failed(RaceFailure.close(failures, isSecured: isSecured))
                if let key = establishment.key { ledger.nothingOpened(on: key) }
            case .remember(let transport):
                remember(transport, key: establishment.key)
            }
        }
        holdLearning(establishment)
        report(establishment)
        arm(establishment)
        if establishment.outcome != nil { establishment.settled.signal() }
        if establishment.outcome != nil { establishment.hurry?.cancel() }
        if establishment.isDone {
            establishments[establishment.id] = nil
            observe(establishment)
        }
        if establishment.isSpare, establishment.outcome != nil { settleRecovery() }
    }

    private func dial(_ name: TransportName, _ establishment: Establishment, claim: Claim, isProbe: Bool) {
        guard let transport = transports.first(where: { $0.name == name }) else { return }
        var options = options
        options.claim = claim
        options.usualRoundTrip = establishment.record.smoothedRoundTrip ?? options.usualRoundTrip
        options.firstFlight = isProbe ? nil : establishment.firstFlight
        let (steps, time, told) = (establishment.steps(of: name), context.time, options.progress)
        let start = establishment.race.start
        options.progress = { progress in
            steps.add(progress, at: time.now() - start)
            told?(progress)
        }
        let (id, url, chosen) = (establishment.id, url, options)
        establishment.tasks[name] = Task(executorPreference: context.executor) {
            do throws(TransportError) {
                let socket = try await transport.dial(url, options: chosen)
                if await !self.opened(id, name, socket) {
                    _ = await socket.close(.normal, reason: "another transport was first")
                }
            } catch {
                await self.failed(id, name, error)
            }
        }
    }

    /// - Returns: whether the socket was taken.
    private func opened(_ id: UInt64, _ name: TransportName, _ socket: any Socket) -> Bool {
        guard let establishment = establishments[id] else { return false }
        establishment.tasks[name] = nil
        let mayLearn = establishment.key.map { self.mayLearn($0, beatenBy: name) } ?? false
        let hadOutcome = establishment.outcome != nil
        step(establishment, winner: socket) { race, now in race.opened(name, mayLearn: mayLearn, now: now) }
        guard !hadOutcome, establishment.race.winner == name else { return false }
        return true
    }

    private func failed(_ id: UInt64, _ name: TransportName, _ error: TransportError) {
        guard let establishment = establishments[id] else { return }
        establishment.tasks[name] = nil
        let isProbe = establishment.race.winner != nil
        if let key = establishment.key, error.code != .cancelled {
            if error.code != .superseded {
                ledger.failed(name, error, carrier: establishment.race.winner, on: key)
            } else if isProbe {
                ledger.probed(name, on: key)
            }
        }
        step(establishment) { race, now in race.failed(name, error, now: now) }
        if establishment.outcome == nil { hurry(establishment, after: error) }
    }

    private nonisolated var isSecured: Bool { url.endpoint.scheme == .wss }

    /// Somebody else may answer in the service's place: what is silent for a while after that is given up, so that the
    /// next dial comes soon after a sign-in (B34).
    private func hurry(_ establishment: Establishment, after error: TransportError) {
        let others = establishment.race.entries.filter { $0.end == nil }.map { _ in TransportError(.timedOut, "") }
        guard establishment.hurry == nil, RaceFailure.isStranger(error, isSecured: isSecured, others: others) else {
            return
        }
        let (id, time) = (establishment.id, context.time)
        establishment.hurry = Task(executorPreference: context.executor) {
            guard (try? await time.sleep(for: Self.patienceBesideStranger)) != nil else { return }
            await self.giveUpSilent(id)
        }
    }

    private func giveUpSilent(_ id: UInt64) {
        guard let establishment = establishments[id], establishment.outcome == nil else { return }
        for dial in establishment.tasks.values { dial.cancel() }
    }

    private func timeUp(_ id: UInt64) {
        guard let establishment = establishments[id] else { return }
        establishment.armed = nil
        step(establishment) { race, now in race.passed(now: now) }
    }

    private func arm(_ establishment: Establishment) {
        let deadline = establishment.race.deadline
        guard deadline != establishment.armed else { return }
        establishment.timer?.cancel()
        establishment.armed = deadline
        guard let deadline else { return }
        let (id, time) = (establishment.id, context.time)
        establishment.timer = Task(executorPreference: context.executor) {
            guard (try? await time.sleep(until: deadline)) != nil, !Task.isCancelled else { return }
            await self.timeUp(id)
        }
    }

    /// At most one learning dial runs per network (R41); the destination is always the same here.
    private func holdLearning(_ establishment: Establishment) {
        guard let key = establishment.key, establishment.race.isLearning != establishment.holdsLearning else { return }
        establishment.holdsLearning.toggle()
        if establishment.holdsLearning { learning.insert(key) } else { learning.remove(key) }
    }

    /// Whether a dial may go on, or be made, only to learn: one at a time, and where the policy has no objection (R41).
    private func mayLearn(_ key: PathKey, beatenBy winner: TransportName) -> Bool {
        !learning.contains(key)
            && transports.allSatisfy { $0.name == winner || ledger.mayProbe($0.name, on: key) }
    }

    private func remember(_ transport: TransportName, key: PathKey?) {
        // What was learned after the network has changed says nothing about either.
        guard let key, context.network() == key.network else { return }
        ledger.remember(transport, on: key)
    }

    // MARK: - Sessions

    private func carry(_ socket: any Socket, _ establishment: Establishment) -> DirectSocket {
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
                memory = context.memory, dial,
                weak pathAware = socket as? any PathAwareSocket
            ] event in
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

    private func report(_ establishment: Establishment) {
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
