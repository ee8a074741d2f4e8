internal import CGnuTLS

/// Keys for the frames of a client: each new and unpredictable (RFC 6455 §5.3, §10.3).
struct MaskKeys {
    private static let batch = 64
    private var keys: [UInt32] = []

    /// The next key, its bytes in the order of memory.
    mutating func next() -> UInt32 {
        if let key = keys.popLast() { return key }
        keys = [UInt32](repeating: 0, count: Self.batch)
        let status = unsafe keys.withUnsafeMutableBytes { room in
            unsafe gnutls_rnd(GNUTLS_RND_RANDOM, room.baseAddress, room.count)
        }
        precondition(status == 0, "the system has no random numbers")
        return keys.removeLast()
    }
}
