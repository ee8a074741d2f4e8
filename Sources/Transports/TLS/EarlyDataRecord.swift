internal import CGnuTLS
internal import Synchronization

/// The ClientHellos whose early data a listener took, so that it takes none of them twice (RFC 8446 §8.2).
///
/// GnuTLS would forget them after some seconds and then refuse every older ticket, because it no longer knows what it has
/// seen. A record lives as long as the key that its tickets are sealed with instead: a ClientHello that was sent again
/// either finds itself in here, or its ticket opens no more.
///
/// Sendable is sound: what GnuTLS keeps is not written after it was made, as long as its window lasts, and `seen` is locked.
@safe final class EarlyDataRecord: @unchecked Sendable {
    /// The first half of a ClientHello's binder, which nobody can make without the ticket's secret.
    private struct Mark: Hashable {
        let high: UInt64
        let low: UInt64
    }

    /// Some two megabytes.
    static let usualLimit = 65_536
    /// What GnuTLS puts before the binder: when its window began, which is always the same here.
    private static let prefixBytes = 12

    private let context: gnutls_anti_replay_t
    private let limit: Int
    private let seen = Mutex<Set<Mark>>([])

    /// Makes an empty record for so long, with room for so many.
    init?(seconds: Int64, limit: Int = usualLimit) {
        var context: gnutls_anti_replay_t?
        guard unsafe gnutls_anti_replay_init(&context) == GNUTLS_E_SUCCESS, let context = unsafe context else {
            return nil
        }
        unsafe self.context = unsafe context
        self.limit = limit
        unsafe gnutls_anti_replay_set_window(context, UInt32(clamping: seconds * 1000))
        unsafe gnutls_anti_replay_set_ptr(context, Unmanaged.passUnretained(self).toOpaque())
        unsafe gnutls_anti_replay_set_add_function(context) { record, _, key, _ in
            guard let record = unsafe record, let key = unsafe key else { return GNUTLS_E_INTERNAL_ERROR }
            let bytes = unsafe UnsafeRawBufferPointer(start: key.pointee.data, count: Int(key.pointee.size))
            // Unretained is sound: whoever holds the context, or borrows it in a session, holds the record.
            return unsafe Unmanaged<EarlyDataRecord>.fromOpaque(record).takeUnretainedValue().add(bytes)
        }
    }

    deinit { unsafe gnutls_anti_replay_deinit(context) }

    var isFull: Bool { seen.withLock { $0.count >= limit } }

    func attach(to session: gnutls_session_t) { unsafe gnutls_anti_replay_enable(session, context) }

    /// Takes a ClientHello down.
    ///
    /// - Returns: the library's status: an error where it is here already, or has no room.
    func add(_ key: UnsafeRawBufferPointer) -> Int32 {
        guard key.count >= Self.prefixBytes + 16 else { return GNUTLS_E_INTERNAL_ERROR }
        let mark = unsafe Mark(
            high: key.loadUnaligned(fromByteOffset: Self.prefixBytes, as: UInt64.self),
            low: key.loadUnaligned(fromByteOffset: Self.prefixBytes + 8, as: UInt64.self))
        return seen.withLock { seen in
            if seen.count >= limit { return GNUTLS_E_MEMORY_ERROR }
            return seen.insert(mark).inserted ? GNUTLS_E_SUCCESS : GNUTLS_E_DB_ENTRY_EXISTS
        }
    }
}
