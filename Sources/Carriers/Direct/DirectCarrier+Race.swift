internal import TransportKit

/// How a carrier races its transports: it does what a ``Race`` says, and tells it what came of that.
extension DirectCarrier {
    /// How long a dial may go on beside an answer of somebody else's.
    private static let patienceBesideStranger = Duration.seconds(4)

    /// The path that a dial takes now; nil where the network cannot be told from others.
    var path: PathKey? {
        context.network().map { PathKey(network: $0, destination: "\(url.endpoint.host):\(url.endpoint.port)") }
    }

    func begin(firstFlight: Bytes?, isSpare: Bool) -> Establishment {
        nextID += 1
        let key = path
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
        endLearning(establishment)
        report(establishment)
        arm(establishment)
        if establishment.outcome != nil { establishment.settled.signal() }
        if establishment.outcome != nil { establishment.hurry?.cancel() }
        if establishment.isDone {
            establishments[establishment.id] = nil
            observe(establishment)
        }
        if establishment.isSpare, establishment.outcome != nil { settleRecovery() }
        if establishment.outcome != nil { planProbe() }
    }

    private func dial(_ name: TransportName, _ establishment: Establishment, claim: Claim, isProbe: Bool) {
        guard let transport = transports.first(where: { $0.name == name }) else { return }
        var options = options
        options.claim = claim
        options.usualRoundTrip = establishment.record.smoothedRoundTrip ?? options.usualRoundTrip
        options.firstFlight = isProbe ? nil : establishment.firstFlight
        // A probe says nothing.
        if isProbe { options.earlyData = false }
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
        let mayLearn = beginLearning(establishment, beatenBy: name)
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

    /// Asks whether a dial may go on, or be made, only to learn: one at a time on the path, whichever carrier's it is, and
    /// where the policy has no objection (R41).
    private func beginLearning(_ establishment: Establishment, beatenBy winner: TransportName) -> Bool {
        guard let key = establishment.key, !establishment.holdsLearning,
            transports.allSatisfy({ $0.name == winner || ledger.mayProbe($0.name, on: key) }),
            context.learning.begin(on: key)
        else { return false }
        establishment.holdsLearning = true
        return true
    }

    /// Lets the next one learn where there is nothing more to learn here.
    private func endLearning(_ establishment: Establishment) {
        guard let key = establishment.key, establishment.holdsLearning, !establishment.race.isLearning else { return }
        establishment.holdsLearning = false
        context.learning.end(on: key)
    }

    func remember(_ transport: TransportName, key: PathKey?) {
        // What was learned after the network has changed says nothing about either.
        guard let key, context.network() == key.network else { return }
        ledger.remember(transport, on: key)
    }
}
