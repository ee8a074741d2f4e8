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
