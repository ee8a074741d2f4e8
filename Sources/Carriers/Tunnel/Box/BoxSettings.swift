public import NoiseCarrier
public import TransportKit

/// How a box behaves at its door.
public struct BoxSettings: Sendable {
    /// How much may be on its way to the box in each session, in bytes: 196,608 to 16,777,216.
    public var window: UInt32 = 262_144
    /// What the box can take (R132). Without `tun` it gets no sessions.
    public var capabilities = BoxCapabilities.onlyTunnel
    /// What the box and its devices have agreed on for the sessions inside.
    public var noise = NoiseSettings()
    /// How long to wait before the next link (R136).
    public var backoff = Backoff(resetAfter: .seconds(60))

    /// Makes the default settings.
    public init() {}
}
