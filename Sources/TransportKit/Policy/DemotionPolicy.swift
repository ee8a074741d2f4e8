/// Decides what counts as a transport being broken on a network, and for how long it stands back. A pure value.
///
/// The carrier tells it what happens on a path, and ``PathHistory`` keeps what it says. A failure takes effect only once
/// another transport has opened a session on that network, which takes it several round trips: a network that is down
/// altogether blames nobody. Until then the transport is a suspect, which makes it go last and is written nowhere.
public protocol DemotionPolicy: Sendable {
    /// The name under which it is registered.
    var name: String { get }

    /// How long a session has to stand before ``PathEvent/lasted(_:)`` is told of it; nil where that changes nothing.
    var soundness: Duration? { get }

    /// Judges one event.
    ///
    /// - Parameters:
    ///   - event: what has happened, and to which transport.
    ///   - history: what was known before it, expired entries left out.
    ///   - now: when the event was.
    ///   - fraction: a random number from 0 up to, but not including, 1, for jitter.
    func judge(_ event: PathEvent, history: PathHistory, at now: WallTime, fraction: Double) -> Verdict

    /// Whether a transport that was demoted goes last in a dial now.
    func standsBack(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool

    /// Whether a transport that somebody else has beaten may be dialled now only to learn whether it works (R38, R39).
    func mayProbe(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool
}

extension DemotionPolicy {
    /// Nothing depends on it.
    public var soundness: Duration? { nil }

    /// While the demotion lasts.
    public func standsBack(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool {
        history[transport].demotion.map { $0.until > now } ?? false
    }

    /// Always.
    public func mayProbe(_ transport: TransportName, history: PathHistory, at now: WallTime) -> Bool { true }
}

/// Something that happened to a transport on a path.
public enum PathEvent: Sendable, Hashable {
    /// A session has ended.
    case ended(SessionEnding)
    /// A dial has failed, and another transport carries what was dialled.
    case failedToOpen(TransportName, TransportError)
    /// A session has stood for as long as ``DemotionPolicy/soundness``.
    case lasted(TransportName)
    /// A dial that was only to learn whether the transport works got through its handshake.
    case probed(TransportName)

    /// What it happened to.
    public var transport: TransportName {
        switch self {
        case .ended(let ending): ending.transport
        case .failedToOpen(let transport, _), .lasted(let transport), .probed(let transport): transport
        }
    }
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

    /// Whether the path broke, and whether that says something about the network it was dialled on (R50, R54).
    public var blamesPath: Bool {
        guard !migrated, close.code.countsAsPathFailure else { return false }
        switch close.origin {
        case .local, .cancellation: return false
        case .remote, .path: break
        }
        // Else the peer's machine has spoken: the service has ended or started anew, and the network let its word through.
        return close.cause?.code != .refused && close.cause?.code != .forgotten
    }

    /// How the path broke before or within `limit` of the first message, in words; nil where it did not (R46, R47).
    public func earlyDeath(within limit: Duration) -> String? {
        guard blamesPath else { return nil }
        guard let age = sinceFirstMessage else { return "it ended before its first message: \(close)" }
        guard age < limit else { return nil }
        return "the path was lost \(age.components.seconds) s after the first message"
    }
}

/// What follows from an event.
public enum Verdict: Sendable, Hashable {
    /// Nothing.
    case sound
    /// It is held against the transport.
    case strike(TransportHistory.Strike)
    /// The transport stands back for a while.
    case demote(lifetime: Duration, kind: TransportHistory.Strike.Kind, reason: String)
    /// The transport stands back no longer, but stays unproven.
    case lift
    /// Everything that was held against the transport is forgotten.
    case clear
}

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

/// Never demotes anything.
public struct NoDemotionPolicy: DemotionPolicy {
    /// Makes the policy.
    public init() {}

    /// `none`
    public var name: String { "none" }

    /// Always ``Verdict/sound``.
    public func judge(_ event: PathEvent, history: PathHistory, at now: WallTime, fraction: Double) -> Verdict {
        .sound
    }
}
