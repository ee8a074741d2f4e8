internal import CGnuTLS
internal import TransportKit

/// The secret under which tickets are sealed, and the record of the early data that came with them.
///
/// Sendable is sound: it is not written after it was made, and the record is locked.
@safe final class TicketKey: @unchecked Sendable {
    private static let lifetime: Int64 = 86_400
    private let key: gnutls_datum_t
    private let since: WallTime
    private let record: EarlyDataRecord

    init?(now: WallTime) {
        var key = unsafe gnutls_datum_t()
        // A session may go on for a while after its key was replaced.
        guard let record = EarlyDataRecord(seconds: 2 * Self.lifetime),
            unsafe gnutls_session_ticket_key_generate(&key) == GNUTLS_E_SUCCESS
        else { return nil }
        unsafe self.key = key
        self.record = record
        since = now
    }

    deinit {
        unsafe gnutls_memset(key.data, 0, Int(key.size))
        unsafe tk_gnutls_free(key.data)
    }

    /// Whether it may go on; not with a full record, since nobody's early data would be taken any more.
    func isFresh(_ now: WallTime) -> Bool {
        (0..<Self.lifetime).contains(now.seconds - since.seconds) && !record.isFull
    }

    /// The session copies the key and borrows the record.
    func enable(_ session: gnutls_session_t, earlyData: Bool) -> Int32 {
        var borrowed = unsafe key
        let status = unsafe gnutls_session_ticket_enable_server(session, &borrowed)
        guard status == GNUTLS_E_SUCCESS, earlyData else { return status }
        unsafe record.attach(to: session)
        // RFC 9001 §4.6.1: QUIC bounds early data in its own way.
        return unsafe gnutls_record_set_max_early_data_size(session, Int(UInt32.max))
    }
}
