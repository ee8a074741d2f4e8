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

    /// When a transport that stands back is to be dialled only to learn, although nobody dials because the session of
    /// another one stands; nil where it is not. Once that is past, the dial is made at once.
    ///
    /// - Parameters:
    ///   - transport: what stands back.
    ///   - history: what is known, expired entries left out; each such dial sets ``TransportHistory/lastProbe``.
    ///   - now: the instant of the question.
    func nextProbe(_ transport: TransportName, history: PathHistory, at now: WallTime) -> WallTime?
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

    /// Never.
    public func nextProbe(_ transport: TransportName, history: PathHistory, at now: WallTime) -> WallTime? { nil }
}
