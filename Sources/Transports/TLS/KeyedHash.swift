internal import CGnuTLS

/// Names things by HMAC-SHA-256 under a secret key: equal names have equal hashes, and nobody without the key can tell
/// what was named.
package struct KeyedHash: Sendable {
    /// How long a key is.
    package static let keyLength = 32

    /// The key, a secret.
    package let key: [UInt8]

    /// Takes a key.
    ///
    /// - Returns: nil where it has not the right length.
    package init?(key: [UInt8]) {
        guard key.count == Self.keyLength else { return nil }
        self.key = key
    }

    /// Draws a key.
    package static func randomKey() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<keyLength).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// The hash of a text in 32 hexadecimal digits, the first half of it; nil where the library refuses.
    package func name(_ text: String) -> String? {
        var hash = [UInt8](repeating: 0, count: 32)
        let bytes = Array(text.utf8)
        let status = unsafe gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key.count, bytes, bytes.count, &hash)
        guard status == GNUTLS_E_SUCCESS else { return nil }
        return hash.prefix(16).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}
