/// The head start fits the network: one and a half round trips, between 10 ms and 2 s; a quarter of a second where the
/// round trip is not known. A transport that was demoted and has not proven itself since gets none.
public struct AdaptiveRacePolicy: RacePolicy {
    /// The head start where the round trip is not known.
    public let unknown: Duration
    /// The shortest head start.
    public let shortest: Duration
    /// The longest head start.
    public let longest: Duration

    /// Makes the policy.
    public init(
        unknown: Duration = .milliseconds(250), shortest: Duration = .milliseconds(10), longest: Duration = .seconds(2)
    ) {
        self.unknown = unknown
        self.shortest = shortest
        self.longest = longest
    }

    /// `adaptive`
    public var name: String { "adaptive" }

    /// The remembered winner first, the demoted last, each a head start after the one before.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        let headStart = record.smoothedRoundTrip.map { min(max($0 * 3 / 2, shortest), longest) } ?? unknown
        let order = RaceOrder(transports, record: record)
        var delay = Duration.zero
        let attempts = order.sound.map { transport in
            defer { if !record.unproven.contains(transport) { delay += headStart } }
            return Attempt(transport, delay: delay)
        }
        return order.complete(attempts, headStart: headStart, wait: longest)
    }
}
