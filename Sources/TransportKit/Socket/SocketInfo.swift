/// What is known of a socket from the moment it opened. It does not change.
public struct SocketInfo: Sendable {
    /// The transport that made it (R24, R138).
    public var transport: TransportName
    /// What it can do.
    public var capabilities: Capabilities
    /// Who can read what travels on it.
    public var protection: Protection
    /// What was asked for: the path and query of the URL.
    public var target: Target
    /// This end's address, for example `192.0.2.7:51034`.
    public var localAddress: SocketAddress?
    /// The peer's address.
    public var remoteAddress: SocketAddress?
    /// The longest message, in bytes; a longer one throws 1009 from `send`.
    public var maxMessageBytes: Int
    /// SHA-256 of the peer's public key as it stands in its certificate (SubjectPublicKeyInfo), where it showed one.
    public var peerKey: PublicKeyHash?
    /// The last entry of the `X-Forwarded-For` that the peer sent, where the wire has one. Anybody can write it: it is the
    /// client's address only where a proxy of one's own stands in front.
    public var forwardedFor: String?
    /// Whether messages of other conversations arrive on it too, as in a room of the relay: only what authenticates is the
    /// peer's (R74).
    public var isShared = false
    /// Whether TLS resumed an earlier session (R16).
    public var resumed: Bool
    /// What became of early data (R16).
    public var earlyData: EarlyData

    /// What became of early data.
    public enum EarlyData: Sendable, Hashable {
        /// None was offered.
        case none
        /// The peer took it.
        case accepted
        /// The peer refused it, and it was sent again.
        case rejected
    }

    /// Makes the description of a socket.
    public init(
        transport: TransportName, capabilities: Capabilities, protection: Protection, target: Target,
        localAddress: SocketAddress? = nil, remoteAddress: SocketAddress? = nil,
        maxMessageBytes: Int = Limits.defaultMaxMessageBytes, peerKey: PublicKeyHash? = nil, resumed: Bool = false,
        earlyData: EarlyData = .none
    ) {
        self.transport = transport
        self.capabilities = capabilities
        self.protection = protection
        self.target = target
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        self.maxMessageBytes = maxMessageBytes
        self.peerKey = peerKey
        self.resumed = resumed
        self.earlyData = earlyData
    }
}
