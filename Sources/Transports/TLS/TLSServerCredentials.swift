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

    /// Lets a session issue and take tickets, and early data with them. GnuTLS derives a key from ours for every few hours;
    /// ours is replaced each day, so that what leaks later opens at most a day's sessions.
    ///
    /// - Returns: what the session borrows from.
    func enableTickets(
        _ session: gnutls_session_t, earlyData: Bool, now: WallTime
    ) throws(TransportError) -> TicketKey {
        let key = ticketKey.withLock { key in
            if key.map({ !$0.isFresh(now) }) ?? true { key = TicketKey(now: now) }
            return key
        }
        let status = key.map { unsafe $0.enable(session, earlyData: earlyData) } ?? GNUTLS_E_MEMORY_ERROR
        guard let key, status == GNUTLS_E_SUCCESS else {
            throw TransportError(.resources, "a TLS ticket key cannot be made: \(TransportError.gnuTLSText(status))")
        }
        return key
    }

    /// Makes every ticket that was issued so far worthless.
    package func forgetTickets() {
        ticketKey.withLock { $0 = nil }
    }
}
