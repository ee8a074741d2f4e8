internal import CGnuTLS
internal import TransportKit

/// The proof that an HTTP server really speaks WebSocket (RFC 6455 §4.2.2).
package enum AcceptKey {
    /// Draws a key for a request: 16 random bytes in base 64.
    package static func makeKey() -> String {
        var nonce = [UInt8](repeating: 0, count: 16)
        let status = unsafe nonce.withUnsafeMutableBytes { room in
            unsafe gnutls_rnd(GNUTLS_RND_NONCE, room.baseAddress, room.count)
        }
        precondition(status == 0, "the system has no random numbers")
        return base64(nonce)
    }

    /// The answer to a key.
    package static func answer(to key: String) -> String {
        let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        let status = unsafe text.withUnsafeBytes { text in
            unsafe digest.withUnsafeMutableBytes { digest in
                unsafe gnutls_hash_fast(GNUTLS_DIG_SHA1, text.baseAddress, text.count, digest.baseAddress)
            }
        }
        precondition(status == 0, "GnuTLS has no SHA-1")
        return base64(digest)
    }

    /// Whether a key is 16 bytes in base 64.
    package static func isValid(_ key: String) -> Bool {
        let bytes = Array(key.utf8)
        guard bytes.count == 24, bytes.hasSuffix("==") else { return false }
        return bytes.dropLast(2).allSatisfy { alphabet.contains($0) }
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// RFC 4648 §4.
    private static func base64(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            bits <<= UInt32(8 * (3 - group.count))
            for place in 0...group.count { text.append(alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)]) }
            for _ in group.count..<3 { text.append(UInt8(ascii: "=")) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension [UInt8] {
    fileprivate func hasSuffix(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
