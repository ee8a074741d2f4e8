public import NoiseCarrier
public import TransportKit

/// Who a client is to a door, and how it behaves there.
public struct TunnelSettings: Sendable {
    /// Who the client is: the key by which the box, and the door, know the device.
    public var key: StaticPrivateKey
    /// Which home it wants to reach.
    public var home: HomeID
    /// The door's static public keys: one, or two while they change. They are tried in turn (R90).
    public var doorKeys: [StaticPublicKey]
    /// The pairing code of 16 bytes that the client holds, if any. Only its hash goes to the door (R88, R89); the code itself
    /// belongs into message 1 of the session inside.
    public var pairingCode: @Sendable () -> Bytes? = { nil }
    /// How much may be on its way to the client in each session, in bytes: 196,608 to 16,777,216.
    public var window: UInt32 = 262_144
    /// How long to wait after a session that the other end has ended (R81, R82).
    public var backoff = Backoff()

    /// Makes the settings of a client.
    ///
    /// - Parameters:
    ///   - key: who the client is.
    ///   - home: which home it wants to reach.
    ///   - doorKeys: the door's static public keys, one or two.
    public init(key: StaticPrivateKey, home: HomeID, doorKeys: [StaticPublicKey]) {
        self.key = key
        self.home = home
        self.doorKeys = doorKeys
    }
}
