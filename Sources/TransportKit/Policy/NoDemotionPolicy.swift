/// Never demotes anything.
public struct NoDemotionPolicy: DemotionPolicy {
    /// Makes the policy.
    public init() {}

    /// `none`
    public var name: String { "none" }

    /// Always ``Verdict/sound``.
    public func judge(_ event: PathEvent, history: PathHistory, at now: WallTime, fraction: Double) -> Verdict {
        .sound
    }
}
