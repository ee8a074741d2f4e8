internal import CGnuTLS
internal import Glibc
internal import TransportKit

/// All that GnuTLS's callbacks touch. The session holds it as its transport pointer, because ngtcp2 needs the other one.
///
/// Confined, with its session, to one loop.
@safe final class TLSSink {
    let rules: PeerRules
    let tickets: (store: TLSTicketStore, key: TLSTicketStore.Key)?

    /// Why the peer's certificate was not accepted.
    var verificationFailure: TransportError?
    /// What came from the peer and has not been read by GnuTLS.
    private var input = Bytes()
    /// The same, in memory of the caller's, for as long as one call of the stream lasts.
    private var borrowed = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// How many bytes GnuTLS may still read before it has to show something for them. Without that bound it would collect
    /// one handshake message of 16 MiB for a peer who has proved nothing.
    var budget = TLSSink.handshakeBudget
    static let handshakeBudget = 256 << 10
    /// Whether nothing more will come.
    var inputEnded = false
    /// The first byte that ever came; it tells TLS from something else.
    private(set) var firstByte: UInt8?
    /// What is to be sent to the peer.
    var output = Bytes()
    /// Set in a server that must agree on a protocol (RFC 9001 §8.1).
    let protocolIsMandatory: Bool
    /// Whether the session is asked for its tickets, which are kept together with what the owner knows of the service.
    let holdsTickets: Bool
    /// The tickets that nobody has asked for yet; no peer needs to have more than a few of them kept.
    var heldTickets: [TLSTicket] = []
    private static let heldLimit = 4
    /// What the ticket that is being read says of itself.
    private var terms: TLSTicket.Terms?
    /// Whether the dialling end has sent early data, or wants to.
    var isEarlyDataOffered = false

    init(
        rules: PeerRules, tickets: (store: TLSTicketStore, key: TLSTicketStore.Key)?, protocolIsMandatory: Bool,
        holdsTickets: Bool
    ) {
        self.rules = rules
        self.tickets = tickets
        self.protocolIsMandatory = protocolIsMandatory
        self.holdsTickets = holdsTickets
    }

    var inputCount: Int { unsafe input.count + borrowed.count }
    var hasInput: Bool { inputCount > 0 }

    func feed(_ bytes: Bytes) {
        if firstByte == nil, !bytes.isEmpty { firstByte = bytes[0] }
        if input.isEmpty { input = bytes } else { input.append(contentsOf: bytes) }
    }

    func borrow(_ bytes: UnsafeRawBufferPointer) {
        if firstByte == nil { firstByte = unsafe bytes.first }
        unsafe borrowed = bytes
    }

    /// Copies what was not read, because its memory goes back to its owner.
    func endBorrowing() {
        if unsafe !borrowed.isEmpty { unsafe input.append(contentsOf: borrowed) }
        unsafe borrowed = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Fills `target` as far as there is input and budget.
    func pull(into whole: UnsafeMutableRawBufferPointer) -> Int {
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: whole.prefix(budget))
        if !input.isEmpty {
            let count = min(input.count, target.count)
            unsafe input.withUnsafeBytes {
                unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count]))
            }
            input.removeFirst(count)
            // An idle session holds no buffer.
            if input.isEmpty { input = Bytes() }
            budget -= count
            return count
        }
        let count = unsafe min(borrowed.count, target.count)
        if count > 0 {
            unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: borrowed[..<count]))
            unsafe borrowed = UnsafeRawBufferPointer(rebasing: borrowed[count...])
        }
        budget -= count
        return count
    }

    private static func from(_ pointer: gnutls_transport_ptr_t?) -> TLSSink? {
        // Unretained is sound: the session owns its sink and ends GnuTLS's use of it before it lets go.
        unsafe pointer.map { unsafe Unmanaged<TLSSink>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Makes `session` use this sink and no descriptor.
    func attach(to session: gnutls_session_t) {
        unsafe gnutls_transport_set_ptr(session, Unmanaged.passUnretained(self).toOpaque())
        unsafe gnutls_transport_set_pull_function(session) { pointer, target, capacity in
            guard let sink = unsafe TLSSink.from(pointer) else { return -1 }
            let count = unsafe sink.pull(into: UnsafeMutableRawBufferPointer(start: target, count: capacity))
            return count > 0 ? count : -1
        }
        unsafe gnutls_transport_set_push_function(session) { pointer, source, count in
            guard let sink = unsafe TLSSink.from(pointer) else { return -1 }
            unsafe sink.output.append(contentsOf: UnsafeRawBufferPointer(start: source, count: count))
            return count
        }
        // The only reason for -1 above.
        unsafe gnutls_transport_set_errno_function(session) { _ in EAGAIN }
        unsafe gnutls_transport_set_pull_timeout_function(session) { pointer, _ in
            guard let sink = unsafe TLSSink.from(pointer) else { return -1 }
            return sink.hasInput || sink.inputEnded ? 1 : 0
        }
        unsafe gnutls_session_set_verify_function(session) { session in
            guard let session = unsafe session, let sink = unsafe TLSSink.from(gnutls_transport_get_ptr(session)) else {
                return GNUTLS_E_INTERNAL_ERROR
            }
            sink.verificationFailure = unsafe sink.rules.judge(session)
            return sink.verificationFailure == nil ? 0 : GNUTLS_E_CERTIFICATE_ERROR
        }
        let message = rules.role == .client ? GNUTLS_HANDSHAKE_NEW_SESSION_TICKET : GNUTLS_HANDSHAKE_CLIENT_HELLO
        guard rules.role == .client ? tickets != nil : protocolIsMandatory else { return }
        unsafe gnutls_handshake_set_hook_function(session, message.rawValue, GNUTLS_HOOK_BOTH) {
            session, _, isDone, _, message in
            guard let session = unsafe session, let sink = unsafe TLSSink.from(gnutls_transport_get_ptr(session)) else {
                return 0
            }
            switch (sink.rules.role, isDone != 0) {
            case (.client, false):
                // Only now are the message's bytes all here.
                sink.terms = unsafe message.flatMap {
                    TLSTicket.Terms(
                        unsafe [UInt8](
                            UnsafeRawBufferPointer(start: $0.pointee.data, count: Int($0.pointee.size))))
                }
                return 0
            case (.client, true):
                unsafe sink.keepTicket(session)
                return 0
            case (.server, false):
                return 0
            case (.server, true):
                sink.isEarlyDataOffered = unsafe tk_gnutls_offers_early_data(message) != 0
                var name = unsafe gnutls_datum_t()
                let status = unsafe gnutls_alpn_get_selected_protocol(session, &name)
                return status == GNUTLS_E_SUCCESS ? 0 : GNUTLS_E_NO_APPLICATION_PROTOCOL
            }
        }
    }

    /// Keeps a ticket that has come. Those of TLS 1.2 come before the handshake is done and are left alone.
    private func keepTicket(_ session: gnutls_session_t) {
        guard let tickets, unsafe gnutls_protocol_get_version(session) == GNUTLS_TLS1_3 else { return }
        var data = unsafe gnutls_datum_t()
        guard unsafe gnutls_session_get_data2(session, &data) == GNUTLS_E_SUCCESS else { return }
        let copy = unsafe Bytes(copying: UnsafeRawBufferPointer(start: data.data, count: Int(data.size)))
        unsafe tk_gnutls_free(data.data)
        // A resumed session checks no certificate, so a ticket must not outlive the one it stands for. A pinned one has
        // no end; a week is the longest that TLS allows (RFC 8446 §4.6.1).
        let now = TLSText.wallNow()
        let lifetime = now + .seconds(Int64(min(terms?.lifetimeSeconds ?? .max, 7 * 86_400)))
        let end = unsafe rules.pins.isEmpty ? Certificate.leafEnd(of: session) ?? lifetime : lifetime
        guard holdsTickets else {
            tickets.store.keep(copy, for: tickets.key, notBefore: now, notAfter: min(lifetime, end))
            return
        }
        if heldTickets.count == Self.heldLimit { heldTickets.removeFirst() }
        heldTickets.append(
            TLSTicket(
                data: copy, notBefore: now, notAfter: min(lifetime, end),
                allowsEarlyData: terms?.earlyDataBytes == TLSTicket.Terms.earlyDataOfQUIC))
    }
}

extension Certificate {
    /// When the time of the peer's own certificate ends.
    fileprivate static func leafEnd(of session: gnutls_session_t) -> WallTime? {
        unsafe withLeaf(of: session) { $0.notAfter }
    }

    /// Gives `body` the peer's own certificate, where it showed one.
    static func withLeaf<Result>(of session: gnutls_session_t, _ body: (borrowing Certificate) -> Result?) -> Result? {
        var count: UInt32 = 0
        guard let chain = unsafe gnutls_certificate_get_peers(session, &count), count > 0,
            let leaf = unsafe Certificate(der: UnsafeRawBufferPointer(start: chain[0].data, count: Int(chain[0].size)))
        else { return nil }
        return body(leaf)
    }
}
