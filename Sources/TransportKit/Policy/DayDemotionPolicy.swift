/// One early failure of QUIC makes it stand back for a day (R46–R54).
public struct DayDemotionPolicy: DemotionPolicy {
    /// Within this time of the first message a lost path counts; strictly less (R47).
    public let earlyDeath: Duration
    /// How long a demotion lasts (R48).
    public let lifetime: Duration
    /// What may be demoted.
    public let subject: TransportName

    /// Makes the policy.
    public init(
        earlyDeath: Duration = .seconds(60), lifetime: Duration = .seconds(86_400), subject: TransportName = .quic
    ) {
        self.earlyDeath = earlyDeath
        self.lifetime = lifetime
        self.subject = subject
    }

    /// `day`
    public var name: String { "day" }

    /// An early death demotes; nothing else does, and nothing but time ends it (R48, R49).
    public func judge(_ event: PathEvent, history: PathHistory, at now: WallTime, fraction: Double) -> Verdict {
        guard event.transport == subject else { return .sound }
        switch event {
        case .ended(let ending):
            guard let reason = ending.earlyDeath(within: earlyDeath) else { return .sound }
            return .demote(lifetime: lifetime, kind: .carrying, reason: reason)
        case .failedToOpen, .lasted, .probed:
            return .sound
        }
    }
}
