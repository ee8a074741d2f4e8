/// What a path memory keeps of one destination on one network. A pure value; all its times are of the wall clock, so
/// that it can be stored.
///
/// A ``DemotionPolicy`` judges it, ``apply(_:to:at:)`` writes down what follows, and ``record(of:suspects:at:)`` is what a race
/// policy sees of it.
public struct PathHistory: Sendable, Hashable {
    /// How long a winner is remembered (R37, R55), and the longest that anything is.
    public static let lifetime = Duration.seconds(86_400)

    /// A remembered winner.
    public struct Winner: Sendable, Hashable {
        /// Who.
        public var transport: TransportName
        /// When it won.
        public var since: WallTime
        /// Until when that counts.
        public var until: WallTime

        /// Makes a memory of a winner.
        public init(_ transport: TransportName, since: WallTime, until: WallTime) {
            self.transport = transport
            self.since = since
            self.until = until
        }
    }

    /// Who won last.
    public var winner: Winner?
    /// What is known of each transport.
    public var transports: [TransportName: TransportHistory]
    /// The smoothed round trip to the destination, once measured.
    public var smoothedRoundTrip: Duration?

    /// Makes a history; without arguments that of a path nobody has been on.
    public init(
        winner: Winner? = nil, transports: [TransportName: TransportHistory] = [:], smoothedRoundTrip: Duration? = nil
    ) {
        self.winner = winner
        self.transports = transports
        self.smoothedRoundTrip = smoothedRoundTrip
    }

    /// Whether nothing is known.
    public var isEmpty: Bool { self == PathHistory() }

    /// Whether all that is known is that dials were made and failed, which may be the fault of a network that lets nobody
    /// through; it is of use for minutes, and nothing to keep (B34).
    package var isPassing: Bool {
        guard !transports.isEmpty, winner == nil, smoothedRoundTrip == nil else { return false }
        return transports.values.allSatisfy { known in
            var passing = TransportHistory()
            (passing.lastFailure, passing.lastProbe) = (known.lastFailure, known.lastProbe)
            return known == passing
        }
    }

    /// What is known of one transport.
    public subscript(transport: TransportName) -> TransportHistory {
        get { transports[transport] ?? TransportHistory() }
        set { transports[transport] = newValue == TransportHistory() ? nil : newValue }
    }

    /// Remembers a winner for a day (R37); one that stands back is not moved by a win (R49).
    public mutating func won(_ transport: TransportName, at now: WallTime) {
        guard self[transport].demotion == nil else { return }
        winner = Winner(transport, since: now, until: now + Self.lifetime)
    }

    /// A session over the transport has brought its first message.
    public mutating func carried(_ transport: TransportName, at now: WallTime) {
        self[transport].lastCarried = now
        // While it stands back, one message proves nothing.
        if self[transport].demotion == nil { self[transport].isUnproven = false }
    }

    /// A measured round trip, smoothed into what is known (RFC 6298 §2: one eighth of the new sample).
    public mutating func measured(roundTrip: Duration) {
        smoothedRoundTrip = smoothedRoundTrip.map { $0 * 7 / 8 + roundTrip / 8 } ?? roundTrip
    }

    /// Writes down what a policy has judged.
    public mutating func apply(_ verdict: Verdict, to transport: TransportName, at now: WallTime) {
        switch verdict {
        case .sound: break
        case .strike(let strike): self[transport].strikes.append(strike)
        case .demote(let lifetime, let kind, let reason):
            let demotion = Demotion(since: now, until: now + lifetime, kind: kind, reason: reason)
            self[transport].strikes = []
            self[transport].demotion = demotion
            self[transport].demotionsInARow += 1
            self[transport].isUnproven = true
        case .lift: self[transport].demotion = nil
        case .clear:
            let known = self[transport]
            self[transport] = TransportHistory()
            self[transport].lastCarried = known.lastCarried
        }
    }

    /// Leaves out what has expired, and cuts what a clock that jumped has put too far ahead: nothing lasts longer from
    /// now than its own lifetime (R54), and nothing has happened later than now.
    public mutating func prune(at now: WallTime) {
        if let known = winner {
            winner = known.until > now ? known : nil
            if known.since > now { winner = Winner(known.transport, since: now, until: now + Self.lifetime) }
        }
        for (transport, var history) in transports {
            history.prune(at: now)
            self[transport] = history
        }
    }

    /// What a race policy sees: who won, and who stands back by the policy's word.
    ///
    /// - Parameters:
    ///   - policy: says which demotions count now.
    ///   - suspects: what is suspected without being proven yet, with the reasons.
    ///   - now: the instant of the question.
    public func record(
        of policy: any DemotionPolicy, suspects: [TransportName: String] = [:], at now: WallTime
    ) -> PathRecord {
        var record = PathRecord(
            winner: winner?.transport,
            demotions: transports.compactMapValues(\.demotion).filter {
                policy.standsBack($0.key, history: self, at: now)
            },
            smoothedRoundTrip: smoothedRoundTrip)
        record.unproven = Set(transports.filter { $0.value.isUnproven }.keys)
        for (transport, reason) in suspects where record.demotions[transport] == nil {
            record.demotions[transport] = Demotion(since: now, until: now + Self.lifetime, reason: reason)
        }
        return record
    }
}
