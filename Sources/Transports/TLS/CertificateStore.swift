internal import CGnuTLS
internal import TransportKit

/// The certificates that GnuTLS sessions share: whom to trust, and what to show.
///
/// Sendable is sound: it is filled before it is shared, and GnuTLS only reads credentials that sessions use.
@safe final class CertificateStore: @unchecked Sendable {
    let pointer: gnutls_certificate_credentials_t

    init() throws(TransportError) {
        var pointer: gnutls_certificate_credentials_t?
        guard unsafe gnutls_certificate_allocate_credentials(&pointer) == GNUTLS_E_SUCCESS, let pointer = unsafe pointer
        else {
            throw TransportError(.resources, "there is no memory left for TLS credentials")
        }
        unsafe self.pointer = unsafe pointer
    }

    deinit { unsafe gnutls_certificate_free_credentials(pointer) }

    /// Trusts whom the machine trusts.
    func trustSystem() throws(TransportError) {
        let count = unsafe gnutls_certificate_set_x509_system_trust(pointer)
        guard count > 0 else {
            throw TransportError(
                .system, "this machine's trust store is empty or missing; install ca-certificates, or name a trust file"
            )
        }
    }

    /// Trusts the certificates of a PEM text.
    ///
    /// - Parameter source: where the text comes from, for messages.
    func trust(pem: Bytes, source: String) throws(TransportError) {
        let count = unsafe pem.withUnsafeBytes { bytes in
            var datum = unsafe gnutls_datum_t(borrowing: bytes)
            return unsafe gnutls_certificate_set_x509_trust_mem(pointer, &datum, GNUTLS_X509_FMT_PEM)
        }
        guard count > 0 else {
            throw TransportError(.misuse, "\(source) holds no PEM certificate that can be read")
        }
    }

    /// Shows the certificate chain of a pair of files.
    ///
    /// - Parameter allowingWeakKey: only tests of the other end's checks show a weak key.
    /// - Returns: the chain as it was read.
    @discardableResult
    func show(_ files: CertificateFiles, allowingWeakKey: Bool = false) throws(TransportError) -> Bytes {
        let chain = try TLSFile.read(files.certificate, what: "the certificate")
        let key = try TLSFile.read(files.key, what: "the private key", isSecret: true)
        guard let leaf = Certificate(pem: chain) else {
            throw TransportError(
                .misuse, "the certificate \(files.certificate) holds no PEM certificate that can be read")
        }
        if !allowingWeakKey, let weakness = leaf.weakness {
            throw TransportError(.certificateInvalid, "the certificate \(files.certificate) has \(weakness)")
        }
        let status = unsafe chain.withUnsafeBytes { chainBytes in
            unsafe key.withUnsafeBytes { keyBytes in
                var chainDatum = unsafe gnutls_datum_t(borrowing: chainBytes)
                var keyDatum = unsafe gnutls_datum_t(borrowing: keyBytes)
                return unsafe gnutls_certificate_set_x509_key_mem2(
                    pointer, &chainDatum, &keyDatum, GNUTLS_X509_FMT_PEM, nil, 0)
            }
        }
        guard status >= 0 else { throw Self.failure(status, files) }
        return chain
    }

    private static func failure(_ status: Int32, _ files: CertificateFiles) -> TransportError {
        switch status {
        case GNUTLS_E_CERTIFICATE_KEY_MISMATCH:
            return TransportError(
                .misuse,
                "the certificate \(files.certificate) and the private key \(files.key) do not belong together; "
                    + "name the pair that was issued together, the end's own certificate first")
        case GNUTLS_E_DECRYPTION_FAILED, GNUTLS_E_INVALID_PASSWORD, GNUTLS_E_PKCS1_WRONG_PAD:
            return TransportError(
                .misuse, "the private key \(files.key) is protected by a password; store it without one, mode 0600")
        default:
            return TransportError(
                .misuse,
                "the private key \(files.key) cannot be used with \(files.certificate): \(TransportError.gnuTLSText(status))"
            )
        }
    }
}
