/// All at once; whoever opens first carries.
public struct ParallelRacePolicy: RacePolicy {
    /// Makes the policy.
    public init() {}

    /// `parallel`
    public var name: String { "parallel" }

    /// Every transport without delay.
    public func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        transports.map { Attempt($0, delay: .zero) }
    }
}
