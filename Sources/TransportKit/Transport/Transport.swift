/// A wire: it dials and listens, and makes sockets.
///
/// A transport is a value that holds its settings and its loop; making one opens nothing. Any task may call it, any
/// number of calls may run at once. Cancelling a waiting `dial` or `listen` closes whatever it had opened.
public protocol Transport: Sendable {
    /// The name under which it is registered.
    var name: TransportName { get }

    /// What its sockets can do at best. A socket's own `info.capabilities` may have less, as its peer has a say.
    var capabilities: Capabilities { get }

    /// Who can read what travels to that end point. The default is TLS for `wss` and nobody's protection for `ws`.
    func protection(of endpoint: Endpoint) -> Protection

    /// Opens a socket to a service. The name is resolved anew on every dial (B17).
    ///
    /// Returns once the transport is open, its claim is taken, and the target is on its way. It throws as soon as the
    /// path is known to be refused; silence lasts until `options.limits.handshakeTimeout`.
    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket

    /// Binds an address and starts to answer on it. The address is bound, or the error thrown, when the call returns.
    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener
}

extension Transport {
    /// TLS for `wss`, nobody's protection for `ws`.
    public func protection(of endpoint: Endpoint) -> Protection {
        switch endpoint.scheme {
        case .wss: .transport
        case .ws: .none
        }
    }
}

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
    /// The claim to take when the wire is open and before anything is said; without one the dial is alone.
    public var claim: Claim?
    /// Told what the dial does, as it does it; called on the transport's loop, so it must not block.
    public var progress: (@Sendable (DialProgress) -> Void)?

    /// Makes the default options.
    public init() {}
}

/// A step of a dial, for logs and reports.
public enum DialProgress: Sendable, Hashable {
    /// The name has these addresses, in the order they will be tried.
    case resolved([SocketAddress])
    /// An attempt at an address began.
    case attempt(SocketAddress)
    /// An attempt at an address failed.
    case attemptFailed(SocketAddress, TransportError)
    /// The transport's own connection stands (TCP: connected); QUIC skips this step.
    case connected(SocketAddress)
    /// TLS is done.
    case secured
    /// The socket is open.
    case opened
}

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
    /// The bounds of each socket.
    public var limits = Limits()
    /// How each path is kept alive and watched.
    public var keepalive = Keepalive()
    /// Says whether a target has a route; called on the listener's loop, so it must not block.
    public var route: @Sendable (Target) -> RouteAnswer = { _ in .accept }

    /// Makes the default options.
    public init() {}
}

/// A bound address that hands out sockets.
///
/// One task may accept at a time; a second call while one waits throws ``Close/misuse(_:)``. A cancelled `accept`
/// throws ``Close/cancelled`` and loses no socket. Sockets live on when their listener closes.
public protocol Listener: AnyObject, Sendable {
    /// What it is bound to, with the port that the system chose where 0 was asked for.
    var endpoint: Endpoint { get }

    /// Waits for a socket whose peer has finished its handshake and named a target that has a route.
    func accept() async throws(Close) -> any Socket

    /// Stops answering, frees the address, and refuses what has not been accepted yet with the given code.
    func close(_ code: CloseCode, reason: String) async
}

extension Listener {
    /// Stops answering, with 1001.
    public func close() async {
        await close(.goingAway, reason: "the listener closed")
    }
}
