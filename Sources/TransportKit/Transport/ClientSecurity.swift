/// How a dialer makes sure of the service it reaches. The same rules hold on every transport.
public struct ClientSecurity: Sendable, Hashable {
    /// Whose signatures count.
    public enum Trust: Sendable, Hashable {
        /// The machine's own trust store.
        case system
        /// The certificates in a PEM file, and nothing else. It is read again on every dial.
        case file(String)
        /// The certificates in this PEM text, and nothing else.
        case pem(String)
    }

    /// Whose signatures count; not asked where `pins` are given.
    public var trust: Trust
    /// The certificates or public keys that are accepted, and no others. A match is enough: name, issuer and dates are
    /// then not looked at, because the key itself is what was agreed on (RFC 7671 §5.1).
    public var pins: [PublicKeyHash]
    /// The name to ask for and to find in the certificate, where it is not the URL's host (B61).
    public var serverName: String?
    /// This end's own certificate, for a service that asks for one.
    public var identity: CertificateFiles?

    /// Makes the rules of a dialer.
    public init(
        trust: Trust = .system, pins: [PublicKeyHash] = [], serverName: String? = nil,
        identity: CertificateFiles? = nil
    ) {
        self.trust = trust
        self.pins = pins
        self.serverName = serverName
        self.identity = identity
    }
}
