internal import CGnuTLS
internal import Synchronization
package import TransportKit

/// What a listener shows and asks, read from its files; all its sessions share it.
///
/// Each has its own ticket key, so a ticket from one listener is worthless at another with other rules (B63).
package final class TLSServerCredentials: Sendable {
    /// The rules that were asked for.
    package let security: ServerSecurity

    let store: CertificateStore
    private let ticketKey = Mutex<TicketKey?>(nil)

    /// Reads the certificate and its key.
    ///
    /// - Parameter allowingWeakKey: only tests of a client's checks show a weak key.
    /// - Throws: ``/TransportKit/TransportError`` with the file and what to do about it.
    package init(_ security: ServerSecurity, allowingWeakKey: Bool = false) throws(TransportError) {
        self.security = security
        store = try CertificateStore()
        try store.show(security.identity, allowingWeakKey: allowingWeakKey)
    }

    /// Lets a session issue and take tickets. GnuTLS derives a key from ours for every few hours; ours is replaced each
    /// day, so that what leaks later opens at most a day's sessions.
    func enableTickets(_ session: gnutls_session_t, now: WallTime) throws(TransportError) {
        let status = ticketKey.withLock { key -> Int32 in
            if key.map({ !$0.isFresh(now) }) ?? true { key = TicketKey(now: now) }
            return key.map { unsafe $0.enable(session) } ?? GNUTLS_E_MEMORY_ERROR
        }
        guard status == GNUTLS_E_SUCCESS else {
            throw TransportError(.resources, "a TLS ticket key cannot be made: \(TransportError.gnuTLSText(status))")
        }
    }

    /// Makes every ticket that was issued so far worthless.
    package func forgetTickets() {
        ticketKey.withLock { $0 = nil }
    }
}

/// The secret under which tickets are sealed.
///
/// Sendable is sound: it is not written after it was made.
@safe private final class TicketKey: @unchecked Sendable {
    private static let lifetime: Int64 = 86_400
    private let key: gnutls_datum_t
    private let since: WallTime

    init?(now: WallTime) {
        var key = unsafe gnutls_datum_t()
        guard unsafe gnutls_session_ticket_key_generate(&key) == GNUTLS_E_SUCCESS else { return nil }
        unsafe self.key = key
        since = now
    }

    deinit {
        unsafe gnutls_memset(key.data, 0, Int(key.size))
        unsafe tk_gnutls_free(key.data)
    }

    func isFresh(_ now: WallTime) -> Bool { (0..<Self.lifetime).contains(now.seconds - since.seconds) }

    /// The session copies the key.
    func enable(_ session: gnutls_session_t) -> Int32 {
        var borrowed = unsafe key
        return unsafe gnutls_session_ticket_enable_server(session, &borrowed)
    }
}
