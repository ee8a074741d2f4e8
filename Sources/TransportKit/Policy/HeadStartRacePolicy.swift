/// The first transport gets a head start, 250 ms by default (R34); the one that won last on this network goes first
/// (R37), unless it was demoted there (R48).
public struct HeadStartRacePolicy: RacePolicy {
    /// How long each attempt waits for the one before it.
    public let headStart: Duration
    /// How long an attempt waits that stands back: the others need several round trips where it needs one, and it must
    /// not win only because of that. Where they fail it is dialled at once.
    public let demotedHeadStart: Duration

    /// Makes the policy.
    public init(headStart: Duration = .milliseconds(250), demotedHeadStart: Duration = .seconds(2)) {
        self.headStart = headStart
        self.demotedHeadStart = demotedHeadStart
    }

    /// `head-start`
    public var name: String { "head-start" }

    /// The remembered winner first, the demoted last, each `headStart` after the one before.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        let order = RaceOrder(transports, record: record)
        let attempts = order.sound.enumerated().map { Attempt($0.element, delay: headStart * $0.offset) }
        return order.complete(attempts, headStart: headStart, wait: demotedHeadStart)
    }
}
