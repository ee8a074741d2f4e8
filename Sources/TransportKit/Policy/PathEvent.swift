/// Something that happened to a transport on a path.
public enum PathEvent: Sendable, Hashable {
    /// A session has ended.
    case ended(SessionEnding)
    /// A dial has failed, and another transport carries what was dialled.
    case failedToOpen(TransportName, TransportError)
    /// A session has stood for as long as ``DemotionPolicy/soundness``.
    case lasted(TransportName)
    /// A dial that was only to learn whether the transport works got through its handshake.
    case probed(TransportName)

    /// What it happened to.
    public var transport: TransportName {
        switch self {
        case .ended(let ending): ending.transport
        case .failedToOpen(let transport, _), .lasted(let transport), .probed(let transport): transport
        }
    }
}
