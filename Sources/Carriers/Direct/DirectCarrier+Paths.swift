public import TransportKit

extension DirectCarrier {
    /// Tells of an establishment in which nothing more will happen.
    func observe(_ establishment: Establishment) {
        guard let observer = context.observer, let key = establishment.key else { return }
        switch establishment.outcome {
        case .won, .failed: break
        // A dial that was broken off shows nothing.
        case .restart, .abandoned, nil: return
        }
        let race = establishment.race
        let entries = transports.compactMap { transport in race.entries.first { $0.transport == transport.name } }
        let candidates = entries.map { entry in
            PathObservation.Candidate(
                entry.transport, PathObservation.Candidate.Outcome(entry.state),
                took: entry.start.flatMap { start in entry.end.map { $0 - start } })
        }
        let won = race.entries.first { $0.transport == race.winner }
        let roundTrip = won.flatMap { EstablishmentReport.roundTrip(establishment.steps(of: $0.transport).all) }
        observer.observe(
            PathObservation(
                time: establishment.began, path: context.memory.kept(key) ?? key, dial: establishment.name,
                event: .dialled(
                    candidates, winner: race.winner, after: won?.end.map { $0 - race.start }, roundTrip: roundTrip)))
    }

    /// The addresses of this machine that its open sessions stand on.
    public nonisolated var localAddresses: [SocketAddress] {
        state.sockets.compactMap(\.localAddress)
    }

    /// What it dials.
    public nonisolated var destination: ServiceURL { url }

    /// The names of its race policy and its demotion policy.
    public nonisolated var policies: (race: String, demotion: String) { (racePolicy.name, ledger.policyName) }

    /// Whether a transport that was demoted goes last in a dial at `now`, by the policy of this carrier.
    public nonisolated func standsBack(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool {
        ledger.standsBack(transport, history: history, at: now)
    }
}

extension PathObservation.Candidate.Outcome {
    fileprivate init(_ state: Race.State) {
        switch state {
        case .superseded, .won: self = .opened
        case .failed(let error): self = .failed(error)
        case .waiting, .dialling, .learning, .cancelled: self = .unknown
        }
    }
}
