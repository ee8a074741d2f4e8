/// How a route is sealed, as the config file says it.
struct SealingOptions: Decodable, Sendable {
    /// The file of this end's key; without it that of the device.
    var key: String?
    /// Who is let in.
    var peers: OneOrMore<PeerKey>
    /// The text that stands in front of this end's key in the prologue, where it is not the usual one.
    var prologue: String?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case key, peers, prologue
    }
}
