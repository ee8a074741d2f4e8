internal import CNgtcp2
internal import TransportKit

/// The secret behind the tokens that reset connections which a listener no longer knows.
///
/// It comes from the listener's key file, so that a listener that starts anew can tell the clients of the last one at
/// once (B07), and is of no use to whoever does not have the key.
struct ResetSecret: Sendable {
    private let bytes: [UInt8]

    /// Makes the secret that belongs to a key file's bytes.
    init(key: Bytes) {
        var secret = [UInt8](repeating: 0, count: 32)
        _ = unsafe key.withUnsafeBytes { key in
            unsafe secret.withUnsafeMutableBufferPointer {
                unsafe tk_quic_reset_secret(
                    key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count, $0.baseAddress)
            }
        }
        bytes = secret
    }

    func apply(to settings: inout tk_quic_settings) {
        unsafe withUnsafeMutableBytes(of: &settings.reset_secret) { unsafe $0.copyBytes(from: bytes) }
    }

    /// Whether a client's first packet carries a token that ``retry(for:from:now:)`` gave to its address.
    func isProven(_ first: UnsafeRawBufferPointer, from remote: SocketAddress, now: Instant) -> Bool {
        unsafe tk_quic_is_proven(
            first.baseAddress?.assumingMemoryBound(to: UInt8.self), first.count, bytes, remote.quic, now.nanoseconds)
            != 0
    }

    /// Writes the packet that asks a client to come again with a token, and so to show that it is where it says it is.
    func retry(for first: UnsafeRawBufferPointer, from remote: SocketAddress, now: Instant) -> Bytes? {
        var size: Int64 = -1
        let packet = unsafe Bytes(unsafeUninitializedCapacity: 256) { room in
            size = unsafe tk_quic_write_retry(
                room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count,
                first.baseAddress?.assumingMemoryBound(to: UInt8.self), first.count, ConnectionID.length, bytes,
                remote.quic, now.nanoseconds)
            return max(Int(size), 0)
        }
        return size > 0 ? packet : nil
    }

    /// Writes the packet that resets the connection to which `datagram` was sent; nil where it is too short to answer.
    func reset(for destination: ConnectionID, answering datagramBytes: Int) -> Bytes? {
        // Shorter than what it answers, so that two ends never answer each other for ever (RFC 9000 §10.3.3).
        let count = min(datagramBytes - 1, 43)
        guard count >= 22 else { return nil }
        var destination = destination.library
        var size: Int64 = -1
        let packet = unsafe Bytes(unsafeUninitializedCapacity: count) { room in
            size = unsafe tk_quic_write_stateless_reset(
                room.baseAddress?.assumingMemoryBound(to: UInt8.self), count, bytes, &destination)
            return max(Int(size), 0)
        }
        return size > 0 ? packet : nil
    }
}
