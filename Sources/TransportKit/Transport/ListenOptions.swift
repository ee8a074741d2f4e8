/// What a listener does with a target it was asked for.
public enum RouteAnswer: Sendable, Hashable {
    /// Opens the socket.
    case accept
    /// Refuses it: on QUIC with the code, on the WebSocket with the HTTP status that says the same.
    case refuse(CloseCode)
}

/// What a listener may be told.
public struct ListenOptions: Sendable {
    /// The certificate to show; needed for `wss`.
    public var security: ServerSecurity?
    /// The protocols that QUIC accepts (R3).
    public var applicationProtocols = [WireNames.alpnPeer, WireNames.alpnApp, WireNames.alpnBox]
    /// Whether TLS tickets are given out and taken (R17). They are good for this listener alone, at most a day, until it
    /// closes.
    public var tickets = true
    /// Whether QUIC takes early data with a ticket (0-RTT, R17), each only once. Needs `tickets`.
    public var earlyData = false
    /// Says whether a socket for this target may be handed out before the handshake is done, as an ``EarlySocket``; called
    /// on the listener's loop, so it must not block.
    public var answersEarly: @Sendable (Target) -> Bool = { _ in false }
    /// The bounds of each socket.
    public var limits = Limits()
    /// How each path is kept alive and watched.
    public var keepalive = Keepalive()
    /// Says whether a target has a route; called on the listener's loop, so it must not block.
    public var route: @Sendable (Target) -> RouteAnswer = { _ in .accept }

    /// Makes the default options.
    public init() {}
}
