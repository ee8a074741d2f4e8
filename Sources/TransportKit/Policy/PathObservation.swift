/// Something a carrier has seen on a path, for whoever records that: enough to ask later what other policies would have
/// made of it.
public struct PathObservation: Sendable, Hashable {
    /// One transport's part in a dial.
    public struct Candidate: Sendable, Hashable {
        /// What became of it.
        public enum Outcome: Sendable, Hashable {
            /// It opened, or would have.
            case opened
            /// It failed.
            case failed(TransportError)
            /// It was given up, or never had its turn.
            case unknown
        }

        /// The transport.
        public var transport: TransportName
        /// What became of it.
        public var outcome: Outcome
        /// How long it was dialled for until then; nil where it never was.
        public var took: Duration?

        /// Makes a candidate.
        public init(_ transport: TransportName, _ outcome: Outcome, took: Duration?) {
            self.transport = transport
            self.outcome = outcome
            self.took = took
        }
    }

    /// What was seen.
    public enum Event: Sendable, Hashable {
        /// A dial, told once everything about it is known: its candidates in the order of preference, who carried the
        /// session and after how long, and the round trip that it showed.
        case dialled([Candidate], winner: TransportName?, after: Duration?, roundTrip: Duration?)
        /// The session of a dial has ended.
        case ended(SessionEnding)
    }

    /// When it was; of a dial, when it began.
    public var time: WallTime
    /// Where it was.
    public var path: PathKey
    /// Tells dials apart, also those of several carriers, hosts and runs; a session's end has that of its dial.
    public var dial: String
    /// What was seen.
    public var event: Event

    /// Makes an observation.
    public init(time: WallTime, path: PathKey, dial: String, event: Event) {
        self.time = time
        self.path = path
        self.dial = dial
        self.event = event
    }
}

/// Where carriers tell what they see. Any thread may call it; it must not block and must not fail.
public protocol PathObserver: Sendable {
    /// Takes one observation.
    func observe(_ observation: PathObservation)
}
