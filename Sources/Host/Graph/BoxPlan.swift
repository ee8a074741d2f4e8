internal import NoiseCarrier
internal import TransportKit

/// A box as the config file wants it: what it offers to its devices, through which door.
struct BoxPlan: Sendable {
    /// What reaches the door.
    var carrier: any Carrier
    /// Who the box is.
    var key: StaticPrivateKey
    /// Who the door is: one key, or two while they change.
    var doorKeys: [StaticPublicKey]
    /// The services by name.
    var services: [String: TCPEndpoint]
    /// Where clients find the door.
    var url: ServiceURL
    /// What the door may show to clients; empty where it must be trusted as usual.
    var pins: [PublicKeyHash]
}
