/// What a listener shows its clients and asks of them.
public struct ServerSecurity: Sendable, Hashable {
    /// The certificate it shows.
    public var identity: CertificateFiles
    /// The client certificates or keys that are let in; nil asks for none, an empty list lets nobody in.
    public var clientPins: [PublicKeyHash]?

    /// Makes the rules of a listener.
    public init(identity: CertificateFiles, clientPins: [PublicKeyHash]? = nil) {
        self.identity = identity
        self.clientPins = clientPins
    }
}
