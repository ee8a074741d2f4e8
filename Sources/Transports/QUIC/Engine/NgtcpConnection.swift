internal import CNgtcp2
internal import TransportKit
internal import TransportTLS

/// The library's connection, which it owns: it is freed with this value, before the TLS session and the sink it borrows.
@safe struct NgtcpConnection: ~Copyable {
    private let held: Held
    private let quic: UnsafeMutablePointer<tk_quic>
    private let sink: ConnectionSink

    /// The TLS session, apart from the connection, so that it can go first.
    private final class Held {
        /// Nil once ``releaseTLS()`` was called.
        var tls: TLSSession?

        init(_ tls: TLSSession) { self.tls = tls }
    }

    /// What a write did.
    struct Written {
        /// The bytes of the packet, 0 where nothing may be sent now, or the library's status.
        let size: Int64
        /// The bytes of the stream that the packet takes, or -1.
        let accepted: Int
    }

    /// Makes the dialling end.
    static func client(
        _ settings: tk_quic_settings, sink: ConnectionSink, tls: TLSSession, local: SocketAddress, remote: SocketAddress
    ) throws(TransportError) -> NgtcpConnection {
        var settings = settings
        var events = ConnectionSink.events
        let quic = unsafe tk_quic_client(
            &settings, &events, Unmanaged.passUnretained(sink).toOpaque(), ConnectionID.length, local.quic, remote.quic)
        return unsafe try NgtcpConnection(quic, sink: sink, tls: tls, isServer: false)
    }

    /// Makes the listening end for a client's first packet.
    static func server(
        _ settings: tk_quic_settings, sink: ConnectionSink, tls: TLSSession, local: SocketAddress,
        remote: SocketAddress, firstPacket: UnsafeRawBufferPointer
    ) throws(TransportError) -> NgtcpConnection {
        var settings = settings
        var events = ConnectionSink.events
        let quic = unsafe tk_quic_server(
            &settings, &events, Unmanaged.passUnretained(sink).toOpaque(), ConnectionID.length, local.quic, remote.quic,
            firstPacket.baseAddress?.assumingMemoryBound(to: UInt8.self), firstPacket.count)
        return unsafe try NgtcpConnection(quic, sink: sink, tls: tls, isServer: true)
    }

    private init(
        _ quic: UnsafeMutablePointer<tk_quic>?, sink: ConnectionSink, tls: TLSSession, isServer: Bool
    ) throws(TransportError) {
        guard let quic = unsafe quic else { throw TransportError(.resources, "there is no memory left for QUIC") }
        guard unsafe tk_quic_set_tls(quic, tls.pointer, isServer ? 1 : 0) == 0 else {
            unsafe tk_quic_free(quic)
            throw TransportError(.resources, "QUIC and TLS cannot be joined")
        }
        unsafe self.quic = unsafe quic
        held = Held(tls)
        self.sink = sink
    }

    deinit { unsafe tk_quic_free(quic) }

    /// What TLS has agreed on, and why not.
    var verificationFailure: TransportError? { held.tls?.verificationFailure }
    var negotiatedProtocol: String? { held.tls?.negotiatedProtocol }
    var peerKey: PublicKeyHash? { held.tls?.peerKey }
    var isResumed: Bool { held.tls?.resumed ?? false }
    var earlyData: SocketInfo.EarlyData { held.tls?.earlyData ?? .none }

    /// Lets this end send early data, where its TLS session offers that.
    ///
    /// - Returns: whether it may.
    func mayBeginEarly() -> Bool {
        guard let parameters = held.tls?.earlyParameters else { return false }
        let status = unsafe parameters.withUnsafeBytes {
            unsafe tk_quic_recall(quic, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
        return status == 0
    }

    /// Keeps the tickets that have come.
    ///
    /// - Parameter forEarlyData: whether early data may come with them.
    func keepTickets(forEarlyData: Bool) {
        guard let tls = held.tls, tls.holdsTickets else { return }
        var memory = Bytes(repeating: 0, count: Int(TK_QUIC_MEMORY))
        let count = unsafe memory.withUnsafeMutableBytes { memory in
            unsafe memory.baseAddress.map { unsafe tk_quic_remember(quic, $0.assumingMemoryBound(to: UInt8.self)) } ?? 0
        }
        tls.keepTickets(early: forEarlyData && count > 0 ? memory.prefix(count) : nil)
    }

    /// Lets the TLS session go, for an end that takes no TLS message any more; the keys are the library's own by then.
    func releaseTLS() {
        unsafe tk_quic_release_tls(quic)
        held.tls = nil
    }

    // MARK: - Packets

    func receive(
        _ bytes: UnsafeRawBufferPointer, from remote: SocketAddress, to local: SocketAddress, ecn: UInt8, now: Instant
    ) -> Int32 {
        unsafe tk_quic_read(
            quic, local.quic, remote.quic, ecn, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
            now.nanoseconds)
    }

    /// Writes what is due without any stream, and finishes a packet that was begun.
    func write(into room: UnsafeMutableRawBufferPointer, now: Instant) -> Int64 {
        var accepted: Int64 = -1
        return unsafe tk_quic_write(
            quic, room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count, &accepted, 0, -1, nil, 0,
            now.nanoseconds)
    }

    /// Writes bytes of a stream; with `mayAddMore` the packet stays open where it has room.
    func write(
        _ vectors: UnsafeBufferPointer<ngtcp2_vec>, of stream: Int64, isLast: Bool, mayAddMore: Bool,
        into room: UnsafeMutableRawBufferPointer, now: Instant
    ) -> Written {
        var accepted: Int64 = -1
        let flags = (mayAddMore ? TK_QUIC_FLAG_MORE : 0) | (isLast ? TK_QUIC_FLAG_FIN : 0)
        let size = unsafe tk_quic_write(
            quic, room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count, &accepted, flags, stream,
            vectors.baseAddress, vectors.count, now.nanoseconds)
        return Written(size: size, accepted: Int(accepted))
    }

    /// Writes a datagram; `accepted` is 0 where it went into the packet, and -1 where not.
    func write(datagram: Bytes, into room: UnsafeMutableRawBufferPointer, now: Instant) -> Written {
        var accepted: Int32 = 0
        let size = unsafe datagram.withUnsafeBytes { bytes in
            unsafe tk_quic_write_datagram(
                quic, room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count, &accepted,
                bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, now.nanoseconds)
        }
        return Written(size: size, accepted: accepted != 0 ? 0 : -1)
    }

    /// What goes into a CONNECTION_CLOSE frame.
    enum CloseFrame {
        case application(UInt64, String)
        case transport(UInt64, String)
        case library(Int32)
        case alert(UInt8)
    }

    func write(_ frame: CloseFrame, into room: UnsafeMutableRawBufferPointer, now: Instant) -> Int64 {
        let (kind, code, text): (Int32, Int64, String) =
            switch frame {
            case .transport(let code, let text): (0, Int64(clamping: code), text)
            case .application(let code, let text): (1, Int64(clamping: code), text)
            case .library(let status): (2, Int64(status), "")
            case .alert(let alert): (3, Int64(alert), "")
            }
        var reason = text
        return reason.withUTF8 { reason in
            unsafe tk_quic_write_close(
                quic, kind, code, reason.baseAddress, reason.count,
                room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count, now.nanoseconds)
        }
    }

    /// Tells the library that what was written has been handed to the kernel, for its pacing; with `isPaced` false the next
    /// packet may follow at once.
    func sent(_ now: Instant, isPaced: Bool) { unsafe tk_quic_sent(quic, now.nanoseconds, isPaced ? 1 : 0) }

    var quantum: Int { unsafe tk_quic_quantum(quic) }
    var largestPacket: Int { unsafe tk_quic_largest_packet(quic) }
    func beginBatch() { unsafe tk_quic_begin_batch(quic) }
    var fitsBatch: Bool { unsafe tk_quic_fits_batch(quic) != 0 }
    var batchLocal: SocketAddress? { unsafe SocketAddress(tk_quic_batch_local(quic)) }
    var batchRemote: SocketAddress? { unsafe SocketAddress(tk_quic_batch_remote(quic)) }
    var batchECN: UInt8 { unsafe UInt8(truncatingIfNeeded: quic.pointee.batch_ecn) }

    // MARK: - Time

    /// When `handleExpiry` wants to be called; nil for never.
    var expiry: Instant? {
        let nanoseconds = unsafe ngtcp2_conn_get_expiry(quic.pointee.connection)
        return nanoseconds == .max ? nil : Instant(nanoseconds: nanoseconds)
    }

    func handleExpiry(_ now: Instant) -> Int32 {
        unsafe ngtcp2_conn_handle_expiry(quic.pointee.connection, now.nanoseconds)
    }

    /// The probe timeout: three of them are the closing period (RFC 9000 §10.2).
    var probeTimeout: Duration {
        .nanoseconds(Int64(clamping: unsafe ngtcp2_conn_get_pto(quic.pointee.connection)))
    }

    func setKeepalive(_ interval: Duration?) {
        if let interval {
            unsafe tk_quic_set_keepalive(quic, UInt64(max(interval.clampedNanoseconds, 1_000_000)))
        } else {
            unsafe tk_quic_stop_keepalive(quic)
        }
    }

    /// Lets the next packet carry a PING; ``setKeepalive(_:)`` with what it was, once that packet is written.
    func askForPing() { unsafe tk_quic_ask_ping(quic) }

    // MARK: - Paths

    /// This end's address on the path in use.
    var local: SocketAddress? { unsafe SocketAddress(tk_quic_local(quic)) }

    /// Moves to another path. Only for the dialling end, once its handshake is confirmed.
    ///
    /// - Returns: the library's status; it refuses while the peer has given no more ids, or forbids to move.
    func move(to local: SocketAddress, remote: SocketAddress, now: Instant) -> Int32 {
        unsafe tk_quic_move(quic, local.quic, remote.quic, now.nanoseconds)
    }

    // MARK: - Streams and credit

    /// Opens a stream of this end's; nil while the peer's limit is reached.
    func openStream(bidirectional: Bool) -> Int64? {
        var id: Int64 = -1
        let connection = unsafe quic.pointee.connection
        let status =
            bidirectional
            ? unsafe ngtcp2_conn_open_bidi_stream(connection, &id, nil)
            : unsafe ngtcp2_conn_open_uni_stream(connection, &id, nil)
        return status == 0 ? id : nil
    }

    func shutDown(_ stream: Int64, code: UInt64) {
        _ = unsafe ngtcp2_conn_shutdown_stream(quic.pointee.connection, stream, min(code, Varint.max))
    }

    func stopReading(_ stream: Int64, code: UInt64) {
        _ = unsafe ngtcp2_conn_shutdown_stream_read(quic.pointee.connection, stream, min(code, Varint.max))
    }

    func extend(stream: Int64, by count: Int) {
        _ = unsafe ngtcp2_conn_extend_max_stream_offset(quic.pointee.connection, stream, UInt64(count))
    }

    func extendConnection(by count: Int) {
        unsafe ngtcp2_conn_extend_max_offset(quic.pointee.connection, UInt64(count))
    }

    func allowStream(bidirectional: Bool) {
        if bidirectional {
            unsafe ngtcp2_conn_extend_max_streams_bidi(quic.pointee.connection, 1)
        } else {
            unsafe ngtcp2_conn_extend_max_streams_uni(quic.pointee.connection, 1)
        }
    }

    var connectionWindow: UInt64 { unsafe tk_quic_connection_window(quic) }
    var datagramRoom: Int { unsafe tk_quic_datagram_room(quic) }
    var bytesInFlight: UInt64 { unsafe tk_quic_in_flight(quic) }

    /// The shortest round trip that was measured, if any was.
    var roundTrip: Duration? {
        let nanoseconds = unsafe tk_quic_round_trip(quic)
        return nanoseconds == 0 ? nil : .nanoseconds(Int64(clamping: nanoseconds))
    }

    // MARK: - The end

    var alert: UInt8 { unsafe tk_quic_tls_alert(quic) }

    /// How the peer closed.
    enum PeerClose {
        case application(UInt64, String)
        case transport(UInt64, String)
        case other
    }

    var peerClose: PeerClose {
        let close = unsafe tk_quic_peer_close(quic)
        let bytes = unsafe UnsafeRawBufferPointer(start: close.reason, count: close.reason_count)
        let reason = unsafe String(decoding: bytes, as: UTF8.self)
        return switch unsafe close.kind {
        case 0: unsafe .transport(close.code, reason)
        case 1: unsafe .application(close.code, reason)
        default: .other
        }
    }

    /// Sends TLS bytes of a test's own, as no honest end would.
    func submitCrypto(_ bytes: Bytes) -> Int32 {
        unsafe bytes.withUnsafeBytes {
            unsafe tk_quic_submit_crypto(quic, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
    }
}

extension SocketAddress {
    /// Reads what the library gives out.
    init?(_ address: tk_quic_address) {
        switch address.family {
        case 4: self.init(.ipv4(IPv4Address(value: UInt32(truncatingIfNeeded: address.low))), port: address.port)
        case 6:
            let value = IPv6Address(high: address.high, low: address.low)
            self.init(.ipv6(value, scopeID: address.scope), port: address.port)
        default: return nil
        }
    }

    /// The form that the library takes.
    var quic: tk_quic_address {
        var result = tk_quic_address()
        switch address {
        case .ipv4(let address):
            result.family = 4
            result.low = UInt64(address.value)
        case .ipv6(let address, let scopeID):
            result.family = 6
            result.high = address.high
            result.low = address.low
            result.scope = scopeID
        }
        result.port = port
        return result
    }
}
