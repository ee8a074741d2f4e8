internal import CGnuTLS
package import TransportKit

/// Which end of a session this is.
package enum TLSRole: Sendable, Hashable {
    /// The end that dials.
    case client
    /// The end that listens.
    case server
}

extension TransportError {
    /// What a TLS alert from the peer means, in the same words on every transport.
    ///
    /// - Parameter alert: the number on the wire (RFC 8446 §6); in QUIC the low byte of a CRYPTO_ERROR.
    /// - Parameter established: whether the handshake was done when it came.
    package init(peerAlert alert: UInt8, role: TLSRole, established: Bool = false) {
        let peer = role == .client ? "the service" : "the client"
        let name = Self.alertName(alert)
        let number = UInt64(alert)
        switch (UInt32(alert), role) {
        case (GNUTLS_A_NO_APPLICATION_PROTOCOL.rawValue, _):
            self.init(.noCommonProtocol, "\(peer) speaks none of the offered protocols (\(name))", number: number)
        case (GNUTLS_A_PROTOCOL_VERSION.rawValue, _), (GNUTLS_A_INAPPROPRIATE_FALLBACK.rawValue, _):
            self.init(.noCommonProtocol, "\(peer) speaks no common version of TLS (\(name))", number: number)
        case (GNUTLS_A_CERTIFICATE_REQUIRED.rawValue, .client):
            self.init(.clientCertificateRejected, "the service asks for a client certificate (\(name))", number: number)
        case (GNUTLS_A_BAD_CERTIFICATE.rawValue...GNUTLS_A_CERTIFICATE_UNKNOWN.rawValue, .client),
            (GNUTLS_A_UNKNOWN_CA.rawValue, .client), (GNUTLS_A_ACCESS_DENIED.rawValue, .client):
            self.init(
                .clientCertificateRejected, "the service did not accept this end's certificate (\(name))",
                number: number)
        case (GNUTLS_A_BAD_CERTIFICATE.rawValue...GNUTLS_A_CERTIFICATE_UNKNOWN.rawValue, .server),
            (GNUTLS_A_UNKNOWN_CA.rawValue, .server):
            self.init(
                .handshakeFailed, "the client did not accept this service's certificate (\(name))", number: number)
        case (GNUTLS_A_UNRECOGNIZED_NAME.rawValue, .client):
            self.init(.handshakeFailed, "the service does not know the name it was asked for (\(name))", number: number)
        default:
            self.init(
                established ? .protocolViolation : .handshakeFailed,
                "\(peer) ended \(established ? "TLS" : "the TLS handshake") with the alert \(name)", number: number)
        }
    }

    /// What a failed call of GnuTLS means, other than a verification failure or an alert of the peer.
    init(gnuTLS status: Int32, role: TLSRole, established: Bool) {
        let peer = role == .client ? "the service" : "the client"
        var level: Int32 = 0
        let alert = unsafe gnutls_error_to_alert(status, &level)
        let number = alert >= 0 ? UInt64(alert) : nil
        switch status {
        case GNUTLS_E_NO_APPLICATION_PROTOCOL:
            self.init(.noCommonProtocol, "\(peer) offers no protocol that is spoken here", number: number)
        case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
            self.init(.noCommonProtocol, "\(peer) speaks no common version of TLS", number: number)
        case GNUTLS_E_NO_CERTIFICATE_FOUND, GNUTLS_E_CERTIFICATE_REQUIRED:
            self.init(.certificateInvalid, "\(peer) showed no certificate", number: number)
        case GNUTLS_E_NO_CIPHER_SUITES, GNUTLS_E_UNKNOWN_CIPHER_SUITE, GNUTLS_E_NO_COMMON_KEY_SHARE,
            GNUTLS_E_UNSUPPORTED_SIGNATURE_ALGORITHM, GNUTLS_E_INSUFFICIENT_SECURITY,
            GNUTLS_E_ECC_NO_SUPPORTED_CURVES:
            self.init(.handshakeFailed, "\(peer) has no cipher or key kind in common with this end", number: number)
        case GNUTLS_E_MEMORY_ERROR:
            self.init(.resources, "there is no memory left for TLS")
        case GNUTLS_E_PREMATURE_TERMINATION where established, GNUTLS_E_SESSION_EOF where established:
            self.init(.pathReset, "\(peer) cut the connection without closing TLS, so its last bytes may be missing")
        case GNUTLS_E_PREMATURE_TERMINATION, GNUTLS_E_SESSION_EOF:
            self.init(.refused, "\(peer) closed the connection during the TLS handshake")
        case GNUTLS_E_REHANDSHAKE:
            self.init(.protocolViolation, "\(peer) asked to renegotiate TLS, which is refused", number: number)
        default:
            self.init(
                established ? .protocolViolation : .handshakeFailed,
                "\(established ? "TLS" : "the TLS handshake") with \(peer) failed: \(Self.gnuTLSText(status))",
                number: number)
        }
    }

    /// The alert that tells the peer why its certificate was not accepted (RFC 8446 §6.2).
    var alertForPeer: gnutls_alert_description_t {
        switch code {
        case .certificateExpired: GNUTLS_A_CERTIFICATE_EXPIRED
        case .certificateUnknownIssuer: GNUTLS_A_UNKNOWN_CA
        case .certificateNotYetValid, .certificateWrongHost, .pinMismatch: GNUTLS_A_CERTIFICATE_UNKNOWN
        default: GNUTLS_A_BAD_CERTIFICATE
        }
    }

    /// The library's own words for a status, without the full stop.
    static func gnuTLSText(_ status: Int32) -> String {
        guard let text = unsafe gnutls_strerror(status) else { return "error \(status)" }
        var words = unsafe String(cString: text)
        if words.hasSuffix(".") { words.removeLast() }
        return "\(words) (\(status))"
    }

    private static func alertName(_ alert: UInt8) -> String {
        let known = gnutls_alert_description_t(UInt32(alert))
        guard let name = unsafe gnutls_alert_get_strname(known) else { return "\(alert)" }
        let word = unsafe String(cString: name).replacingPrefix("GNUTLS_A_").lowercased()
        return "\(alert), \(word)"
    }
}

extension String {
    fileprivate func replacingPrefix(_ prefix: String) -> String {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : self
    }
}
