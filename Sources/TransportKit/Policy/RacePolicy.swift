/// Decides what to dial, and when. A pure value: the same question always gets the same answer.
///
/// The race asks once per dial and starts each attempt `delay` after the dial began, or at once if the attempts before
/// it have all failed by then. Every transport must be planned: a policy reorders and delays, it never removes (R54).
public protocol RacePolicy: Sendable {
    /// The name under which it is registered.
    var name: String { get }

    /// The attempts of one dial, in the order they start.
    ///
    /// - Parameters:
    ///   - transports: what is configured, in the order of preference.
    ///   - record: what is remembered of the destination on this network.
    func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt]
}

/// One attempt of a race.
public struct Attempt: Sendable, Hashable {
    /// What to dial.
    public var transport: TransportName
    /// How long after the start of the dial.
    public var delay: Duration

    /// Makes an attempt.
    public init(_ transport: TransportName, delay: Duration) {
        self.transport = transport
        self.delay = delay
    }
}
