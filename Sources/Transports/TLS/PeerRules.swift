internal import CGnuTLS
internal import TransportKit

/// What the peer's certificate must be.
struct PeerRules {
    let role: TLSRole
    /// Whom a client wants to reach.
    let host: Host?
    /// The certificates or keys that are accepted, and no others; a client without pins asks its trust store.
    let pins: [PublicKeyHash]

    /// Looks at what the peer has shown, during the handshake.
    ///
    /// - Returns: why it is not accepted, or nil.
    func judge(_ session: gnutls_session_t) -> TransportError? {
        var count: UInt32 = 0
        guard let chain = unsafe gnutls_certificate_get_peers(session, &count), count > 0,
            let leaf = unsafe Certificate(der: UnsafeRawBufferPointer(start: chain[0].data, count: Int(chain[0].size)))
        else {
            return TransportError(.certificateInvalid, "\(peer) showed no certificate that can be read")
        }
        if let weakness = leaf.weakness {
            return TransportError(.certificateInvalid, "the certificate of \(peer) has \(weakness)")
        }
        if role == .server || !pins.isEmpty { return judgePins(leaf) }
        let chainBuffer = unsafe UnsafeBufferPointer(start: chain, count: Int(count))
        if let failure = unsafe judgeChain(session, leaf, chainBuffer) { return failure }
        guard let host, leaf.isFor(host) else {
            return TransportError(
                .certificateWrongHost, "the certificate is for \(TLSText.list(leaf.names)), not for \(peer)")
        }
        return nil
    }

    private var peer: String { host?.bare ?? "the client" }

    private func judgePins(_ leaf: borrowing Certificate) -> TransportError? {
        guard let key = leaf.keyHash, let certificate = leaf.certificateHash else {
            return TransportError(.certificateInvalid, "the certificate of \(peer) has an unreadable key")
        }
        if pins.contains(key) || pins.contains(certificate) { return nil }
        return TransportError(
            .pinMismatch,
            "\(peer) showed the key \(key), which is not \(role == .client ? "the pinned one" : "one that is let in")")
    }

    private func judgeChain(
        _ session: gnutls_session_t, _ leaf: borrowing Certificate, _ chain: UnsafeBufferPointer<gnutls_datum_t>
    ) -> TransportError? {
        var bits: UInt32 = 0
        let status = unsafe tk_gnutls_verify_chain(session, 1, &bits)
        guard status == GNUTLS_E_SUCCESS else {
            return TransportError(
                .certificateInvalid,
                "the certificate of \(peer) cannot be checked: \(TransportError.gnuTLSText(status))")
        }
        func has(_ flag: gnutls_certificate_status_t) -> Bool { bits & flag.rawValue != 0 }
        if bits == 0 { return nil }
        // The issuer comes first: where an intercepting box answers, it is what the user must know (B34).
        if has(GNUTLS_CERT_SIGNER_NOT_FOUND) || has(GNUTLS_CERT_SIGNER_NOT_CA) {
            return TransportError(
                .certificateUnknownIssuer,
                "nobody that is trusted has issued the certificate of \(peer); its subject is \"\(leaf.subject)\" and "
                    + "its issuer \"\(leaf.issuer)\"")
        }
        if has(GNUTLS_CERT_REVOKED) {
            return TransportError(.certificateInvalid, "the certificate of \(peer) has been revoked by its issuer")
        }
        let now = TLSText.wallNow()
        if has(GNUTLS_CERT_NOT_ACTIVATED) {
            // Any certificate of the chain may be the one; the latest start names what the clock must reach.
            let start = unsafe chain.reduce(leaf.notBefore) { latest, datum in
                let bytes = unsafe UnsafeRawBufferPointer(start: datum.data, count: Int(datum.size))
                guard let certificate = unsafe Certificate(der: bytes) else { return latest }
                return max(latest, certificate.notBefore)
            }
            return TransportError(
                .certificateNotYetValid,
                "the clock looks wrong: it is \(TLSText.utc(now)) here, the certificate is valid from \(TLSText.utc(start))"
            )
        }
        if has(GNUTLS_CERT_EXPIRED) {
            let isLeaf = leaf.notAfter < now
            let end = isLeaf ? " on \(TLSText.utc(leaf.notAfter))" : ""
            return TransportError(
                .certificateExpired,
                "the certificate of \(peer)\(isLeaf ? "" : "'s issuer") expired\(end); it is \(TLSText.utc(now)) here")
        }
        if has(GNUTLS_CERT_INSECURE_ALGORITHM) {
            return TransportError(.certificateInvalid, "the certificate of \(peer) is signed in a way that is too weak")
        }
        if has(GNUTLS_CERT_PURPOSE_MISMATCH) {
            return TransportError(.certificateInvalid, "the certificate of \(peer) was not issued for a server")
        }
        return TransportError(.certificateInvalid, "the certificate of \(peer) is not valid: \(Self.text(bits))")
    }

    private static func text(_ bits: UInt32) -> String {
        var datum = unsafe gnutls_datum_t()
        guard unsafe gnutls_certificate_verification_status_print(bits, GNUTLS_CRT_X509, &datum, 0) >= 0 else {
            return "status \(bits)"
        }
        defer { unsafe tk_gnutls_free(datum.data) }
        let bytes = unsafe UnsafeRawBufferPointer(start: datum.data, count: Int(datum.size))
        return unsafe String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self).printable(limit: 120)
    }
}
