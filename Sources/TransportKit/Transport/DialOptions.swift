/// What a dial may be told.
public struct DialOptions: Sendable {
    /// How the service proves who it is.
    public var security = ClientSecurity()
    /// The protocol that QUIC offers (R3).
    public var applicationProtocol = WireNames.alpnPeer
    /// The bounds of the socket.
    public var limits = Limits()
    /// How the path is kept alive and watched.
    public var keepalive = Keepalive()
    /// The first message, sent as early as the wire can, at the latest as the first message after opening.
    public var firstFlight: Bytes?
    /// Whether TLS tickets are kept in memory, and used, so that the next handshake with the service spares certificates
    /// (R17). A ticket is used once, for the same URL, rules and protocol.
    public var tickets = true
    /// Whether the target and `firstFlight` travel with the first packet where a ticket allows it (0-RTT, R14): an answer
    /// comes a round trip sooner, and anybody who records them can send them again. Needs `tickets`, and QUIC. The socket
    /// opens when the handshake is done in any case; a service that does not take early data gets both then.
    public var earlyData = false
    /// How long a round trip to the service usually takes, where that is known: a first packet that is lost is then sent
    /// again sooner (RFC 9002 §6.2.2).
    public var usualRoundTrip: Duration?
    /// The claim to take when the wire is open and before anything is said; without one the dial is alone.
    public var claim: Claim?
    /// Told what the dial does, as it does it; called on the transport's loop, so it must not block.
    public var progress: (@Sendable (DialProgress) -> Void)?

    /// Makes the default options.
    public init() {}
}
