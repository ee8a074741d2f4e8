/// Decides whether the way a session ended means that its transport is broken on that network. A pure value.
public protocol DemotionPolicy: Sendable {
    /// The name under which it is registered.
    var name: String { get }

    /// Judges the end of one session.
    func judge(_ ending: SessionEnding, record: PathRecord) -> Verdict
}

/// How a session ended, as far as a policy needs to know.
public struct SessionEnding: Sendable, Hashable {
    /// What carried it.
    public var transport: TransportName
    /// How it ended.
    public var close: Close
    /// How long before the end its first message arrived, suspended time included; nil where none did (R46, R47).
    public var sinceFirstMessage: Duration?
    /// Whether it had moved to another network; such a session blames none (R54).
    public var migrated: Bool

    /// Describes an end.
    public init(transport: TransportName, close: Close, sinceFirstMessage: Duration?, migrated: Bool = false) {
        self.transport = transport
        self.close = close
        self.sinceFirstMessage = sinceFirstMessage
        self.migrated = migrated
    }
}

/// What follows from an ending.
public enum Verdict: Sendable, Hashable {
    /// Nothing.
    case sound
    /// The transport stands back on this network for a while.
    case demote(lifetime: Duration, reason: String)
}

/// One early failure of QUIC makes it stand back for a day (R46–R52).
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

    /// Judges as R46–R52 and R54 say.
    public func judge(_ ending: SessionEnding, record: PathRecord) -> Verdict {
        guard ending.transport == subject, !ending.migrated, ending.close.code.countsAsPathFailure else {
            return .sound
        }
        switch ending.close.origin {
        case .local, .cancellation: return .sound
        case .remote, .path: break
        }
        guard let age = ending.sinceFirstMessage else {
            return .demote(lifetime: lifetime, reason: "it ended before its first message: \(ending.close)")
        }
        guard age < earlyDeath else { return .sound }
        let seconds = age.components.seconds
        return .demote(lifetime: lifetime, reason: "the path was lost \(seconds) s after the first message")
    }
}

/// Never demotes anything.
public struct NoDemotionPolicy: DemotionPolicy {
    /// Makes the policy.
    public init() {}

    /// `none`
    public var name: String { "none" }

    /// Always ``Verdict/sound``.
    public func judge(_ ending: SessionEnding, record: PathRecord) -> Verdict { .sound }
}
