/// A certificate chain and its private key, as PEM files.
public struct CertificateFiles: Sendable, Hashable {
    /// The file with the chain, the end's own certificate first.
    public var certificate: String
    /// The file with the private key.
    public var key: String

    /// Names the files.
    public init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}
