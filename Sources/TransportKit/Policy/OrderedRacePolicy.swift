/// One after the other, in the configured order: the next starts when the one before has failed.
public struct OrderedRacePolicy: RacePolicy {
    /// How long an attempt that neither opens nor fails holds up the next one.
    public let patience: Duration

    /// Makes the policy.
    public init(patience: Duration = .seconds(10)) {
        self.patience = patience
    }

    /// `ordered`
    public var name: String { "ordered" }

    /// The configured order, each `patience` after the one before.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        transports.enumerated().map { Attempt($0.element, delay: patience * $0.offset) }
    }
}
