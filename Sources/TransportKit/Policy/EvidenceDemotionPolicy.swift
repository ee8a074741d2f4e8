/// Demotes QUIC on evidence only, and not for longer than the evidence is worth.
///
/// Two strikes within an hour demote. A strike is a dial that failed while another transport carried it, or an early
/// death after which another transport carried. The first demotion lasts half an hour, each further one twice as long as
/// the one before, a day at most, and up to a quarter longer by chance, so that not all clients come back at once. It is
/// suspended while the other transport failed within the last five minutes, because then the network is to blame.
/// Meanwhile QUIC is tried beside a dial that somebody else wins, or a session that stands, every ten minutes at most and
/// without anybody waiting for it: where it had not opened and now does, the demotion is lifted; where it had broken after opening, only time
/// lifts it. A session that stands for five minutes clears everything.
public struct EvidenceDemotionPolicy: DemotionPolicy {
    /// The numbers of the policy.
    public struct Settings: Sendable, Hashable {
        /// So many strikes demote …
        public var strikes = 2
        /// … if they fall into this time.
        public var window = Duration.seconds(3600)
        /// Within this time of the first message a lost path is an early death; strictly less.
        public var earlyDeath = Duration.seconds(300)
        /// How long the first demotion lasts.
        public var firstLifetime = Duration.seconds(1800)
        /// How long a demotion lasts at most.
        public var longestLifetime = Duration.seconds(86_400)
        /// How much longer than that by chance, as a part of it.
        public var jitter = 0.25
        /// How long at least between two dials that are only to learn.
        public var probeInterval = Duration.seconds(600)
        /// For how long a failure of another transport suspends a demotion.
        public var doubt = Duration.seconds(300)
        /// How long a session has to stand to clear everything.
        public var soundness = Duration.seconds(300)

        /// The usual numbers.
        public init() {}
    }

    /// The numbers it goes by.
    public let settings: Settings
    /// What may be demoted.
    public let subject: TransportName

    /// Makes the policy.
    public init(_ settings: Settings = Settings(), subject: TransportName = .quic) {
        self.settings = settings
        self.subject = subject
    }

    /// `evidence`
    public var name: String { "evidence" }

    /// Five minutes, unless set otherwise.
    public var soundness: Duration? { settings.soundness }

    /// Counts strikes, and says what they lead to.
    public func judge(_ event: PathEvent, history: PathHistory, at now: WallTime, fraction: Double) -> Verdict {
        guard event.transport == subject else { return .sound }
        let known = history[subject]
        switch event {
        case .ended(let ending):
            guard let reason = ending.earlyDeath(within: settings.earlyDeath) else { return .sound }
            return struck(.carrying, reason, known, at: now, fraction)
        case .failedToOpen(_, let error):
            guard error.blamesPath, known.demotion == nil else { return .sound }
            return struck(.opening, "it did not open: \(error)", known, at: now, fraction)
        case .lasted:
            return .clear
        case .probed:
            guard let demotion = known.demotion, demotion.kind == .opening else { return .sound }
            return .lift
        }
    }

    /// Not while the other transport is in doubt.
    public func standsBack(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool {
        guard let demotion = history[transport].demotion, demotion.until > now else { return false }
        return !history.transports.contains { other, known in
            other != transport && known.lastFailure.map { $0 + settings.doubt > now } ?? false
        }
    }

    /// Every ten minutes at most while it stands back, always otherwise.
    public func mayProbe(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool {
        let known = history[transport]
        guard known.demotion != nil, let last = known.lastProbe else { return true }
        return last + settings.probeInterval <= now
    }

    /// Ten minutes after the last one, as long as the demotion lasts; only where a handshake that gets through ends it.
    public func nextProbe(_ transport: TransportName, history: PathHistory, at now: WallTime) -> WallTime? {
        let known = history[transport]
        guard let demotion = known.demotion, demotion.kind == .opening else { return nil }
        let due = (known.lastProbe ?? demotion.since) + settings.probeInterval
        return due < demotion.until ? due : nil
    }

    private func struck(
        _ kind: TransportHistory.Strike.Kind, _ reason: String, _ known: TransportHistory, at now: WallTime,
        _ fraction: Double
    ) -> Verdict {
        let recent = known.strikes.filter { $0.time + settings.window > now }
        guard recent.count + 1 >= settings.strikes else {
            return .strike(TransportHistory.Strike(time: now, kind: kind, reason: reason))
        }
        var lifetime = settings.firstLifetime
        for _ in 0..<known.demotionsInARow where lifetime < settings.longestLifetime { lifetime = lifetime * 2 }
        lifetime = lifetime * (1 + settings.jitter * min(max(fraction, 0), 1))
        // What opened once and broke is the worse of the two: a handshake that gets through does not disprove it.
        let worst = recent.contains { $0.kind == .carrying } ? .carrying : kind
        return .demote(lifetime: min(lifetime, settings.longestLifetime), kind: worst, reason: reason)
    }
}

extension TransportError {
    /// Whether such a failure of a dial says that the network does not let the transport through.
    var blamesPath: Bool {
        switch code {
        case .refused, .unreachable, .blocked, .timedOut, .idle, .pathReset, .noCommonProtocol, .handshakeFailed: true
        default: false
        }
    }
}
