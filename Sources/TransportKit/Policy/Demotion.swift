/// A transport's standing back on a path.
public struct Demotion: Sendable, Hashable {
    /// When it began.
    public var since: WallTime
    /// When it ends.
    public var until: WallTime
    /// What had failed.
    public var kind: TransportHistory.Strike.Kind
    /// Why, in plain words.
    public var reason: String

    /// Makes a demotion.
    public init(
        since: WallTime, until: WallTime, kind: TransportHistory.Strike.Kind = .carrying, reason: String
    ) {
        self.since = since
        self.until = until
        self.kind = kind
        self.reason = reason
    }

    /// How long it lasts.
    public var lifetime: Duration { .seconds(max(until.seconds - since.seconds, 0)) }
}
