public import TransportKit

/// What happened while one session was being opened: what was dialled when, what won, and why.
///
/// A learning dial goes on after the win, so a report that is read later may know more.
public struct EstablishmentReport: Sendable, Hashable {
    /// One transport's part.
    public struct Candidate: Sendable, Hashable {
        /// The transport.
        public var transport: TransportName
        /// When the plan had it start, counted from the start of the establishment.
        public var plannedStart: Duration
        /// When it was dialled; nil where it never was.
        public var start: Duration?
        /// When it opened, failed or was given up.
        public var end: Duration?
        /// What became of it.
        public var outcome: Outcome
        /// What the dial did on its way (R146).
        public var steps: [Step]
    }

    /// What became of a candidate.
    public enum Outcome: Sendable, Hashable {
        /// Its turn has not come.
        case waiting
        /// It is being dialled.
        case dialling
        /// Somebody else has won, and its dial goes on to learn whether it works (R38).
        case learning
        /// It carries the session.
        case won
        /// It would have worked, but somebody else was first.
        case wouldHaveWorked
        /// It failed.
        case failed(TransportError)
        /// It was given up, or its turn never came.
        case cancelled
    }

    /// A step of a dial.
    public struct Step: Sendable, Hashable {
        /// When, counted from the start of the establishment.
        public var time: Duration
        /// What.
        public var progress: DialProgress
    }

    /// What was dialled.
    public var url: ServiceURL
    /// The opaque name of the network, where it has one.
    public var network: String?
    /// When it began.
    public var start: Instant
    /// The same on the wall clock.
    public var began: WallTime
    /// What the memory said of the network when it began.
    public var record: PathRecord
    /// The candidates in the order of the plan.
    public var candidates: [Candidate]
    /// Who carries the session; nil while nobody does.
    public var winner: TransportName?
    /// How the establishment failed, if it did.
    public var failure: Close?
    /// The decision in one sentence, for example "WebSocket opened first after 262 ms; QUIC had not answered".
    public var why: String
}

extension EstablishmentReport.Outcome: CustomStringConvertible {
    /// The outcome in words.
    public var description: String {
        switch self {
        case .waiting: "waits for its turn"
        case .dialling: "is being dialled"
        case .learning: "goes on to learn whether it works"
        case .won: "carries the session"
        case .wouldHaveWorked: "would have worked"
        case .failed(let error): "failed: \(error)"
        case .cancelled: "was given up"
        }
    }
}

extension EstablishmentReport {
    /// The report of a race.
    init(
        _ race: Race, url: ServiceURL, network: String?, began: WallTime, record: PathRecord,
        plan: [TransportName: Duration],
        steps: [TransportName: [Step]], failure: Close?
    ) {
        self.url = url
        self.network = network
        self.began = began
        self.record = record
        self.failure = failure
        start = race.start
        winner = race.winner
        candidates = race.entries.map { entry in
            Candidate(
                transport: entry.transport, plannedStart: plan[entry.transport] ?? .zero,
                start: entry.start.map { $0 - race.start }, end: entry.end.map { $0 - race.start },
                outcome: Outcome(entry.state), steps: steps[entry.transport] ?? [])
        }
        why = ""
        why = sentence
    }

    /// TCP sends its first packet again after this time (RFC 6298 §2.1), and says nothing of it.
    private static let firstRetransmission = Duration.seconds(1)

    /// The round trip that a dial has shown: what the transport has measured by itself, else the time until the address
    /// that it opened over connected.
    ///
    /// Nil where that address was tried more than once: which attempt was answered nobody can say (RFC 6298 §3).
    static func roundTrip(_ steps: [Step]) -> Duration? {
        var attempts: [SocketAddress: [Duration]] = [:]
        for step in steps {
            switch step.progress {
            case .attempt(let address): attempts[address, default: []].append(step.time)
            case .connected(let address):
                guard let tries = attempts[address], tries.count == 1 else { return nil }
                let took = step.time - tries[0]
                return took < firstRetransmission ? took : nil
            case .measured(let roundTrip): return roundTrip
            case .resolved, .attemptFailed, .secured, .opened: break
            }
        }
        return nil
    }

    private var sentence: String {
        guard let winner, let won = candidates.first(where: { $0.transport == winner }) else {
            return failure.map { "nothing opened: \($0.reason)" } ?? "nothing has opened yet"
        }
        let after = won.end.map { " after \($0.inWholeMilliseconds) ms" } ?? ""
        let others = candidates.filter { $0.transport != winner }.map { other in
            let name = other.transport.displayName
            return switch other.outcome {
            case .waiting: "\(name) has not had its turn"
            case .dialling, .learning: "\(name) had not answered"
            case .won: "\(name) won"
            case .wouldHaveWorked: "\(name) would have worked too"
            case .failed(let error): "\(name) failed: \(error)"
            case .cancelled where other.start == nil: "\(name) was not needed"
            case .cancelled: "\(name) was slower"
            }
        }
        return (["\(winner.displayName) opened first\(after)"] + others).joined(separator: "; ")
    }
}

extension EstablishmentReport.Outcome {
    init(_ state: Race.State) {
        self =
            switch state {
            case .waiting: .waiting
            case .dialling: .dialling
            case .learning: .learning
            case .superseded: .wouldHaveWorked
            case .failed(let error): .failed(error)
            case .won: .won
            case .cancelled: .cancelled
            }
    }
}

extension Duration {
    var inWholeMilliseconds: Int { Int(inMilliseconds.rounded()) }
}
