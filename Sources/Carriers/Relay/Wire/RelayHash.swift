internal import CSodium

/// HMAC-SHA256, for the relay's slots.
package enum RelayHash {
    /// The first 8 bytes of the HMAC of a text, as a number.
    ///
    /// - Parameters:
    ///   - text: what is hashed.
    ///   - key: 32 bytes.
    package static func number(of text: String, key: [UInt8]) -> UInt64 {
        precondition(key.count == 32, "the key has 32 bytes")
        let text = Array(text.utf8)
        var hash = [UInt8](repeating: 0, count: 32)
        unsafe tk_hmac_sha256(&hash, key, text, text.count)
        return hash[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
