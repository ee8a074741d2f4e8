internal import CGnuTLS
package import TransportKit

/// One GnuTLS session with its rules, for QUIC or, inside a ``TLSStream``, for a byte pipe.
///
/// Confined to one loop. It keeps its credentials alive, and frees the session with itself: whatever borrows `pointer`
/// (an `ngtcp2_conn`) must be gone by then.
@safe package final class TLSSession {
    /// The `gnutls_session_t`. Its session pointer is free for ngtcp2; its transport pointer and its handshake hook are not.
    package let pointer: OpaquePointer
    /// Which end this is.
    package let role: TLSRole

    let sink: TLSSink
    private let credentials: CertificateStore
    /// What the listening end seals its tickets with, which GnuTLS borrows parts of.
    private var ticketKey: TicketKey?
    /// What the service said of itself when it gave out the ticket with which this end offers early data.
    package private(set) var earlyParameters: Bytes?

    /// Makes the dialling end.
    ///
    /// - Parameter host: who is dialled; it is asked for by name unless it is an address, and must be in the certificate.
    /// - Parameter port: together with the host it says whose tickets may be used.
    /// - Parameter protocols: the ALPN names to offer, the best first.
    /// - Parameter forQUIC: TLS 1.3 without its middlebox disguise; else TLS 1.2 or newer.
    /// - Parameter earlyData: offers early data where a ticket allows it, and then there are ``earlyParameters``.
    package static func client(
        _ credentials: TLSClientCredentials, host: Host, port: UInt16 = 443, protocols: [String], forQUIC: Bool,
        earlyData: Bool = false
    ) throws(TransportError) -> TLSSession {
        let name = credentials.serverName ?? host
        let key = TLSTicketStore.Key(
            host: host, port: port, protocols: protocols, isQUIC: forQUIC, security: credentials.security,
            fingerprint: credentials.fingerprint)
        let sink = TLSSink(
            rules: PeerRules(role: .client, host: name, pins: credentials.security.pins),
            tickets: credentials.tickets.map { ($0, key) }, protocolIsMandatory: false, holdsTickets: forQUIC)
        let ticket = credentials.tickets?.take(key, now: TLSText.wallNow())
        let early = earlyData && forQUIC ? ticket?.early : nil
        let session = try TLSSession(
            .client, sink, credentials.store, protocols, forQUIC, withTickets: credentials.tickets != nil,
            withEarlyData: early != nil)
        if case .name(let text) = name {
            let status = unsafe text.withCString {
                unsafe gnutls_server_name_set(session.pointer, GNUTLS_NAME_DNS, $0, text.utf8.count)
            }
            try check(status, "the server name \(text) cannot be asked for")
        }
        if let ticket {
            // One that the library cannot use costs a full handshake and nothing else.
            let status = unsafe ticket.data.withUnsafeBytes {
                unsafe gnutls_session_set_data(session.pointer, $0.baseAddress, $0.count)
            }
            if status == GNUTLS_E_SUCCESS, let early {
                session.earlyParameters = early
                sink.isEarlyDataOffered = true
            }
        }
        return session
    }

    /// Makes the listening end.
    ///
    /// - Parameter protocols: the ALPN names that are spoken, the best first. A client that offers others is refused; on
    ///   QUIC also one that offers none.
    /// - Parameter tickets: gives out tickets and takes them.
    /// - Parameter earlyData: takes early data with a ticket, on QUIC, each only once.
    package static func server(
        _ credentials: TLSServerCredentials, protocols: [String], forQUIC: Bool, tickets: Bool = true,
        earlyData: Bool = false
    ) throws(TransportError) -> TLSSession {
        let pins = credentials.security.clientPins
        let sink = TLSSink(
            rules: PeerRules(role: .server, host: nil, pins: pins ?? []), tickets: nil, protocolIsMandatory: forQUIC,
            holdsTickets: false)
        let earlyData = earlyData && tickets && forQUIC
        let session = try TLSSession(
            .server, sink, credentials.store, protocols, forQUIC, withTickets: tickets, withEarlyData: earlyData)
        unsafe gnutls_certificate_server_set_request(
            session.pointer, pins == nil ? GNUTLS_CERT_IGNORE : GNUTLS_CERT_REQUIRE)
        if tickets {
            session.ticketKey = unsafe try credentials.enableTickets(
                session.pointer, earlyData: earlyData, now: TLSText.wallNow())
        }
        return session
    }

    private init(
        _ role: TLSRole, _ sink: TLSSink, _ credentials: CertificateStore, _ protocols: [String], _ forQUIC: Bool,
        withTickets: Bool, withEarlyData: Bool
    ) throws(TransportError) {
        var pointer: gnutls_session_t?
        try Self.check(
            unsafe tk_gnutls_init(
                &pointer, role == .server ? 1 : 0, withTickets ? 1 : 0, withEarlyData ? 1 : 0),
            "TLS cannot be started")
        guard let pointer = unsafe pointer else { throw TransportError(.resources, "there is no memory left for TLS") }
        unsafe self.pointer = unsafe pointer
        self.role = role
        self.sink = sink
        self.credentials = credentials
        unsafe try Self.check(
            gnutls_priority_set(pointer, forQUIC ? Priorities.quic.pointer : Priorities.stream.pointer),
            "the TLS ciphers cannot be set")
        try Self.check(
            unsafe gnutls_credentials_set(
                pointer, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials.pointer)),
            "the certificates cannot be set")
        unsafe try Self.offer(protocols, on: pointer, role)
        unsafe sink.attach(to: pointer)
    }

    deinit { unsafe gnutls_deinit(pointer) }

    private static func offer(
        _ protocols: [String], on pointer: gnutls_session_t, _ role: TLSRole
    ) throws(TransportError) {
        guard !protocols.isEmpty else { return }
        // GnuTLS copies the names; they lie one after the other in one array while it does.
        var names = protocols.flatMap { Array($0.utf8) }
        let status = unsafe names.withUnsafeMutableBufferPointer { buffer in
            var offset = 0
            let data = unsafe protocols.map { name in
                defer { offset += name.utf8.count }
                return unsafe gnutls_datum_t(
                    data: buffer.baseAddress.map { unsafe $0 + offset }, size: UInt32(name.utf8.count))
            }
            let flags = GNUTLS_ALPN_MANDATORY.rawValue | GNUTLS_ALPN_SERVER_PRECEDENCE.rawValue
            return unsafe gnutls_alpn_set_protocols(pointer, data, UInt32(data.count), role == .server ? flags : 0)
        }
        try check(status, "the protocols \(protocols.joined(separator: ", ")) cannot be offered")
    }

    private static func check(_ status: Int32, _ what: String) throws(TransportError) {
        guard status >= 0 else {
            throw TransportError(
                status == GNUTLS_E_MEMORY_ERROR ? .resources : .misuse, "\(what): \(TransportError.gnuTLSText(status))")
        }
    }

    /// Why the peer's certificate was not accepted; every transport reports these words.
    package var verificationFailure: TransportError? { sink.verificationFailure }

    /// SHA-256 of the peer's public key, where it showed a certificate, in this session or in the one it resumes.
    package var peerKey: PublicKeyHash? { unsafe Certificate.withLeaf(of: pointer) { $0.keyHash } }

    /// The ALPN name both ends agreed on. A QUIC client must refuse a service that agreed on none (RFC 9001 §8.1).
    package var negotiatedProtocol: String? {
        var name = unsafe gnutls_datum_t()
        guard unsafe gnutls_alpn_get_selected_protocol(pointer, &name) == GNUTLS_E_SUCCESS else { return nil }
        return unsafe String(decoding: UnsafeRawBufferPointer(start: name.data, count: Int(name.size)), as: UTF8.self)
    }

    /// Whether the handshake resumed an earlier session (R16).
    package var resumed: Bool { unsafe gnutls_session_is_resumed(pointer) != 0 }

    /// What became of early data (R16): at the listening end once the ClientHello is in, at the other when the handshake
    /// is done.
    package var earlyData: SocketInfo.EarlyData {
        guard sink.isEarlyDataOffered else { return .none }
        return unsafe tk_gnutls_took_early_data(pointer) != 0 ? .accepted : .rejected
    }

    /// Whether tickets have come that wait for ``keepTickets(early:)``.
    package var holdsTickets: Bool { !sink.heldTickets.isEmpty }

    /// Keeps the tickets that have come over QUIC.
    ///
    /// - Parameter early: what whoever sends early data with them must know of the service; nil where nobody may.
    package func keepTickets(early: Bytes?) {
        guard let (store, key) = sink.tickets else { return }
        for ticket in sink.heldTickets {
            store.keep(
                ticket.data, for: key, notBefore: ticket.notBefore, notAfter: ticket.notAfter,
                early: ticket.allowsEarlyData ? early : nil)
        }
        sink.heldTickets = []
    }

    /// The version and cipher, for example `TLS1.3 AES-128-GCM`.
    package var cipherDescription: String {
        func text(_ name: UnsafePointer<CChar>?) -> String { unsafe name.map { unsafe String(cString: $0) } ?? "none" }
        let version = unsafe text(gnutls_protocol_get_name(gnutls_protocol_get_version(pointer)))
        return unsafe "\(version) \(text(gnutls_cipher_get_name(gnutls_cipher_get(pointer))))"
    }

    /// What a failed GnuTLS call on this session means: the verification failure, the peer's alert, or the library's words.
    package func failure(_ status: Int32, established: Bool) -> TransportError {
        if let verificationFailure { return verificationFailure }
        if status == GNUTLS_E_FATAL_ALERT_RECEIVED || status == GNUTLS_E_WARNING_ALERT_RECEIVED {
            let alert = unsafe gnutls_alert_get(pointer)
            return TransportError(
                peerAlert: UInt8(truncatingIfNeeded: alert.rawValue), role: role, established: established)
        }
        return TransportError(gnuTLS: status, role: role, established: established)
    }
}

/// The versions, ciphers and groups; made once, then only read.
@safe private struct Priorities: @unchecked Sendable {
    let pointer: gnutls_priority_t?

    // AES-128-GCM first: GnuTLS 3.7 does ChaCha20 at an eighth of its speed.
    private static let common =
        ":-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA"
        + ":-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:%SERVER_PRECEDENCE:%PROFILE_MEDIUM"

    static let stream = Priorities("NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" + common)
    static let quic = Priorities("NORMAL:-VERS-ALL:+VERS-TLS1.3" + common + ":%DISABLE_TLS13_COMPAT_MODE")

    private init(_ text: String) {
        var pointer: gnutls_priority_t?
        let status = unsafe gnutls_priority_init2(&pointer, text, nil, 0)
        // A system-wide policy may forbid some of it; the session then says that its ciphers cannot be set.
        unsafe self.pointer = unsafe status == GNUTLS_E_SUCCESS ? pointer : nil
    }
}
