/// How long a fallback gives its primary.
public struct FallbackSettings: Sendable, Hashable {
    /// How long the primary may be silent before it has carried, and how long it has to carry again (R111, R112).
    public var recovery = Duration.seconds(5)
    /// How long the primary may take to end its sessions before the secondary dials: a dead path takes no goodbye (R114).
    public var farewell = Duration.seconds(1)

    /// Makes the default settings.
    public init() {}
}
