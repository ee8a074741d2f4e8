/// How long to wait before the next attempt: full jitter under a ceiling that doubles (R81, R136).
///
/// No clock and no randomness of its own: the caller hands in a random number, so tests are exact.
public struct Backoff: Sendable, Hashable {
    /// The ceiling of the first wait.
    public let base: Duration
    /// The highest ceiling.
    public let cap: Duration
    /// A session that lasted this long starts the backoff over (R81, R82).
    public let resetAfter: Duration
    /// Whoever asks for a session during a wait makes it this long at most.
    public let patience: Duration
    /// Where everybody on a service has lost it at once, the ceiling doubles so often before the first wait, so that they
    /// do not come back at once too (R127).
    public let crowd: Int
    /// How many attempts have failed since a session last lasted.
    public private(set) var attempts = 0
    /// How often the ceiling has doubled, the cap left out.
    private var doublings = 0

    private static let mostDoublings = 16

    /// Makes a backoff; without arguments 0.5 s to 60 s, 2 s for whoever asks, reset by 30 s of carrying, and 8 s to
    /// begin with where everybody comes back.
    public init(
        base: Duration = .milliseconds(500), cap: Duration = .seconds(60), resetAfter: Duration = .seconds(30),
        patience: Duration = .seconds(2), crowd: Int = 4
    ) {
        self.base = base
        self.cap = cap
        self.resetAfter = resetAfter
        self.patience = patience
        self.crowd = crowd
    }

    /// Counts a failure and says how long to wait.
    ///
    /// - Parameters:
    ///   - isShared: whether it failed for everybody who was there before.
    ///   - fraction: a random number from 0 up to, but not including, 1.
    ///   - limit: the ceiling of this wait, where it is lower.
    public mutating func failed(
        isShared: Bool = false, fraction: Double, atMost limit: Duration? = nil
    ) -> Duration {
        if isShared { doublings = min(max(doublings, crowd), Self.mostDoublings) }
        let ceiling = min(cap, limit ?? cap, base * (1 << doublings))
        doublings = min(doublings + 1, Self.mostDoublings)
        attempts += 1
        return ceiling * min(max(fraction, 0), 1)
    }

    /// Counts the end of a session: one that lasted starts the backoff over, and the next dial goes out at once, unless
    /// everybody's does.
    ///
    /// - Parameters:
    ///   - lifetime: how long the session stood.
    ///   - isShared: whether everybody else on the service has lost theirs with it.
    ///   - fraction: a random number from 0 up to, but not including, 1.
    /// - Returns: how long to wait.
    public mutating func ended(after lifetime: Duration, isShared: Bool = false, fraction: Double) -> Duration {
        if lifetime >= resetAfter {
            reset()
            if !isShared { return .zero }
        }
        return failed(isShared: isShared, fraction: fraction)
    }

    /// How long after a failure the next attempt comes at the latest if somebody asks for a session before it.
    ///
    /// - Parameter fraction: a random number from 0 up to, but not including, 1, so that not all come at once.
    public func wait(onDemand fraction: Double) -> Duration {
        patience * (1 + min(max(fraction, 0), 1)) / 2
    }

    /// Starts over, because the network is back (R61).
    public mutating func reset() {
        attempts = 0
        doublings = 0
    }
}
