internal import CGnuTLS
public import TransportKit

/// What a certificate can be pinned by: give either to ``/TransportKit/ClientSecurity/pins``.
public struct CertificateHashes: Sendable, Hashable {
    /// SHA-256 of the whole certificate in DER; it changes with every renewal.
    public let certificate: PublicKeyHash
    /// SHA-256 of its public key (SubjectPublicKeyInfo); it stays as long as the key is kept.
    public let key: PublicKeyHash

    /// Reads the first certificate of a PEM file.
    ///
    /// - Throws: an error that names the file where it is missing or holds no certificate.
    public init(certificateFile path: String) throws(TransportError) {
        let pem = try TLSFile.read(path, what: "the certificate")
        guard let read = Certificate(pem: pem), let certificate = read.certificateHash, let key = read.keyHash else {
            throw TransportError(.misuse, "the certificate \(path) holds no PEM certificate that can be read")
        }
        self.certificate = certificate
        self.key = key
    }
}
