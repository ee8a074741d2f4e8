/// What a race policy sees of one destination on one network, at one instant. A pure value.
public struct PathRecord: Sendable, Hashable {
    /// The transport that won last, while the memory of it lasts (R37).
    public var winner: TransportName?
    /// The transports that stand back now, and why (R48).
    public var demotions: [TransportName: Demotion]
    /// The transports that have stood back and not carried anything since.
    public var unproven: Set<TransportName> = []
    /// The smoothed round trip to the destination, once measured.
    public var smoothedRoundTrip: Duration?

    /// Makes a record; without arguments that of a network nobody has been on.
    public init(
        winner: TransportName? = nil, demotions: [TransportName: Demotion] = [:], smoothedRoundTrip: Duration? = nil
    ) {
        self.winner = winner
        self.demotions = demotions
        self.smoothedRoundTrip = smoothedRoundTrip
    }
}
