/// What a link is for, which is what QUIC offers on it and where it leads (R3).
public enum LinkRole: Sendable, Hashable {
    /// Two peers, with nobody between them.
    case peer
    /// A client's link to a door.
    case app
    /// A box's link to a door.
    case box

    /// The protocol that QUIC offers.
    public var applicationProtocol: String {
        switch self {
        case .peer: WireNames.alpnPeer
        case .app: WireNames.alpnApp
        case .box: WireNames.alpnBox
        }
    }

    /// Where it leads if its URL names no path; nil for the root.
    public var target: Target? {
        switch self {
        case .peer: nil
        case .app: Target(WireNames.targetApp)
        case .box: Target(WireNames.targetBox)
        }
    }
}
