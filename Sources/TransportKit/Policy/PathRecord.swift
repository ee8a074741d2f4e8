/// What is remembered of one destination on one network: the input of every policy. Expired entries are already gone.
public struct PathRecord: Sendable, Hashable {
    /// The transport that won last, while the memory of it lasts (R37).
    public var winner: TransportName?
    /// The transports that broke here, and until when they stand back (R48).
    public var demotions: [TransportName: Demotion]
    /// The smoothed round trip to the destination, once measured.
    public var smoothedRoundTrip: Duration?

    /// A transport's standing back on a network.
    public struct Demotion: Sendable, Hashable {
        /// When it ends.
        public var until: WallTime
        /// Why, in plain words.
        public var reason: String

        /// Makes a demotion.
        public init(until: WallTime, reason: String) {
            self.until = until
            self.reason = reason
        }
    }

    /// Makes a record; without arguments that of a network nobody has been on.
    public init(
        winner: TransportName? = nil, demotions: [TransportName: Demotion] = [:], smoothedRoundTrip: Duration? = nil
    ) {
        self.winner = winner
        self.demotions = demotions
        self.smoothedRoundTrip = smoothedRoundTrip
    }
}
