/// How long a fallback gives its primary, and whether there is a way back.
public struct FallbackSettings: Sendable {
    /// How long the primary may be silent before it has carried, and how long it has to carry again (R111, R112).
    public var recovery = Duration.seconds(5)
    /// How long the primary may take to end its sessions before the secondary dials: a dead path takes no goodbye (R114).
    public var farewell = Duration.seconds(1)
    /// When to go back to the primary; nil for never (R115).
    public var switchBack: (any SwitchBackPolicy)?

    /// Makes the default settings.
    public init() {}
}
